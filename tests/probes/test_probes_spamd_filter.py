"""The content filter: its requests to spamd, and the results of answers and failures."""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.logger import LogEvent
from twisted.python.failure import Failure

from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.core.errors import StoreUnavailable
from mailcheck.probes.spamd_address import SpamdAddress, parse_spamd_address
from mailcheck.probes.spamd_filter import AutomaticSpamd, FilterLimits, NoSpamd, QueuedFilter
from mailcheck.workers.scheduling import DirectWorker
from tests.probes.scripted_hosts import collect
from tests.probes.scripted_spamd import (
    MAIL,
    PONG,
    Connections,
    ScriptedPrivateSpamd,
    ScriptedSpamd,
    answer,
)
from tests.table import rows

LARGE_TEXT = b"Subject: lunch\r\n\r\n" + b"text " * 60_000


def problem_of(results: list[Any]) -> FilterProblem:
    """Return the reason why a verdict is missing."""
    (outcome,) = results
    assert isinstance(outcome, FilterUnavailable)
    return outcome.problem


@pytest.fixture
def spamd() -> ScriptedSpamd:
    """A configured spamd."""
    return ScriptedSpamd()


class TestJudging:
    """One mail."""

    def test_a_verdict(self, spamd: ScriptedSpamd) -> None:
        """The filter sends one REPORT on one connection, and reads the verdict until its end."""
        results = collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        assert connection.take() == b"REPORT SPAMC/1.5\r\nContent-length: 28\r\n\r\n" + MAIL
        said = answer(" 5.1 URI_HEX                text", spam="True", points="5.1")
        for octet in range(len(said)):
            connection.send(said[octet : octet + 1])
        assert not results
        connection.hang_up()
        (verdict,) = results
        assert isinstance(verdict, FilterVerdict)
        assert (verdict.points, verdict.threshold, verdict.is_spam) == (5.1, 5.0, True)
        assert [rule.name for rule in verdict.rules] == ["URI_HEX"]
        assert spamd.connections.getDelayedCalls() == []

    def test_a_mail_without_an_end(self, spamd: ScriptedSpamd) -> None:
        """A line break is added to a mail without one, since spamd would wait for it."""
        collect(spamd.content_filter.judge(b"Subject: x\r\n\r\ntext"))
        said = spamd.connection().take()
        assert said == b"REPORT SPAMC/1.5\r\nContent-length: 20\r\n\r\nSubject: x\r\n\r\ntext\r\n"

    def test_attachments_that_are_left_out(self, spamd: ScriptedSpamd) -> None:
        """The verdict says how much of a large mail was not sent to the filter."""
        mail = b"Content-Type: image/png\r\n\r\n" + b"x" * 300_000 + b"\n"
        results = collect(spamd.content_filter.judge(mail))
        connection = spamd.connection()
        assert len(connection.take()) < 100
        connection.send(answer())
        connection.hang_up()
        assert results[0].left_out == 300_001

    def test_too_large(self, spamd: ScriptedSpamd) -> None:
        """A mail with more text than the filter accepts is not sent."""
        results = collect(spamd.content_filter.judge(LARGE_TEXT))
        assert problem_of(results) is FilterProblem.TOO_LARGE
        assert spamd.connections.dialled == []

    def test_a_worker_that_has_died(self) -> None:
        """If a large mail cannot be parsed, the result is undetermined."""

        class DeadWorker(DirectWorker):
            def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
                return fail(StoreUnavailable("the process has died"))

        content_filter = QueuedFilter(NoSpamd(), Connections(), DeadWorker())
        results = collect(content_filter.judge(LARGE_TEXT))
        assert problem_of(results) is FilterProblem.UNREACHABLE

    def test_cancelling(self, spamd: ScriptedSpamd) -> None:
        """Cancelling aborts the connection and frees the slot."""
        judging = spamd.content_filter.judge(MAIL)
        results = collect(judging)
        connection = spamd.connection()
        judging.cancel()
        assert isinstance(results[0], Failure)
        assert results[0].check(CancelledError)
        assert connection.transport.aborted
        connection.hang_up()
        assert spamd.connections.getDelayedCalls() == []

    def test_a_fault_of_ours(self, logged_failures: list[LogEvent]) -> None:
        """An internal error is logged, and the result is undetermined."""

        class Broken(NoSpamd):
            async def find(self) -> Any:
                raise RuntimeError("broken")

        results = collect(ScriptedSpamd(finder=Broken()).content_filter.judge(MAIL))
        assert problem_of(results) is FilterProblem.BROKEN_ANSWER
        assert len(logged_failures) == 1
        logged_failures.clear()

    def test_switched_off(self) -> None:
        """Without a filter the result says so."""
        results = collect(ScriptedSpamd(finder=NoSpamd()).content_filter.judge(MAIL))
        assert problem_of(results) is FilterProblem.OFF


