"""A malicious spamd, and mails that are built to harm spamd or its report."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.deliverability.content_filter import (
    MAX_DESCRIPTION,
    MAX_RULES,
    FilterProblem,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.checks.deliverability.filtered_mail import MAX_FILTERED
from mailcheck.probes.spamd_client import MAX_ANSWER
from mailcheck.probes.spamd_filter import FilterLimits
from tests.linear import memory_below
from tests.probes.scripted_hosts import AcceptedConnection, collect
from tests.probes.scripted_spamd import MAIL, ScriptedSpamd, answer
from tests.table import rows

pytestmark = pytest.mark.attack

BOUND = 120.0  # seconds, as `ContentFilter` promises


def judging() -> tuple[ScriptedSpamd, list[Any], AcceptedConnection]:
    """Give a mail to spamd. Return spamd, what is found, and its connection."""
    spamd = ScriptedSpamd()
    return spamd, collect(spamd.content_filter.judge(MAIL)), spamd.connection()


def problem_of(results: list[Any]) -> FilterProblem:
    """Return the reason why there is no verdict."""
    (outcome,) = results
    assert isinstance(outcome, FilterUnavailable)
    return outcome.problem


def test_an_answer_without_an_end() -> None:
    """Gigabytes are cut off at the limit of an answer, and are not stored."""
    spamd, results, connection = judging()
    with memory_below(8 * MAX_ANSWER):
        piece = b"x" * 65_536
        for _ in range(1_000):
            connection.send(piece)
            if connection.transport.aborted:
                break
    assert connection.transport.aborted
    connection.hang_up()
    assert problem_of(results) is FilterProblem.BROKEN_ANSWER
    assert spamd.connections.getDelayedCalls() == []


@rows(b"", b"S", b"\r\n", b"SPAMD/1.1 0 EX_OK\r\n")
def test_an_answer_that_drips(drip: bytes) -> None:
    """A server that sends a little each second delays a check no longer than a silent one."""
    spamd, results, connection = judging()
    for _ in range(31):
        if drip:
            connection.send(drip)
        spamd.pass_time(1)
    assert problem_of(results) is FilterProblem.TIMEOUT
    assert connection.transport.aborted
    connection.send(b"too late")
    connection.hang_up()
    assert spamd.connections.getDelayedCalls() == []


@given(st.lists(st.binary(max_size=300), max_size=5), st.booleans())
def test_any_answer(pieces: list[bytes], is_framed: bool) -> None:
    """Any octets result in exactly one verdict or reason."""
    spamd, results, connection = judging()
    if is_framed:
        body = b"".join(pieces)
        connection.send(b"SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n" % len(body))
        connection.send(b"Spam: False ; 0.0 / 5.0\r\n\r\n")
    for piece in pieces:
        connection.send(piece)
    connection.hang_up()
    if not is_framed and not any(pieces):
        spamd.pass_time(1.1)  # the connection was closed without an answer: one more attempt
        spamd.connection().hang_up()
    (outcome,) = results
    assert isinstance(outcome, FilterVerdict | FilterUnavailable)
    assert spamd.connections.getDelayedCalls() == []


def test_a_report_of_a_million_rules() -> None:
    """As many rules as an answer has room for are read at once, and too many are rejected."""
    _, results, connection = judging()
    connection.send(answer(*[" 0.0 A"] * 10_000))
    connection.hang_up()
    assert problem_of(results) is FilterProblem.BROKEN_ANSWER


@rows("[" * 100_000, " " * 100_000, "9" * 100_000, "-" * 100_000)
def test_long_lines(line: str) -> None:
    """An endless line neither slows down a regular expression nor makes a long description."""
    _, results, connection = judging()
    connection.send(answer(" 0.0 A  text", line))
    connection.hang_up()
    (verdict,) = results
    assert isinstance(verdict, FilterVerdict)
    assert all(len(rule.description) <= MAX_DESCRIPTION for rule in verdict.rules)
    assert len(verdict.rules) <= MAX_RULES


@rows("silent", "refuses", "hangs up", "unreachable")
def test_a_flood_of_mails_on_a_sick_spamd(behaviour: str) -> None:
    """A thousand mails with a broken spamd all have their result within the deadline."""
    spamd = ScriptedSpamd(FilterLimits())
    results = [collect(spamd.content_filter.judge(MAIL)) for _ in range(1_000)]
    served = 0
    passed = 0.0
    while not all(results):
        for index in range(served, len(spamd.connections.tcpClients)):
            if behaviour == "refuses":
                spamd.connections.refuse(index)
            elif behaviour != "unreachable":
                connection = spamd.connection(index)
                if behaviour == "hangs up":
                    connection.hang_up()
        served = len(spamd.connections.tcpClients)
        spamd.pass_time(0.5)
        passed += 0.5
        assert passed < BOUND
    assert all(isinstance(each[0], FilterUnavailable) for each in results)
    assert sum(problem_of(each) is FilterProblem.BUSY for each in results) >= 700
    assert spamd.connections.getDelayedCalls() == []


@rows(
    b"x" * (MAX_FILTERED * 20),
    b"\n" * (MAX_FILTERED * 4),
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\n" * 100_000,
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    + b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" * 20_000,
    b"A: b\r\n" * 200_000,
)
def test_large_hostile_mails(mail: bytes) -> None:
    """Only the filter's share of a large mail is sent, whatever the mail contains."""
    spamd = ScriptedSpamd()
    results = collect(spamd.content_filter.judge(mail))
    if spamd.connections.dialled:
        assert len(spamd.connection().take()) <= MAX_FILTERED + 100
        spamd.content_filter.close()
    else:
        assert problem_of(results) is FilterProblem.TOO_LARGE
