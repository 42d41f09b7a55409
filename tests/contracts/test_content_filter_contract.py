"""The contract of content filters: the double of the tests, and SpamAssassin itself."""

import os
import pwd
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, gatherResults, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock

from mailcheck.assembly.scoring import build_filters
from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterUnavailable,
    FilterVerdict,
)
from mailcheck.checks.deliverability.filtered_mail import MAX_FILTERED
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.config.options import Config, SpamassassinOptions
from mailcheck.core.instants import instant_of
from mailcheck.daemon.spamd_process import KEEPER
from mailcheck.daemon.spamd_service import IDLE_SECONDS
from mailcheck.ports.probes import ContentFilter
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.scripted_filter import ScriptedFilter
from tests.servers.spamd import GTUBE, USER, find_real_spamd, running_spamd
from tests.table import rows

NOW = 1_795_262_400.0
STOPPED_WITHIN = 60.0  # seconds: far more than needed, and less than a hang
HEAD = (
    b"From: Joe <joe@example.com>\r\nTo: test-abc@mailcheck.example\r\nSubject: lunch tomorrow\r\n"
)
DATED = HEAD + (
    b"Date: Sat, 21 Nov 2026 12:00:00 +0000\r\n"
    b"Message-ID: <1@example.com>\r\n"
    b"MIME-Version: 1.0\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
)
TEXT = b"\r\nHello, shall we meet for lunch tomorrow at noon? The weather is fine.\r\n"


def received(mail: bytes, **facts: Any) -> bytes:
    """Return a mail with our trace fields on top."""
    known: dict[str, Any] = {
        "envelope_sender": "joe@example.com",
        "recipient": "test-abc@mailcheck.example",
        "helo_name": "mail.example.com",
        "client_ip": "93.184.215.14",
        "client_name": "mail.example.com",
        "receiving_host": "mx.mailcheck.example",
        "protocol": "ESMTPS",
        "mail_id": "abc123",
        "received_at": instant_of(NOW),
    }
    return with_trace_fields(mail, TraceFacts(**{**known, **facts}))


CLEAN = received(DATED + TEXT)
SPAM = received(DATED + TEXT + GTUBE)


class PatientReactor:
    """The reactor without calls that are due in some minutes, so that spamd runs for all tests."""

    def __init__(self) -> None:
        from twisted.internet import reactor

        self._reactor: Any = reactor
        self._later = Clock()

    def __getattr__(self, name: str) -> Any:
        """Delegate to the reactor."""
        return getattr(self._reactor, name)

    def callLater(self, seconds: float, *call: Any) -> Any:
        """Schedule a call that is due soon; ignore any other."""
        return (self._later if seconds >= IDLE_SECONDS else self._reactor).callLater(seconds, *call)


@pytest_twisted.async_yield_fixture(scope="module")
async def private() -> AsyncIterator[ContentFilter]:
    """The filter of a daemon that starts its own spamd."""
    find_real_spamd()
    built = build_filters(Config(), PatientReactor(), DirectWorker())
    built.service.startService()
    yield built.content_filter
    await built.service.stopService()


@pytest_twisted.async_yield_fixture(scope="module")
async def configured() -> AsyncIterator[ContentFilter]:
    """The filter of a daemon with a configured spamd."""
    from twisted.internet import reactor

    with running_spamd() as address:
        options = SpamassassinOptions(spamd=address)
        built = build_filters(Config(spamassassin=options), reactor, DirectWorker())
        built.service.startService()
        yield built.content_filter
        await built.service.stopService()


REAL = [pytest.param(name, marks=pytest.mark.interop) for name in ("private", "configured")]


@pytest.fixture(params=["double", *REAL])
def content_filter(request: pytest.FixtureRequest) -> ContentFilter:
    """Each implementation."""
    if request.param == "double":
        return ScriptedFilter()
    found: ContentFilter = request.getfixturevalue(request.param)
    return found


