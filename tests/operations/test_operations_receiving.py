"""Receiving mail: recipients, quotas, disk space and notifications."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config, InboxOptions, StorageOptions
from mailcheck.core.accounts import Account
from mailcheck.core.addresses import Mailbox, parse_mailbox
from mailcheck.core.errors import (
    ExpectedFailure,
    InboxFull,
    OperatorMissing,
    OutOfSpace,
    RecipientUnknown,
    StoreUnavailable,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import HOUR, instant_of
from mailcheck.core.messages import Envelope, Recipient, Session
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, mail, result_of, run
from tests.table import rows

STRANGER = Session("192.0.2.7", "mx.example.com", True)


def logged_in(account_id: AccountId) -> Session:
    """Return the session of an authenticated program."""
    return Session("192.0.2.7", "app", True, account_id=account_id)


def accept(house: House, address: str, session: Session = STRANGER) -> Recipient:
    """Send RCPT for an address. ``postmaster`` has no domain."""
    mailbox = parse_mailbox(address) if "@" in address else Mailbox(address, "")
    recipient: Recipient = result_of(
        maybeDeferred(
            house.assembly.receiver.accept_recipient, session, "shop@example.com", mailbox
        )
    )
    return recipient


def deliver(house: House, *recipients: Recipient) -> "Deferred[DeliveryId]":
    """Deliver a mail."""
    envelope = Envelope("shop@example.com", recipients)
    return maybeDeferred(house.assembly.receiver.deliver, STRANGER, envelope, mail())


def refusals(house: House) -> list[tuple[str, str]]:
    """Return recipient and reason of all rejections of the first account."""
    store = house.assembly.mail.store
    found = result_of(store.recent_refusals(house.account.id, instant_of(0), 100))
    return [(refusal.recipient, refusal.reason) for refusal in found]


@pytest.fixture
def aliased() -> House:
    """A house with two more domains."""
    return House(config_in_memory(inbox=InboxOptions(aliases=("Mail.Example", "x.example"))))


@for_each
def _dismiss_operator(transaction: Transaction, item: None) -> None:
    transaction.execute("UPDATE account SET is_operator = 0")


def _config(url: str, min_free: int) -> Config:
    return Config(storage=StorageOptions(url=url, min_free=min_free))


class TestRecipients:
    """The inbox that an address belongs to."""

    @pytest.fixture
    def second(self, house: House) -> Account:
        """Add an account that is not the operator's."""
        account: Account = house.add_account("second")
        return account

    @rows(("", ""), ("+a", "a"), ("+SignUp", "SignUp"), ("+a+b", "a+b"), ("+", ""))
    def test_an_inbox_with_any_tag(self, house: House, suffix: str, tag: str) -> None:
        """An inbox accepts mail with any tag. The address stays as it was written."""
        address = f"{house.account.mailbox_name.upper()}{suffix}@MAILCHECK.example"
        assert accept(house, address) == Recipient(address, house.account.id, tag)

    @pytest.mark.parametrize("is_logged_in", [False, True])
    def test_a_tag_in_front_of_the_domain(self, house: House, *, is_logged_in: bool) -> None:
        """A tag in a subdomain belongs to the inbox. The address stays as it was written."""
        session = logged_in(house.account.id) if is_logged_in else STRANGER
        address = f"ann@shop.{house.account.mailbox_name}.mailcheck.example"
        expected = Recipient(address, house.account.id, "shop-ann")
        assert accept(house, address, session) == expected

    @rows("mailcheck.example", "MAILCHECK.EXAMPLE", "mailcheck.example.", "mail.example")
    def test_domains(self, aliased: House, domain: str) -> None:
        """Each configured domain is accepted, in any case and with a dot at its end."""
        address = f"{aliased.account.mailbox_name}@{domain}"
        assert accept(aliased, address).account_id == aliased.account.id
        aliased.close()

    @rows(
        "dev-nobody2345678@mailcheck.example",
        "someone@mailcheck.example",
        "first@mailcheck.example",
        "dev-@mailcheck.example",
        '"dev- "@mailcheck.example',
        "postmaster+x@other.example",
        "{name}@other.example",
        "{name}@sub.mailcheck.example",
        "a@dev-nobody2345678.mailcheck.example",
        "a@b.c.{name}.mailcheck.example",
        "watch-alerts@{name}.mailcheck.example",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@{name}.mailcheck.example",
        "{name}@example",
        "{name}@[127.0.0.1]",
        "root",
        "{name}",
        "{name}+a..b@mailcheck.example",
        "{name}+a.@mailcheck.example",
        "{name}+bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb@mailcheck.example",
        "postmaster+a..b@mailcheck.example",
    )
    def test_unknown_addresses(self, house: House, address: str) -> None:
        """Unknown addresses and other domains are rejected."""
        with pytest.raises(RecipientUnknown):
            accept(house, address.format(name=house.account.mailbox_name))

    @rows(
        ("127.0.0.1", "ann@example.com", True),
        ("10.0.0.7", "ann@mailcheck.example", True),
        ("203.0.113.9", "ann@example.com", False),
    )
    def test_the_port_for_any_address(
        self, house: House, client: str, address: str, is_told: bool
    ) -> None:
        """A program of the own network learns which port accepts any address; strangers do not."""
        session = Session(client, "localhost", is_extended=True)
        with pytest.raises(RecipientUnknown) as refused:
            accept(house, address, session)
        assert ("port 2587 with an API key as password" in str(refused.value)) is is_told

    @rows(
        "postmaster",
        "Postmaster",
        "PostMaster@mailcheck.example",
        "abuse@mailcheck.example",
        "postmaster+x@mailcheck.example",
    )
    def test_the_operators_mail(self, house: House, second: Account, address: str) -> None:
        """Mail to postmaster and abuse reaches the operator's inbox (RFC 5321 4.5.1)."""
        recipient = accept(house, address)
        assert (recipient.account_id, recipient.address) == (house.account.id, address)
        assert recipient.account_id != second.id

    def test_no_operator(self) -> None:
        """Without an operator account, mail for the operator is deferred and not rejected."""
        house = House(config_in_memory())
        result_of(house.assembly.runtime.engine.write(_dismiss_operator, None))
        with pytest.raises(OperatorMissing):
            accept(house, "postmaster")
        with pytest.raises(RecipientUnknown):
            accept(house, "abuse@other.example")

    @rows(
        "anyone@anywhere.example",
        "a+b@[192.0.2.1]",
        "postmaster",
        "root",
        "try..this..0511@docomo.ne.jp",
        "x" * 300 + "@b_.example",
    )
    def test_a_program_under_test(self, house: House, second: Account, address: str) -> None:
        """Mail from an authenticated program to any address goes to its own inbox with the tag."""
        session = logged_in(second.id)
        recipient = accept(house, address, session)
        assert recipient.account_id == second.id
        assert recipient.tag == ("b" if "+" in address else "")

    def test_a_deleted_account(self, house: House) -> None:
        """An account that was deleted after it authenticated has no inbox."""
        with pytest.raises(RecipientUnknown):
            accept(house, "a@b.example", logged_in(AccountId("gone")))


