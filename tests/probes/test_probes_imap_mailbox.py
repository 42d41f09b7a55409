"""Reading a mailbox of an IMAP server, over the bytes of the connection."""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.error import DNSLookupError
from twisted.internet.task import Clock

from mailcheck.core.domains.report_mailboxes import LARGEST_MAIL, ReportMailbox, Then, Tls
from mailcheck.core.instants import Instant
from mailcheck.ports.report_mailboxes import FetchedMail, MailboxFailed, Place, Remedy
from mailcheck.probes import imap_mailbox
from mailcheck.probes.imap_mailbox import SECONDS, ImapMailbox, OpenFolder, Way
from tests.house import result_of
from tests.probes.scripted_imap import CAPABILITIES, VALIDITY, ScriptedImap
from tests.table import rows

NOW = Instant(1_795_000_000_000)

MAILBOX = ReportMailbox("shop", "imap.example.com", 993, user="r@example.com", password='pa"ss')

MAILS = {3: b"Subject: three\r\n\r\n(\xff) {9}\r\n", 7: b"Subject: seven\r\n\r\nseven\r\n"}

TOKEN = "t" * 2_500

NOWHERE = Place()


def opener(server: ScriptedImap, **changes: Any) -> ImapMailbox:
    """Return the mailbox of a server."""
    mailbox = replace(MAILBOX, **changes)
    return ImapMailbox(mailbox, lambda: Way(server), Clock(), lambda: NOW)


def opened(
    server: ScriptedImap, token: str = "", place: Place = NOWHERE, **changes: Any
) -> OpenFolder:
    """Open the mailbox of a server."""
    folder: OpenFolder = server.run(opener(server, **changes).open(token, place))
    return folder


def failure_of(server: ScriptedImap, token: str = "", **changes: Any) -> MailboxFailed:
    """Return why a mailbox cannot be opened."""
    with pytest.raises(MailboxFailed) as failure:
        opened(server, token, **changes)
    return failure.value


def read(server: ScriptedImap, folder: OpenFolder, limit: int = 50) -> list[Sequence[FetchedMail]]:
    """Read all batches."""
    batches = []
    while (batch := server.run(folder.next_batch(limit))) is not None:
        batches.append(batch.mails)
    return batches


def test_mails_are_fetched_as_they_are() -> None:
    """All octets of each mail arrive, by UID, and no flag changes."""
    server = ScriptedImap(dict(MAILS))
    folder = opened(server)
    batch = server.run(folder.next_batch(50))
    assert {int(mail.key): mail.raw_message for mail in batch.mails} == MAILS
    assert batch.place == Place(VALIDITY, 7)
    assert server.run(folder.next_batch(50)) is None
    server.run(folder.close())
    assert not server.seen
    assert 'LOGIN "r@example.com" "pa\\"ss"' in server.commands
    assert any("BODY.PEEK[]" in command for command in server.commands)


def test_only_new_mails_are_fetched() -> None:
    """After a place, the server's last mail is not fetched again; a new UIDVALIDITY begins anew."""
    server = ScriptedImap(dict(MAILS))
    assert read(server, opened(server, place=Place(VALIDITY, 7))) == []
    assert [mail.key for (mail,) in read(server, opened(server, place=Place(VALIDITY, 3)))] == ["7"]
    (both,) = read(server, opened(server, place=Place(VALIDITY - 1, 7)))
    assert [mail.key for mail in both] == ["3", "7"]
    assert "UID SEARCH UID 8:* SINCE 14-Oct-2025" in server.commands


def test_uids_with_gaps() -> None:
    """UIDs are listed in ranges that grow where there are no mails, up to the last one."""
    server = ScriptedImap({5: b"five", 9_000_000: b"nine"})
    server.uid_next = 9_000_002
    assert [mail.key for (mail,) in read(server, opened(server))] == ["5", "9000000"]
    searches = [command for command in server.commands if "SEARCH" in command]
    assert searches[0].startswith("UID SEARCH UID 1:10000 SINCE ")
    assert len(searches) < 12
    server.commands.clear()
    assert read(server, opened(server, place=Place(VALIDITY, 9_000_001))) == []
    assert not any("SEARCH" in command for command in server.commands)


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has at most the mails and the octets that are allowed, however large a mail is."""
    monkeypatch.setattr(imap_mailbox, "BATCH_OCTETS", 100)
    monkeypatch.setattr(imap_mailbox, "SIZES_AT_ONCE", 3)
    sizes = [40, 40, 40, 150, 10, 10, 10, 10]
    server = ScriptedImap({10 * (i + 1): b"x" * size for i, size in enumerate(sizes)})
    batches = read(server, opened(server), limit=3)
    assert [[mail.key for mail in batch] for batch in batches] == [
        ["10", "20"],
        ["30"],
        ["40"],
        ["50", "60", "70"],
        ["80"],
    ]


def test_large_and_deleted_mails_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail that is too large is not fetched, and one that was deleted meanwhile is left out."""
    monkeypatch.setattr(imap_mailbox, "LARGEST_MAIL", 100)
    server = ScriptedImap({1: b"x" * 101, 2: b"two", 3: b"three"})
    folder = opened(server)
    del server.mails[2]
    (mails,) = read(server, folder)
    assert list(mails) == [FetchedMail("1", None), FetchedMail("3", b"three")]
    assert LARGEST_MAIL > 100