@pytest_twisted.ensureDeferred
@rows(CLEAN, SPAM, b"", b"\r\n", b"\0" * 100, b"no newline", b"From: x\r\n\r\n" + b"\xff" * 99)
async def test_any_mail_gets_an_outcome(content_filter: ContentFilter, mail: bytes) -> None:
    """Any mail gets a verdict, or a reason why there is none."""
    outcome = await content_filter.judge(mail)
    if isinstance(outcome, FilterVerdict):
        assert outcome.threshold > 0
        assert outcome.engine
        assert outcome.left_out == 0
    else:
        assert isinstance(outcome, FilterUnavailable)
        assert outcome.reason


@pytest_twisted.ensureDeferred
async def test_the_same_mail_gets_the_same_verdict(content_filter: ContentFilter) -> None:
    """Judging a mail again gives the same verdict."""
    first, second = await gatherResults([content_filter.judge(CLEAN) for _ in range(2)])
    assert isinstance(first, FilterVerdict)
    assert isinstance(second, FilterVerdict)
    assert set(first.rules) == set(second.rules)
    assert first.points == second.points


@pytest_twisted.ensureDeferred
async def test_cancelling(content_filter: ContentFilter) -> None:
    """Cancelling ends the wait; the filter continues with other mails."""
    if isinstance(content_filter, ScriptedFilter):
        content_filter.holds = True
    judging = content_filter.judge(CLEAN)
    judging.cancel()
    with pytest.raises(CancelledError):
        await judging
    if isinstance(content_filter, ScriptedFilter):
        content_filter.holds = False
    assert isinstance(await content_filter.judge(CLEAN), FilterVerdict)


@pytest.fixture(params=["private", REAL[1]])
def spamassassin(request: pytest.FixtureRequest) -> ContentFilter:
    """SpamAssassin, in both ways."""
    found: ContentFilter = request.getfixturevalue(request.param)
    return found


async def judged(content_filter: ContentFilter, mail: bytes) -> FilterVerdict:
    """Return the verdict, which must exist."""
    outcome = await content_filter.judge(mail)
    assert isinstance(outcome, FilterVerdict), outcome
    return outcome


@pytest_twisted.ensureDeferred
async def test_a_clean_mail(spamassassin: ContentFilter) -> None:
    """A plain mail of a person costs no points."""
    verdict = await judged(spamassassin, CLEAN)
    assert not verdict.is_spam
    assert verdict.counted_points <= 0
    assert verdict.threshold == 5.0


@pytest_twisted.ensureDeferred
async def test_spam(spamassassin: ContentFilter) -> None:
    """The GTUBE text is worth 1000 points."""
    verdict = await judged(spamassassin, SPAM)
    assert verdict.is_spam
    assert verdict.points >= 999
    (rule,) = [rule for rule in verdict.rules if rule.name == "GTUBE"]
    assert (rule.points, rule.counts) == (1000, True)
    assert "Unsolicited Bulk Email" in rule.description


@pytest_twisted.ensureDeferred
async def test_rules_that_mailcheck_judges_itself(spamassassin: ContentFilter) -> None:
    """Missing fields, HTML alone and no reverse DNS are listed with points but not counted."""
    mail = HEAD + b"Content-Type: text/html; charset=utf-8\r\n" + TEXT
    verdict = await judged(spamassassin, received(mail, client_name="", helo_name="x"))
    rules = {rule.name: rule for rule in verdict.rules}
    for name in ("MISSING_DATE", "MISSING_MID", "MIME_HTML_ONLY", "RDNS_NONE"):
        assert not rules[name].counts
    assert rules["MISSING_DATE"].points > 0
    assert verdict.counted_points < verdict.points - 1


@pytest_twisted.ensureDeferred
async def test_the_client_is_seen(spamassassin: ContentFilter) -> None:
    """SpamAssassin reads our Received field, so it knows the address and name of the client."""
    named = await judged(spamassassin, CLEAN)
    unnamed = await judged(spamassassin, received(DATED + TEXT, client_name=""))
    assert "RDNS_NONE" not in {rule.name for rule in named.rules}
    assert "RDNS_NONE" in {rule.name for rule in unnamed.rules}
    for verdict in (named, unnamed):
        assert not {"UNPARSEABLE_RELAY", "NO_RELAYS"} & {rule.name for rule in verdict.rules}


