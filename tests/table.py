"""Tests that are a table: one test runs all rows, and reports every row that fails."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., Any]


def rows(*table: Any) -> Callable[[Test], Test]:
    """Run a test for each row, in one test, so that fixtures and checks cost their time once.

    A row has a value for each of the last parameters of the test; the parameters before those are
    fixtures, which all rows share. A row of a test with one parameter is the value itself.
    """

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        parameters = [one for one in signature.parameters.values() if one.name != "self"]
        is_value = len(parameters) == 1 or not isinstance(table[0], tuple)
        of_row = parameters[-1:] if is_value else parameters[-len(table[0]) :]

        def named(row: Any) -> dict[str, Any]:
            values = (row,) if is_value else row
            return {one.name: value for one, value in zip(of_row, values, strict=True)}

        @wraps(test)
        def run_rows(*args: Any, **fixtures: Any) -> None:
            with _reported(len(table)) as attempt:
                for row in table:
                    with attempt(row):
                        test(*args, **fixtures, **named(row))

        @wraps(test)
        async def run_async_rows(*args: Any, **fixtures: Any) -> None:
            with _reported(len(table)) as attempt:
                for row in table:
                    with attempt(row):
                        await test(*args, **fixtures, **named(row))

        run = run_async_rows if inspect.iscoroutinefunction(test) else run_rows
        left = [one for one in signature.parameters.values() if one not in of_row]
        vars(run)["__signature__"] = signature.replace(parameters=left)
        return run

    return decorate


@contextmanager
def _reported(count: int) -> Iterator[Callable[[Any], Any]]:
    """Provide a context for each row, and raise the failures of all rows at the end."""
    failures: list[BaseException] = []

    @contextmanager
    def attempt(row: Any) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as failure:
            failure.add_note(f"row: {row!r}")
            failures.append(failure)

    yield attempt
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} rows fail", failures)
