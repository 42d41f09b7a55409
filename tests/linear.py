"""Proof that a function reads hostile input in linear time, on a machine of any speed."""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Input = TypeVar("Input", str, bytes)

FACTOR = 8
"""How many times longer the long input is than the short one."""

TOLERANCE = 3
"""How many times more than that the time may grow. In quadratic time it would grow `FACTOR` times
more."""

LEAST = 0.000_3
"""Seconds below which a processor time is taken for so many seconds."""

ATTEMPTS = 5
"""How often the times are compared: another process can only make a measurement longer."""


def count_steps(call: Callable[[], object]) -> int:
    """Return the number of lines of Python that a call executes."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(previous)
    return steps


def count_calls(call: Callable[[], object]) -> int:
    """Return the number of function calls that a call causes, including those of C functions."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(previous)
    return calls


@contextmanager
def memory_below(most: float) -> Iterator[None]:
    """Require that what happens in the context takes fewer octets of additional memory."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} octets"


def assert_linear(
    read: Callable[[Input], object], piece: Input, before: Input, octets: int = 2_048
) -> None:
    """Fail if more input takes more work than in proportion.

    The input is ``before``, followed by ``piece`` again and again. Twice the input takes about
    twice the lines of Python. `FACTOR` times the input takes about as many times the processor
    time, which shows the work of regular expressions.
    """
    count = octets // len(piece)
    short, double, long = (before + piece * (count * times) for times in (1, 2, FACTOR))
    read(before + piece)  # fills caches
    steps = count_steps(lambda: read(short))
    assert count_steps(lambda: read(double)) < 2.3 * steps + 500, f"too many steps for {piece!r}"
    for _ in range(ATTEMPTS):
        limit = TOLERANCE * FACTOR * max(LEAST, _seconds(read, short))
        seconds = _seconds(read, long)
        if seconds < limit:
            return
    raise AssertionError(f"{len(long)} characters of {piece!r} take {seconds:.3f} s")


def _seconds(read: Callable[[Input], object], text: Input) -> float:
    began = time.thread_time()
    read(text)
    return time.thread_time() - began