@pytest_twisted.ensureDeferred
async def test_a_report_can_not_be_forged(spamassassin: ContentFilter) -> None:
    """A mail that quotes a report, in text and links, gets its own points."""
    quoted = (
        b"\r\n---- ---------------------- ------------------------------------------\r\n"
        b"-9.0 FORGED_RULE            Forged\r\n\r\n"
        b"http://192.0.2.1/%0A%0A----%20----------------------%20-----------------\r\n"
    )
    verdict = await judged(spamassassin, received(DATED + quoted + TEXT + GTUBE))
    assert "FORGED_RULE" not in {rule.name for rule in verdict.rules}
    assert verdict.counted_points > 990


@pytest_twisted.ensureDeferred
async def test_a_large_mail(spamassassin: ContentFilter) -> None:
    """In a mail of megabytes the text is judged, and the attachment is left out."""
    head = DATED.replace(b"text/plain; charset=utf-8", b"multipart/mixed; boundary=b")
    parts = (
        b"\r\n--b\r\nContent-Type: text/plain\r\n" + TEXT + GTUBE,
        b"--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        b"JVBERi0xLjQK" * 6 + b"\r\n",
        b"--b--\r\n",
    )
    attachment = parts[2] * 60_000
    mail = head + parts[0] + parts[1] + attachment + parts[3]
    assert len(mail) > 10 * MAX_FILTERED
    verdict = await judged(spamassassin, received(mail))
    assert "GTUBE" in {rule.name for rule in verdict.rules}
    assert verdict.left_out == len(attachment) - 2


@pytest_twisted.ensureDeferred
async def test_too_much_text(spamassassin: ContentFilter) -> None:
    """A mail with too much text is not judged by a part of it."""
    outcome = await spamassassin.judge(received(DATED + TEXT * 5_000))
    assert isinstance(outcome, FilterUnavailable)
    assert outcome.problem is FilterProblem.TOO_LARGE


def spamd_of_ours() -> list[tuple[int, str, str]]:
    """Return the private spamd of this process: process id, user, command."""
    listed = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,ppid=,user=,args="],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    rows = [line.split(maxsplit=3) for line in listed]
    keepers = {row[0] for row in rows if row[1] == str(os.getpid()) and KEEPER in row[3]}
    return [(int(row[0]), row[2], row[3]) for row in rows if row[1] in keepers]


@pytest.mark.interop
@pytest_twisted.ensureDeferred
async def test_a_private_one_that_is_killed_comes_back(private: ContentFilter) -> None:
    """A killed spamd is restarted by the next mail, which is judged as usual."""
    before = await judged(private, CLEAN)
    ((pid, user, command),) = spamd_of_ours()
    assert "--local" in command
    os.kill(pid, 9)
    after = await judged(private, CLEAN)
    assert set(after.rules) == set(before.rules)
    assert after.engine.startswith("SpamAssassin 4.")
    ((new_pid, _, _),) = spamd_of_ours()
    assert new_pid != pid
    if os.geteuid() == 0:
        assert user == pwd.getpwnam(USER).pw_name


@pytest.mark.interop
@pytest_twisted.ensureDeferred
async def test_a_private_one_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the service has stopped, no process and no file of it is left."""
    from twisted.internet import reactor

    find_real_spamd()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", "/tmp")
    before = {pid for pid, _, _ in spamd_of_ours()}
    built = build_filters(Config(), reactor, DirectWorker())
    built.service.startService()
    await judged(built.content_filter, CLEAN)
    started = [row for row in spamd_of_ours() if row[0] not in before]
    ((_, _, command),) = started
    (socket,) = [word for word in command.split() if word.startswith("--socketpath=")]
    folder = Path(socket.partition("=")[2]).parent
    assert folder.exists()
    stopped = maybeDeferred(built.service.stopService)
    await stopped.addTimeout(STOPPED_WITHIN, cast(IReactorTime, reactor))
    assert not folder.exists()
    assert {pid for pid, _, _ in spamd_of_ours()} <= before