class TestRoom:
    """Quotas of the inbox, and free space on the disk."""

    def test_a_full_inbox(self, house: House) -> None:
        """Mail for a full inbox is rejected at once, and waiting clients get the reason."""
        account = house.account = house.add_account("small", max_messages=1)
        house.receive(house.address("a"))
        house.pass_time(2)
        with pytest.raises(InboxFull):
            accept(house, house.address("b"))
        ((recipient, reason),) = refusals(house)
        assert recipient == house.address("b")
        assert "full" in reason
        run(house.assembly.inbox.delete.matching(account.id, MessageFilter()))
        assert accept(house, house.address("b")).tag == "b"

    def test_an_inbox_that_fills_up(self, house: House) -> None:
        """If the store reports a full inbox, later recipients are rejected at once."""
        house.account = house.add_account("small", max_messages=1)
        recipients = [accept(house, house.address(tag)) for tag in "ab"]
        result_of(deliver(house, recipients[0]))
        assert accept(house, house.address("c"))
        with pytest.raises(InboxFull):
            result_of(deliver(house, recipients[1]))
        with pytest.raises(InboxFull):
            accept(house, house.address("c"))

    def test_a_full_disk(self, tmp_path: Path) -> None:
        """If the disk has less free space than configured, mail is deferred at every step.

        Waiting clients are notified.
        """
        url = f"sqlite:{tmp_path / 'mail.db'}"
        house = House(_config(url, min_free=2**62))
        for tag in ("first", "known"):
            with pytest.raises(OutOfSpace):
                accept(house, house.address(tag))
        why = "the server is short of disk space; try again later"
        assert refusals(house) == [(house.address(tag), why) for tag in ("known", "first")]
        recipient = Recipient(house.address(), house.account.id, "")
        with pytest.raises(OutOfSpace):
            result_of(deliver(house, recipient))

    def test_unknown_disk_space(self, tmp_path: Path) -> None:
        """If the free disk space is unknown, mail is deferred without an exception."""
        folder = tmp_path / "folder"
        folder.mkdir()
        house = House(_config(f"sqlite:{folder / 'mail.db'}", min_free=1))
        recipient = accept(house, house.address())
        shutil.rmtree(folder)
        house.pass_time(1)
        assert _kind(deliver(house, recipient)) is StoreUnavailable
        accepted = maybeDeferred(
            house.assembly.receiver.accept_recipient, STRANGER, "", parse_mailbox(house.address())
        )
        assert _kind(accepted) is StoreUnavailable

    def test_disk_space_is_checked_periodically(self, tmp_path: Path) -> None:
        """The free disk space is checked at most once a second."""
        folder = tmp_path / "folder"
        folder.mkdir()
        house = House(_config(f"sqlite:{folder / 'mail.db'}", min_free=1))
        accept(house, house.address())
        shutil.rmtree(folder)
        house.pass_time(0.9)
        assert accept(house, house.address())
        house.pass_time(0.1)
        with pytest.raises(StoreUnavailable):
            accept(house, house.address())


