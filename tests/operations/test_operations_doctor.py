"""The doctor, with examinations that hang or fail."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.checks.findings import Finding, Severity
from mailcheck.operations.doctor import (
    DEADLINE,
    Doctor,
    Examination,
    Health,
    judge_silent_spamd,
)
from tests.house import result_of
from tests.table import rows

FULL = Finding("doctor.disk.full", Severity.ERROR, "The disk is full.", "Make room.")


async def full_disk() -> Iterable[Finding]:
    """Report a full disk."""
    return [FULL]


async def broken() -> Iterable[Finding]:
    """Raise an unexpected exception."""
    raise ZeroDivisionError("a fault of ours")


def examined(**examiners: Callable[[], Awaitable[Any]]) -> dict[str, Examination]:
    """Run the examinations until their deadline, and return the results by topic."""
    clock = Clock()
    examining = Deferred.fromCoroutine(Doctor(examiners, clock).examine())
    clock.advance(DEADLINE)
    found = {one.topic: one for one in result_of(examining)}
    assert not clock.getDelayedCalls()
    return found


def test_an_examination_that_hangs() -> None:
    """A hanging examination is undetermined after its deadline, and the others are reported."""
    found = examined(resolver=Deferred, disk=full_disk)
    assert found["disk"].findings == (FULL,)
    assert found["disk"].health is Health.PROBLEM
    assert found["resolver"].health is Health.UNKNOWN
    (silence,) = found["resolver"].findings
    assert silence.meaning == "The examination did not finish within 20 s."


def test_an_examination_that_fails(logged_failures: list[Any]) -> None:
    """A failing examination is logged and undetermined."""
    found = examined(resolver=broken, disk=full_disk)
    assert found["disk"].health is Health.PROBLEM
    assert found["resolver"].health is Health.UNKNOWN
    (told,) = logged_failures
    assert told["log_failure"].check(ZeroDivisionError)


@rows(
    ("auto", False, False, ["doctor.spamd.missing"]),
    ("auto", True, False, []),
    ("auto", False, True, []),
    ("off", True, False, ["doctor.spamd.off"]),
    ("off", False, True, []),
    ("127.0.0.1:783", True, True, ["doctor.spamd.silent"]),
)
def test_a_spamd_that_does_not_answer(
    option: str, is_installed: bool, has_rspamd: bool, expected: list[str]
) -> None:
    """A configured spamd must answer. Otherwise spamd on this machine or rspamd is enough."""
    found = judge_silent_spamd(option, is_installed=is_installed, has_rspamd=has_rspamd)
    assert [finding.id for finding in found] == expected