BROKEN_ANSWERS = {
    "nonsense": b"220 mail.example ESMTP\r\n",
    "another status": b"SPAMD/1.0 76 Bad header line: REPORT\r\n",
    "no status": b"SPAMD/1.1 EX_OK\r\n\r\n",
    "breaks off in a field": answer()[:30],
    "breaks off in the table": answer(" 1.0 URI_HEX  text", points="1.0")[:-5],
    "is longer than it says": answer() + b"x",
    "no length": answer().replace(b"Content-length", b"Content-size"),
    "no points": answer().replace(b"Spam:", b"Ham:"),
    "broken points": answer(points="many"),
    "a field without a name": answer().replace(b"Spam: ", b" Spam "),
    "too many fields": answer().replace(b"Spam:", b"A: b\r\n" * 30 + b"Spam:"),
    "no table": b"SPAMD/1.1 0 EX_OK\r\nContent-length: 3\r\nSpam: False ; 0.0 / 5.0\r\n\r\nx\r\n",
    "a sum that is wrong": answer(" 1.0 URI_HEX  text", points="3.0"),
    "pong": PONG,
}


class TestFailures:
    """Failures of spamd."""

    @pytest.mark.parametrize("said", BROKEN_ANSWERS.values(), ids=BROKEN_ANSWERS)
    def test_broken_answers(self, spamd: ScriptedSpamd, said: bytes) -> None:
        """An incomplete or invalid answer is not a verdict."""
        results = collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        connection.send(said)
        connection.hang_up()
        assert problem_of(results) is FilterProblem.BROKEN_ANSWER
        assert len(spamd.connections.dialled) == 1

    @rows(
        (b"SPAMD/1.0 79 Timeout: (25 second timeout)\r\n", FilterProblem.TIMEOUT),
        (b"SPAMD/1.0 75 EX_TEMPFAIL\r\n", FilterProblem.BUSY),
    )
    def test_what_spamd_says_is_wrong(
        self, spamd: ScriptedSpamd, status: bytes, problem: FilterProblem
    ) -> None:
        """A status of spamd with a known meaning is reported as such."""
        results = collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        connection.send(status)
        connection.hang_up()
        assert problem_of(results) is problem

    def test_half_a_judgement(self, spamd: ScriptedSpamd) -> None:
        """Points of a run that SpamAssassin aborted do not count."""
        results = collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        connection.send(answer(" 0.0 TIME_LIMIT_EXCEEDED    Exceeded time limit / deadline"))
        connection.hang_up()
        assert problem_of(results) is FilterProblem.TIMEOUT

    def test_silence(self, spamd: ScriptedSpamd) -> None:
        """A silent spamd times out after 30 seconds."""
        results = collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        spamd.pass_time(29.5)
        assert not results
        spamd.pass_time(1)
        assert problem_of(results) is FilterProblem.TIMEOUT
        assert connection.transport.aborted
        connection.hang_up()
        assert spamd.connections.getDelayedCalls() == []

    def test_no_way_to_it(self, spamd: ScriptedSpamd) -> None:
        """A connection attempt times out too."""
        results = collect(spamd.content_filter.judge(MAIL))
        spamd.pass_time(46)
        assert problem_of(results) in (FilterProblem.TIMEOUT, FilterProblem.UNREACHABLE)
        assert spamd.connections.getDelayedCalls() == []

    @pytest.mark.parametrize("fails", ["refuses", "hangs up"])
    def test_once_more(self, spamd: ScriptedSpamd, fails: str) -> None:
        """A restarting spamd gets the mail a second time, but not a third time."""

        def fail() -> None:
            if fails == "refuses":
                spamd.connections.refuse()
            else:
                spamd.connection().hang_up()

        results = collect(spamd.content_filter.judge(MAIL))
        fail()
        assert not results
        spamd.pass_time(1.1)
        assert len(spamd.connections.dialled) == 2
        connection = spamd.connection()
        connection.send(answer())
        connection.hang_up()
        assert isinstance(results[0], FilterVerdict)

        results = collect(spamd.content_filter.judge(MAIL))
        fail()
        spamd.pass_time(1.1)
        fail()
        assert problem_of(results) is FilterProblem.UNREACHABLE
        assert len(spamd.connections.dialled) == 4
        assert spamd.connections.getDelayedCalls() == []