class TestCache:
    """Inboxes are cached briefly, so that most mails cost no lookup."""

    @pytest.fixture
    def reader(self) -> BlockedWorker:
        """A worker that counts reads."""
        return BlockedWorker()

    @pytest.fixture
    def house(self, reader: BlockedWorker) -> House:
        """A house whose reads are counted."""
        return House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))

    def test_known_inboxes(self, house: House, reader: BlockedWorker) -> None:
        """An inbox is looked up once in two seconds, however much mail it gets."""
        calls = reader.calls
        for _ in range(19):
            accept(house, house.address("a"))
            house.pass_time(0.1)
        assert reader.calls == calls + 1
        for _ in range(20):
            accept(house, house.address("b"))
            house.pass_time(0.1)
        assert reader.calls == calls + 2

    def test_unknown_inboxes(self, house: House, reader: BlockedWorker) -> None:
        """Unknown inboxes are not cached, since they may be created a moment later."""
        calls = reader.calls
        for _ in range(3):
            with pytest.raises(RecipientUnknown):
                accept(house, "dev-nobody2345678@mailcheck.example")
        assert reader.calls == calls + 3

    def test_the_operators_inbox_moves(self, house: House) -> None:
        """Mail to postmaster follows the operator's role, even under steady traffic."""
        for _ in range(5):
            accept(house, "postmaster")
            house.pass_time(0.5)
        second = run(house.assembly.accounts.keep.add("second", is_operator=True))
        for _ in range(5):
            recipient = accept(house, "postmaster")
            house.pass_time(0.5)
        assert recipient.account_id == second.id

    def test_after_a_failure(self, house: House, reader: BlockedWorker) -> None:
        """After a mail that could not be stored, inboxes are looked up again."""
        recipient = accept(house, house.address())
        calls = reader.calls
        gone = Recipient("x", AccountId("gone"), "")
        assert _kind(deliver(house, recipient, gone)) is RecipientUnknown
        accept(house, house.address())
        assert reader.calls == calls + 1


class TestDelivery:
    """Storing an accepted mail."""

    def test_hints_follow_the_commit(self) -> None:
        """Hints are sent after the commit, once per inbox."""
        writer = BlockedWorker()
        house = House(config_in_memory(), Workers(writer, DirectWorker(), DirectWorker()))
        heard: list[AccountId] = []
        house.assembly.mail.notifications.listen(heard.append)
        second = house.add_account("second")
        addresses = [house.address("a"), house.address("b"), house.address(account=second)]
        recipients = [accept(house, address) for address in addresses]
        writer.hold_calls()
        delivered = deliver(house, *recipients)
        assert heard == []
        assert not delivered.called
        writer.let_go()
        result_of(delivered)
        assert sorted(heard) == sorted([house.account.id, second.id])

    def test_hints_of_failures(self, house: House) -> None:
        """A failed delivery sends no hints."""
        heard: list[AccountId] = []
        house.assembly.mail.notifications.listen(heard.append)
        gone = Recipient("x", AccountId("gone"), "")
        assert _kind(deliver(house, accept(house, house.address()), gone)) is RecipientUnknown
        assert heard == []

    def test_moments_and_names(self, house: House) -> None:
        """Messages of a delivery have their own ids and share links, and expire together."""
        recipients = [accept(house, house.address(tag)) for tag in "ab"]
        delivery_id = result_of(deliver(house, *recipients))
        page = run(house.assembly.inbox.read.page(house.account.id, MessageFilter(), 10, 1))
        summaries = [message.summary for message in page.messages]
        assert {summary.delivery_id for summary in summaries} == {delivery_id}
        assert len({summary.id for summary in summaries}) == 2
        assert len({summary.share_token for summary in summaries}) == 2
        assert {summary.expires_at - summary.received_at for summary in summaries} == {24 * HOUR}
        assert {summary.received_at for summary in summaries} == {instant_of(house.clock.seconds())}

    def test_refusals_are_noted_for_each_inbox(self, house: House) -> None:
        """Mail that is rejected after its recipients is recorded for each of them."""
        recipients = tuple(accept(house, house.address(tag)) for tag in "ab")
        house.assembly.receiver.record_refusal(STRANGER, "", recipients, "too large")
        assert sorted(refusals(house)) == [
            (house.address("a"), "too large"),
            (house.address("b"), "too large"),
        ]

    def test_a_rejection_that_cannot_be_recorded(self, house: House) -> None:
        """A rejection is sent to the client even if it cannot be recorded."""
        recipient = accept(house, house.address())
        result_of(house.assembly.runtime.engine.close())
        house.assembly.receiver.record_refusal(STRANGER, "", (recipient,), "too large")


def _kind(failed: "Deferred[Any]") -> type[BaseException]:
    with pytest.raises(ExpectedFailure) as caught:
        result_of(failed)
    return caught.type
