"""Tests that are a table: one test runs all rows, and reports every row that fails."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


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

        @wraps(test)
        def run_rows(*args: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for row in table:
                values = (row,) if is_value else row
                named = {one.name: value for one, value in zip(of_row, values, strict=True)}
                try:
                    test(*args, **fixtures, **named)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"row: {row!r}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        left = [one for one in signature.parameters.values() if one not in of_row]
        vars(run_rows)["__signature__"] = signature.replace(parameters=left)
        return run_rows

    return decorate