def test_mails_are_marked() -> None:
    """Mails whose reports are stored are marked as read, and no other mail."""
    server = ScriptedImap(dict(MAILS))
    server.run(opened(server).finish(["7"]))
    assert (server.seen, server.moved) == ({7}, {})


def test_mails_are_moved() -> None:
    """They are marked and moved with one command, and the folder is created if it is missing."""
    server = ScriptedImap(dict(MAILS))
    server.prefix = "INBOX."
    server.script["UID MOVE"] = ["NO [TRYCREATE] no such folder"]
    server.run(opened(server, then=Then.MOVE, move_to='Done "é"').finish(["3", "7"]))
    folder = '"INBOX.Done \\"&AOk-\\""'
    assert server.moved == {3: folder, 7: folder}
    assert folder in server.folders
    assert server.seen == {3, 7}
    assert not any("EXPUNGE" in command for command in server.commands)


def test_a_mailbox_that_is_left_as_it_is() -> None:
    """With ``leave``, the folder is opened read-only, and nothing changes."""
    server = ScriptedImap(dict(MAILS))
    server.script["EXAMINE"] = ["* OK [UIDVALIDITY 77] valid", "OK [READ-ONLY] done"]
    server.run(opened(server, then=Then.LEAVE).finish(["3"]))
    assert not server.seen
    assert not any(command.startswith("SELECT") for command in server.commands)


def test_a_folder_below_the_prefix() -> None:
    """A folder that does not exist is looked for below the prefix of personal folders."""
    server = ScriptedImap(dict(MAILS))
    server.prefix = "INBOX."
    server.script["SELECT"] = ["NO no such folder"]
    assert len(read(server, opened(server, folder="Reports"))) == 1
    assert [c for c in server.commands if c.startswith("SELECT")] == [
        "SELECT Reports",
        "SELECT INBOX.Reports",
    ]


@rows(
    (CAPABILITIES, b"user=r@example.com\x01auth=Bearer %s\x01\x01"),
    (
        CAPABILITIES.replace("XOAUTH2", "OAUTHBEARER"),
        b"n,a=r@example.com,\x01host=imap.example.com\x01port=993\x01auth=Bearer %s\x01\x01",
    ),
)
def test_tokens(capabilities: str, said: bytes) -> None:
    """A token of any length is sent on one line, with or without SASL-IR."""
    server = ScriptedImap(dict(MAILS), capabilities)
    assert len(read(server, opened(server, TOKEN))) == 1
    server.capabilities = capabilities.replace("SASL-IR ", "")
    server.script["AUTHENTICATE"] = ["+ "]
    assert len(read(server, opened(server, TOKEN))) == 1
    assert server.sasl == [said % TOKEN.encode()] * 2


@rows(("XOAUTH2", b""), ("OAUTHBEARER", b"AQ=="))
def test_a_rejected_token(scheme: str, ending: bytes) -> None:
    """The challenge with the reason is answered, and its status is part of the message."""
    server = ScriptedImap({}, CAPABILITIES.replace("XOAUTH2", scheme))
    challenge = b64encode(json.dumps({"status": "invalid_token", "scope": "x"}).encode()).decode()
    server.script["AUTHENTICATE"] = [f"+ {challenge}", "NO AUTHENTICATE failed."]
    failure = failure_of(server, "wrong")
    assert server.initial_responses == [ending]
    assert str(failure).startswith(
        "The server rejected the sign-in of r@example.com: AUTHENTICATE failed."
    )
    assert "IMAP.AccessAsApp" in str(failure)
    assert str(failure).endswith("(status invalid_token)")
    assert "wrong" not in str(failure)
    assert failure.remedy is Remedy.OPERATOR


