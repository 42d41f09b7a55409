"""SPF, DKIM and DMARC of inbox messages, evaluated once and within two seconds."""

import gc
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import pytest
from msgspec import structs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogEvent

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.core.content import HeaderSummary, MessageContent
from mailcheck.core.cursors import Position
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import SECOND
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.deliverability import authenticate_mail
from mailcheck.operations.deliverability.authenticate_mail import (
    BRIEFLY,
    AuthenticationCache,
)
from mailcheck.operations.deliverability.score_mail import ScoringSettings
from mailcheck.operations.inbox.check_message import (
    AUTHENTICATED_AT_ONCE,
    AUTHENTICATED_OF_ACCOUNT,
    AuthenticateMessage,
)
from tests.engines.deliveries import delivery, recipient
from tests.fakes.mail_signer import ED25519, RSA
from tests.fakes.memory_zone import MemoryZone
from tests.operations.scored_mails import MAIL, received, zone_with
from tests.table import rows
from tests.web.workers import FaultyWorker

SIGNED = RSA.sign(MAIL)


class _Text(str):
    """A text that supports weak references, so that a test sees when it is freed."""


class Mails:
    """The part of the store that returns the bytes of mails. It counts its calls."""

    def __init__(self) -> None:
        self.raw: dict[DeliveryId, bytes] = {}
        self.reads = 0

    def raw_message(self, delivery_id: DeliveryId) -> Any:
        """Return a mail."""
        from twisted.internet.defer import succeed

        self.reads += 1
        return succeed(self.raw.get(delivery_id))


class Desk:
    """The operation, with the zone and the clock of the test."""

    def __init__(self, zone: MemoryZone | None = None) -> None:
        self.clock = Clock()
        self.zone = zone or zone_with()
        self.worker = FaultyWorker()
        self.mails = Mails()
        self.operation = AuthenticateMessage(
            AuthenticationCache(),
            self.mails,  # type: ignore[arg-type]
            self.zone,
            self.worker,
            ScoringSettings("mailcheck.example", allow_private=False, offers_tls=lambda _: True),
            self.clock,
        )

    def message(
        self, raw_message: bytes = SIGNED, number: int = 1, account: str = "a", **changes: Any
    ) -> StoredMessage:
        """Store a message."""
        mail = received(raw_message=raw_message, **changes)
        name = DeliveryId(f"delivery {number}")
        self.mails.raw[name] = raw_message
        header = raw_message.partition(b"\r\n\r\n")[0].decode("latin-1")
        fields = [line.partition(":")[0] for line in header.split("\r\n") if line[:1].strip()]
        sent = delivery(recipient(account), raw=raw_message, received_at=mail.received_at)
        summary = structs.replace(sent, id=name).message(0, Position(1), HeaderSummary("", "", ""))
        header_list = tuple((field, "") for field in fields)
        content = MessageContent(header_list, "", "", (), (), None, (), (), ())
        return StoredMessage(summary, mail.envelope_sender, mail.session, content)

    def ask(self, message: StoredMessage) -> Deferred[Authentication]:
        """Start to authenticate a message."""
        return Deferred.fromCoroutine(self.operation.of(message))

    def of(self, message: StoredMessage) -> Authentication:
        """Authenticate a message that must have results by now."""
        results: list[Any] = []
        self.ask(message).addBoth(results.append)
        assert results, "not answered yet"
        if hasattr(results[0], "raiseException"):
            results[0].raiseException()
        found: Authentication = results[0]
        return found

    def forget_doubts(self) -> None:
        """Advance the clock until undetermined results have left the cache."""
        self.clock.advance(BRIEFLY / SECOND)


def words(found: Authentication) -> tuple[str, list[str], str]:
    """Return the results."""
    signatures = [one.result.value for one in found.dkim.signatures]
    return found.spf.mail_from.result.value, signatures, found.dmarc.result.value


@pytest.fixture
def desk() -> Desk:
    """Return the operation with the usual zone."""
    return Desk()


def test_a_perfect_sender(desk: Desk) -> None:
    """SPF, every signature and DMARC are evaluated as in a report."""
    found = desk.of(desk.message(ED25519.sign(SIGNED)))
    assert words(found) == ("pass", ["pass", "pass"], "pass")
    assert found.dmarc.is_spf_aligned
    assert found.dmarc.is_dkim_aligned


def test_a_forged_mail(desk: Desk) -> None:
    """A mail from another host that was altered in transit fails SPF, DKIM and DMARC."""
    found = desk.of(desk.message(SIGNED.replace(b"Monday", b"Sunday"), client_ip="8.8.4.99"))
    assert words(found) == ("fail", ["fail"], "fail")


