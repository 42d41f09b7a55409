"""What is changed in dkimpy: it is needed still, and every process that verifies has it.

Where a test here fails with a new version, upstream has mended something: take our
function out of `change_dkimpy` then.
"""

import importlib.util
import os
import time
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import dkim  # type: ignore[import-untyped]
import dkim.canonicalization  # type: ignore[import-untyped]
import pytest
import pytest_twisted
from twisted.internet.defer import maybeDeferred

from mailcheck.assembly.workers import daemon_workers, direct_analysis_worker
from mailcheck.checks.dkim import dkimpy_linear
from mailcheck.core.errors import WorkerDied


@cache
def untouched(name: str) -> ModuleType:
    """Load a module of dkimpy anew, as it is without us."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(call: Callable[[], object]) -> float:
    """Take the processor's time for a call, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    return best


def is_quadratic(work: Callable[[Any, int], object], theirs: Any, ours: Any) -> bool:
    """Tell whether theirs takes four times as much far more than four times as long as ours."""
    growth = seconds(partial(work, theirs, 12_000)) / seconds(partial(work, theirs, 3_000))
    gain = seconds(partial(work, theirs, 12_000)) / seconds(partial(work, ours, 12_000))
    return growth > 8 and gain > 3


def hash_own_field(hash_headers: Any, size: int) -> object:
    """Hash a signature field with a long run of folded lines."""

    class Nothing:
        def update(self, data: bytes) -> None:
            """Take nothing in."""

    field = (b"dkim-signature", b" b" + b"\r\n " * (size // 4) + b"!\r\n")
    return hash_headers(Nothing(), dkim.canonicalization.Simple, [], [], field, {})


@pytest.mark.untraced
def test_dkimpy_reads_runs_of_blanks_again_and_again() -> None:
    """The blanks of a body, and those of a signature, take dkimpy quadratic time."""
    theirs = untouched("dkim.canonicalization").Relaxed.canonicalize_body
    ours = dkimpy_linear.canonicalize_relaxed_body
    assert is_quadratic(lambda function, size: function(b" " * size + b"x"), theirs, ours)
    assert is_quadratic(hash_own_field, untouched("dkim").hash_headers, dkimpy_linear.hash_headers)


def test_dkimpy_selects_fields_in_quadratic_time() -> None:
    """The signed fields of many are looked for from the end again and again."""

    def select(select_headers: Any, size: int) -> object:
        names = [b"x-%d" % number for number in range(size // 10)]
        return select_headers([(name, b"") for name in names], reversed(names[: size // 20]))

    assert is_quadratic(select, untouched("dkim").select_headers, dkimpy_linear.select_headers)


def test_dkimpy_takes_long_over_large_mails() -> None:
    """Blanks, line ends and empty lines cost dkimpy several times what they cost us."""
    theirs, ours = untouched("dkim.canonicalization"), dkimpy_linear
    for name, octets in (
        ("compress_whitespace", b"a b\t "),
        ("unfold_header_value", b"a\r\n "),
        ("strip_trailing_lines", b"\r\n"),
    ):
        text = octets * 30_000
        long = seconds(partial(getattr(theirs, name), text))
        assert long > 3 * seconds(partial(getattr(ours, name), text)), name


def test_dkimpy_leaves_blanks_behind_a_signature() -> None:
    """White space behind the value of b= is removed, too (RFC 6376 3.5); dkimpy leaves it."""
    body = b" v=1; b=AbC= \t; d=b.example"
    assert dkimpy_linear.remove_signature(body) == b" v=1; b=; d=b.example"
    assert untouched("dkim").RE_BTAG.sub(b"\\1", body) == b" v=1; b= \t; d=b.example"


# For a process that knows no tests: the modules in which the functions of its dkimpy are.
WHERE_FUNCTIONS_ARE = """{function.__module__ for dkim in [__import__("dkim.canonicalization")]
    for parts in [dkim.canonicalization]
    for function in [parts.compress_whitespace, parts.strip_trailing_lines,
        parts.unfold_header_value, parts.Relaxed.canonicalize_body, dkim.hash_headers]}"""


@pytest_twisted.ensureDeferred
async def test_every_process_that_verifies_has_the_changes() -> None:
    """The daemon's analysis process, also one that takes the place of another, and a command."""
    from twisted.internet import reactor

    ours = {dkimpy_linear.__name__}
    workers = daemon_workers(reactor, is_shared=False)
    try:
        for _ in range(2):
            assert await workers.analysis.run(partial(eval, WHERE_FUNCTIONS_ARE)) == ours
            with pytest.raises(WorkerDied):
                await workers.analysis.run(partial(os._exit, 1))
    finally:
        for worker in workers.beside_store:
            await maybeDeferred(worker.stop)
    assert await direct_analysis_worker().run(partial(eval, WHERE_FUNCTIONS_ARE)) == ours