class TestManyMails:
    """Limits for many mails."""

    @pytest.fixture
    def spamd(self) -> ScriptedSpamd:
        """A spamd with two mails at a time, and a queue of three more."""
        return ScriptedSpamd(FilterLimits(at_a_time=2, waiting=3, wait_seconds=10))

    def test_two_at_a_time(self, spamd: ScriptedSpamd) -> None:
        """A queued mail is sent when an earlier one is done, in the order of arrival."""
        outcomes = [collect(spamd.content_filter.judge(b"X: %d\r\n\r\n" % n)) for n in range(5)]
        for number in range(5):
            assert len(spamd.connections.dialled) == min(5, number + 2)
            connection = spamd.connection(number)
            assert b"X: %d" % number in connection.take()
            connection.send(answer())
            connection.hang_up()
            assert isinstance(outcomes[number][0], FilterVerdict)
        assert spamd.connections.getDelayedCalls() == []

    def test_no_room(self, spamd: ScriptedSpamd) -> None:
        """A mail beyond the queue fails at once."""
        outcomes = [collect(spamd.content_filter.judge(MAIL)) for _ in range(6)]
        assert problem_of(outcomes[5]) is FilterProblem.BUSY
        assert not any(outcomes[:5])
        spamd.content_filter.close()

    def test_no_turn(self, spamd: ScriptedSpamd) -> None:
        """A mail that waits too long fails, and the next one takes its turn."""
        outcomes = [collect(spamd.content_filter.judge(MAIL)) for _ in range(3)]
        spamd.pass_time(10.1)
        assert problem_of(outcomes[2]) is FilterProblem.BUSY
        for index in (0, 1):
            connection = spamd.connection(index)
            connection.send(answer())
            connection.hang_up()
        assert isinstance(outcomes[1][0], FilterVerdict)
        for _ in range(2):
            collect(spamd.content_filter.judge(MAIL))
        assert len(spamd.connections.dialled) == 4
        spamd.content_filter.close()

    def test_who_leaves_the_queue(self, spamd: ScriptedSpamd) -> None:
        """A cancelled mail leaves the queue."""
        judging = [spamd.content_filter.judge(MAIL) for _ in range(5)]
        outcomes = [collect(each) for each in judging]
        judging[2].cancel()
        assert outcomes[2][0].check(CancelledError)
        assert not collect(spamd.content_filter.judge(MAIL))
        spamd.content_filter.close()

    def test_stopping(self, spamd: ScriptedSpamd) -> None:
        """When the daemon stops, running and later mails are undetermined."""
        outcomes = [collect(spamd.content_filter.judge(MAIL)) for _ in range(5)]
        connection = spamd.connection(0)
        spamd.content_filter.close()
        outcomes.append(collect(spamd.content_filter.judge(MAIL)))
        assert {problem_of(each) for each in outcomes} == {FilterProblem.UNREACHABLE}
        assert connection.transport.aborted
        assert spamd.connections.getDelayedCalls() == []