@rows(
    ("LOGIN", ["NO [AUTHENTICATIONFAILED] Invalid credentials (Failure)"], Remedy.OPERATOR, 0),
    ("SELECT", ["NO no such folder"], Remedy.OPERATOR, 0),
    ("SELECT", ["OK [READ-ONLY] done"], Remedy.OPERATOR, 0),
    ("SELECT", ["BAD User is authenticated but not connected."], Remedy.RETRY_ONCE, 0),
    (
        "UID SEARCH",
        ["NO Request is throttled. Suggested Backoff Time: 299999 milliseconds"],
        Remedy.RETRY,
        299_999,
    ),
    (
        "UID SEARCH",
        ["* BYE Session invalidated - AccessTokenExpired", None],
        Remedy.RENEW,
        0,
    ),
    ("UID SEARCH", ["* BYE shutting down", None], Remedy.RETRY, 0),
    ("CAPABILITY", [None], Remedy.RETRY, 0),
)
def test_answers(command: str, answers: list[str | None], remedy: Remedy, wait: int) -> None:
    """Each failure says what helps: a later attempt, a new token, or the operator."""
    server = ScriptedImap(dict(MAILS))
    server.script[command] = list(answers)
    failure = failure_of(server)
    assert (failure.remedy, failure.wait) == (remedy, wait)
    assert 'pa"ss' not in str(failure)


@rows(
    ("LOGINDISABLED", {}, "", "accepts no passwords"),
    ("IMAP4rev1", {"tls": Tls.STARTTLS}, "", "offers no STARTTLS"),
    ("IMAP4rev1", {}, TOKEN, "offers no sign-in with OAuth"),
    ("IMAP4rev1", {"then": Then.MOVE, "move_to": "Done"}, "", "cannot move mails"),
)
def test_what_a_server_cannot_do(
    capabilities: str, changes: dict[str, Any], token: str, problem: str
) -> None:
    """The operator learns what the server does not offer."""
    failure = failure_of(ScriptedImap({}, capabilities), token, **changes)
    assert problem in str(failure)
    assert failure.remedy is Remedy.OPERATOR


@rows(
    (DNSLookupError(), "The host imap.example.com has no address."),
    (Refused(), "imap.example.com:993 does not accept connections."),
)
def test_a_server_that_is_away(problem: Exception, sentence: str) -> None:
    """A server that cannot be reached is tried later."""
    server = ScriptedImap({})
    server.problem = problem
    failure = failure_of(server)
    assert (str(failure), failure.remedy) == (sentence, Remedy.RETRY)


def test_a_silent_server() -> None:
    """A command without an answer fails after `SECONDS`, and the connection ends."""
    server = ScriptedImap(dict(MAILS))
    server.script["UID SEARCH"] = [""]
    one = opener(server)
    opening = Deferred.fromCoroutine(one.open("", Place()))
    assert isinstance(one.clock, Clock)
    one.clock.advance(SECONDS)
    with pytest.raises(MailboxFailed, match="no answer within 60 seconds"):
        result_of(opening)


def test_a_server_that_closes_the_connection_between_batches() -> None:
    """The next command fails with what the server said, and closing the mailbox never fails."""
    server = ScriptedImap(dict(MAILS))
    folder = opened(server)
    server.run(folder.next_batch(1))
    server.end("Autologout; idle for too long")
    for doing in (folder.next_batch(1), folder.finish(["3"])):
        with pytest.raises(MailboxFailed, match="Autologout") as failure:
            server.run(doing)
        assert failure.value.remedy is Remedy.RETRY
    server.run(folder.close())


@pytest.mark.parametrize(
    ("limit", "more"),
    [
        ("MOST_OCTETS", "* 1 FETCH (FLAGS ())"),
        ("MOST_OCTETS", "* 9 FETCH (BODY[] {40}\r\n" + 40 * "x"),
        ("MAX_LINE", "* 1 FETCH (FLAGS ())"),
    ],
    ids=["lines", "literals", "text"],
)
def test_a_server_that_sends_without_end(
    monkeypatch: pytest.MonkeyPatch, limit: str, more: str
) -> None:
    """The connection ends when the answer of one command is too large, whatever its parts are."""
    monkeypatch.setattr(imap_mailbox, limit, 1_500)
    server = ScriptedImap(dict(MAILS))
    folder = opened(server)
    server.script["UID FETCH"] = [*[more] * 100, ""]
    with pytest.raises(MailboxFailed, match="more than was asked for"):
        server.run(folder.next_batch(1))
    server.run(folder.close())