def test_an_unsigned_mail_from_a_private_address_is_not_known(desk: Desk) -> None:
    """SPF and DMARC are temperror with the reason, and no SPF record is looked up."""
    for client_ip in ("127.0.0.1", "10.0.0.5", "::1", "nonsense"):
        found = desk.of(desk.message(MAIL, hash(client_ip), client_ip=client_ip))
        assert words(found) == ("temperror", [], "temperror")
        assert client_ip in found.spf.mail_from.explanation
    assert ("sender.example", "TXT") not in desk.zone.asked_pairs
    assert desk.worker.calls == 0


def test_a_signature_is_verified_wherever_it_comes_from(desk: Desk) -> None:
    """A signed mail from a private address has DKIM and DMARC results, and no SPF lookup."""
    found = desk.of(desk.message(client_ip="10.0.0.5"))
    assert words(found) == ("temperror", ["pass"], "pass")
    assert ("sender.example", "TXT") not in desk.zone.asked_pairs


def test_a_bad_signature_from_a_private_address_says_nothing_about_dmarc(desk: Desk) -> None:
    """DMARC is undetermined and never a fail, since SPF might have passed."""
    found = desk.of(desk.message(SIGNED.replace(b"Monday", b"Sunday"), client_ip="10.0.0.5"))
    assert words(found) == ("temperror", ["fail"], "temperror")


def test_results_are_looked_up_once() -> None:
    """Later readers get the cached results, and concurrent readers share the lookups."""
    desk = Desk(zone_with(silent=["sender.example"]))
    message = desk.message()
    first, second = desk.ask(message), desk.ask(message)
    asked = len(desk.zone.asked)
    assert desk.mails.reads == 1
    desk.clock.advance(2)
    assert first.called
    assert second.called
    desk.zone.silent.clear()
    desk.forget_doubts()
    known = desk.of(message)
    assert words(known) == ("pass", ["pass"], "pass")
    assert len(desk.zone.asked) > asked
    asked = len(desk.zone.asked)
    assert desk.of(desk.message()) is known
    assert len(desk.zone.asked) == asked


def test_concurrent_reads_leave_no_message_behind() -> None:
    """Only the results of a message are kept after concurrent reads."""
    desk = Desk(zone_with(silent=["sender.example"]))
    kept: WeakSet[_Text] = WeakSet()
    asked = []
    for reader in ("first", "second"):
        message, text = desk.message(), _Text(reader)
        kept.add(text)
        asked.append(
            desk.ask(structs.replace(message, content=replace(message.content, text=text)))
        )
        del message, text
    desk.clock.advance(2)
    assert all(one.called for one in asked)
    del asked
    gc.collect()
    assert not kept


def test_silent_names_are_undetermined_and_cached_briefly() -> None:
    """After two seconds, missing results are temperror, and are cached briefly."""
    desk = Desk(zone_with(silent=["sender.example", RSA.key_name]))
    message = desk.message()
    waiting = desk.ask(message)
    results: list[Any] = []
    waiting.addBoth(results.append)
    desk.clock.advance(1.9)
    assert not results
    desk.clock.advance(0.2)
    (found,) = results
    assert words(found) == ("temperror", ["temperror"], "temperror")
    reads, asked = desk.mails.reads, len(desk.zone.asked)
    desk.clock.advance(BRIEFLY / SECOND - 0.5)
    assert desk.of(message) is found
    assert (desk.mails.reads, len(desk.zone.asked)) == (reads, asked)
    desk.zone.silent.clear()
    desk.clock.advance(0.5)
    assert words(desk.of(message)) == ("pass", ["pass"], "pass")
    assert not desk.clock.getDelayedCalls()


def test_an_irrelevant_name_does_not_delay_the_results() -> None:
    """A name that would only matter if its SPF passed does not delay the results."""
    desk = Desk(zone_with(silent=["_dmarc.bounce.sender.example"]))
    results: list[Any] = []
    desk.ask(desk.message(envelope_sender="b@bounce.sender.example")).addBoth(results.append)
    desk.clock.pump([0.05] * 3)
    (found,) = results
    assert words(found) == ("none", ["pass"], "pass")
    assert desk.zone.unanswered == []


@rows(DnsStatus.SERVFAIL, DnsStatus.REFUSED, DnsStatus.TIMEOUT)
def test_a_failure_of_dns_is_kept_briefly(status: DnsStatus) -> None:
    """A DNS failure is looked up again after its short cache time."""
    desk = Desk(zone_with(failing={("_dmarc.sender.example", "TXT"): status}))
    message = desk.message()
    assert words(desk.of(message)) == ("pass", ["pass"], "temperror")
    desk.zone.failing.clear()
    desk.forget_doubts()
    assert words(desk.of(message)) == ("pass", ["pass"], "pass")