class Automatic(ScriptedSpamd):
    """``auto``: a running spamd, else a private one."""

    def __init__(self) -> None:
        self.private = ScriptedPrivateSpamd()
        places = (SpamdAddress("127.0.0.1", 783), SpamdAddress(path="/run/spamd.sock"))
        super().__init__()
        finder = AutomaticSpamd(self.connections, self.private, places)
        self.content_filter = QueuedFilter(finder, self.connections, DirectWorker())

    def reply(self, said: bytes, accept: Callable[[Connections], Any]) -> bytes:
        """Answer a connection, and return its request."""
        connection = accept(self.connections)
        heard: bytes = connection.take()
        connection.send(said)
        connection.hang_up()
        return heard


class TestFinding:
    """``[spamassassin] spamd = auto``."""

    def test_one_that_runs(self) -> None:
        """A spamd that answers PING is used without a further search."""
        spamd = Automatic()
        results = collect(spamd.content_filter.judge(MAIL))
        assert spamd.reply(PONG, Connections.accept) == b"PING SPAMC/1.5\r\n\r\n"
        assert spamd.reply(answer(), Connections.accept).startswith(b"REPORT")
        assert results[0].engine == "SpamAssassin"
        collect(spamd.content_filter.judge(MAIL))
        assert spamd.reply(answer(), Connections.accept).startswith(b"REPORT")
        assert spamd.private.asked == 0

    def test_one_of_our_own(self) -> None:
        """Without a running spamd a private one is started, and its version is in the result."""
        spamd = Automatic()
        results = collect(spamd.content_filter.judge(MAIL))
        spamd.reply(b"HTTP/1.1 400 Bad Request\r\n", Connections.accept)
        spamd.connections.refuse_unix()
        assert spamd.reply(answer(), Connections.accept_unix).startswith(b"REPORT")
        assert results[0].engine == "SpamAssassin 4.0.1"
        assert spamd.connections.dialled == [
            "127.0.0.1:783",
            "unix:/run/spamd.sock",
            "unix:/private/socket",
        ]

    def test_the_next_after_silence(self) -> None:
        """A server that accepts connections silently delays the search by two seconds."""
        spamd = Automatic()
        collect(spamd.content_filter.judge(MAIL))
        connection = spamd.connection()
        spamd.pass_time(2.1)
        assert connection.transport.aborted
        assert spamd.connections.dialled[-1] == "unix:/run/spamd.sock"
        spamd.content_filter.close()

    def test_one_that_has_gone(self) -> None:
        """When the found spamd is gone, it is searched again, and the private one takes over."""
        spamd = Automatic()
        collect(spamd.content_filter.judge(MAIL))
        spamd.reply(PONG, Connections.accept)
        spamd.reply(answer(), Connections.accept)
        results = collect(spamd.content_filter.judge(MAIL))
        spamd.connections.refuse()
        spamd.pass_time(1.1)
        spamd.connections.refuse()
        spamd.connections.refuse_unix()
        spamd.reply(answer(), Connections.accept_unix)
        assert isinstance(results[0], FilterVerdict)

    @rows(FilterProblem.NOT_INSTALLED, FilterProblem.UNREACHABLE)
    def test_none(self, problem: FilterProblem) -> None:
        """If the private spamd cannot be started, the result says why."""
        spamd = Automatic()
        spamd.private.problem = problem
        results = collect(spamd.content_filter.judge(MAIL))
        spamd.connections.refuse()
        spamd.connections.refuse_unix()
        assert problem_of(results) is problem
        assert spamd.connections.getDelayedCalls() == []


@rows("127.0.0.1:783", "[::1]:783", "spamd:783", "unix:/run/spamd.sock")
def test_addresses(text: str) -> None:
    """An address is parsed and formatted as in the configuration."""
    assert str(parse_spamd_address(text)) == text


@rows("", "yes", "127.0.0.1", "127.0.0.1:0", "a:99999", "a b:1", "unix:spamd.sock", "::1:783")
def test_no_addresses(text: str) -> None:
    """An address that is neither host with port nor an absolute path is rejected."""
    with pytest.raises(ValueError, match="unix:/path"):
        parse_spamd_address(text)