def test_work_that_takes_too_long(desk: Desk) -> None:
    """A signature that is not verified within two seconds is temperror, never none."""
    desk.worker.is_slow = True
    message = desk.message()
    results: list[Any] = []
    desk.ask(message).addBoth(results.append)
    desk.clock.advance(2)
    (found,) = results
    assert words(found) == ("pass", ["temperror"], "pass")
    desk.worker.catch_up()
    desk.forget_doubts()
    assert words(desk.of(message)) == ("pass", ["pass"], "pass")


def test_a_large_header_is_parsed_in_a_worker() -> None:
    """A header over 64 KiB delays no other mail. Results that are late are undetermined."""
    raw = SIGNED.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n", 1)
    desk = Desk()
    desk.worker.is_slow = True
    results: list[Any] = []
    desk.ask(desk.message(raw)).addBoth(results.append)
    desk.clock.advance(2)
    assert words(results[0]) == ("pass", ["temperror"], "temperror")
    desk.worker.catch_up()
    desk.forget_doubts()
    assert words(desk.of(desk.message(raw))) == ("pass", ["pass"], "pass")


def test_a_message_that_is_deleted_meanwhile(desk: Desk) -> None:
    """A message whose bytes were deleted is not found."""
    message = desk.message()
    desk.mails.raw.clear()
    with pytest.raises(MessageNotFound):
        desk.of(message)


def test_a_crash_hides_no_message(desk: Desk, logged_failures: list[LogEvent]) -> None:
    """A crash is logged, and the results are undetermined."""
    desk.worker.fault = RuntimeError("a bug")
    assert words(desk.of(desk.message())) == ("temperror", ["temperror"], "temperror")
    assert len(logged_failures) == 1
    desk.worker.fault = None
    desk.forget_doubts()
    assert words(desk.of(desk.message())) == ("pass", ["pass"], "pass")


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results that were not read for longest are removed first."""
    monkeypatch.setattr(authenticate_mail, "RECENT", recent := 5)
    desk = Desk()
    first = desk.of(desk.message(number=0))
    for number in range(1, recent):
        desk.of(desk.message(MAIL, number, client_ip="127.0.0.1"))
    assert desk.of(desk.message(number=0)) is first
    desk.of(desk.message(MAIL, recent, client_ip="127.0.0.1"))
    desk.of(desk.message(MAIL, recent + 1, client_ip="127.0.0.1"))
    reads = desk.mails.reads
    assert desk.of(desk.message(number=0)) is first
    assert desk.mails.reads == reads
    for number in range(recent):
        desk.of(desk.message(MAIL, 2 * recent + number, client_ip="127.0.0.1"))
    assert desk.of(desk.message(number=0)) is not first


@rows(b"", b"\r\n", b"From: \xff\r\n", b"DKIM-Signature: v=1\r\n\r\n")
def test_any_bytes(raw: bytes) -> None:
    """Any mail has results, and `AuthResult` has a member for each."""
    desk = Desk()
    found = desk.of(desk.message(raw))
    assert found.dmarc.result in AuthResult


def test_an_account_has_few_permits() -> None:
    """An account with many mails uses few permits, so other accounts get theirs."""
    desk = Desk(zone_with(silent=["sender.example"]))
    mine = [desk.ask(desk.message(number=number)) for number in range(50)]
    assert desk.mails.reads == AUTHENTICATED_OF_ACCOUNT
    for number in range(50, 90):
        desk.ask(desk.message(number=number, account=f"b{number}"))
    assert desk.mails.reads == AUTHENTICATED_AT_ONCE
    desk.clock.advance(2)
    assert all(one.called for one in mine)
    assert not desk.clock.getDelayedCalls()


def test_without_a_permit_nothing_is_cached() -> None:
    """Without a permit in time, the results are undetermined. The next reader tries again."""
    desk = Desk(zone_with(silent=["sender.example"]))
    for number in range(AUTHENTICATED_OF_ACCOUNT):
        desk.ask(desk.message(number=number))
    late = desk.message(number=99)
    results: list[Any] = []
    desk.ask(late).addBoth(results.append)
    desk.clock.advance(1.95)
    assert words(results[0]) == ("temperror", ["temperror"], "temperror")
    assert desk.mails.reads == AUTHENTICATED_OF_ACCOUNT
    desk.zone.silent.clear()
    desk.clock.advance(0.1)
    assert words(desk.of(late)) == ("pass", ["pass"], "pass")
