"""The whole application in memory, without its sockets, on a clock that tests advance."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from mailcheck.assembly.checks import Resolvers
from mailcheck.assembly.daemon import build_daemon
from mailcheck.assembly.doors.web import build_web
from mailcheck.assembly.inbox import build_receiver
from mailcheck.assembly.runtime import Outside, open_runtime, time_and_chance_of
from mailcheck.assembly.scoring import FilterParts
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import AccountsOptions, Config, DaemonOptions, StorageOptions
from mailcheck.core.accounts import Account
from mailcheck.core.addresses import join_subaddress, parse_mailbox
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import Envelope, Recipient, Session
from mailcheck.core.rights import Scope, make_rights
from mailcheck.daemon.services import OrderedServices
from mailcheck.engines.database import call_immediately
from mailcheck.engines.sqlite_writer import SqliteWriter
from mailcheck.operations.deliverability.run_test_checks import Analyse
from mailcheck.operations.inbox.feeds import InboxFeeds, MailHandoff
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.ports.identity_provider import IdentityProvider
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.analyst import Analyst
from tests.fakes.clock_and_randomness import TEST_START, repeatable_bytes
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.scripted_filter import ScriptedFilter
from tests.fakes.scripted_receivers import ScriptedReceivers
from tests.web.raw_http import Answer as Answer
from tests.web.raw_http import Pending as Pending


def result_of(deferred: Deferred[Any]) -> Any:
    """Return the result of a Deferred that has fired, or raise its failure."""
    results: list[Any] = []
    deferred.addBoth(results.append)
    assert results, "there is no result yet"
    if hasattr(results[0], "raiseException"):
        results[0].raiseException()
    return results[0]


def run(coroutine: Any) -> Any:
    """Run a coroutine that does not wait, and return its result."""
    return result_of(Deferred.fromCoroutine(coroutine))


CHEAP_HASH = 1
"""Cost of passwords. The lowest cost that a daemon accepts, 10, takes 10 ms for each hash."""

MEMORY = 8 * 2**30
"""The memory of an application. The limits do not depend on the machine that runs the tests."""

_OPEN: list["House"] = []
"""Applications that are not closed yet."""


class House:
    """A daemon without sockets, threads or real time.

    ``set_ahead`` is the number of seconds by which its time of day was set; timeouts ignore it.
    Its external services are ``zone``, which has only the names that a test adds, ``hosts``,
    ``receivers`` and ``content_filter``. A test may change their answers at any time.
    ``receiver`` receives the mail that a test sends.
    """

    def __init__(
        self,
        config: Config,
        workers: Workers | None = None,
        *,
        zone: MemoryZone | None = None,
        hosts: FakeHosts | None = None,
        analyse: Analyse | None = None,
        identity_provider: IdentityProvider | None = None,
    ) -> None:
        """``analyse`` replaces the analysis of the mails of tests."""
        self.clock = Clock()
        self.clock.advance(TEST_START)
        workers = workers or Workers(DirectWorker(), DirectWorker(), DirectWorker())
        self.set_ahead = 0.0
        self.is_restored = False
        """Whether a fixture restores it before each test, so that a file may share it."""

        def time_of_day() -> float:
            return self.clock.seconds() + self.set_ahead

        clock_and_randomness = time_and_chance_of(
            config, time_of_day, self.clock, repeatable_bytes()
        )
        self.zone = zone or MemoryZone({})
        self.hosts = hosts or FakeHosts()
        self.receivers = ScriptedReceivers()
        self.content_filter = ScriptedFilter()
        self.rspamd = ScriptedFilter() if config.rspamd.url else None
        outside = Outside(
            Resolvers(self.zone, self.zone, self.zone),
            self.hosts,
            self.receivers,
            FilterParts(self.content_filter, OrderedServices(), self.rspamd),
            identity_provider,
        )
        runtime = open_runtime(config, self.clock, clock_and_randomness, workers, outside)
        self.assembly = build_daemon(runtime, analyse)
        self.receiver = self.assembly.receiver
        self.assembly.runtime.engine.open()
        _OPEN.append(self)
        self.site = build_web(self.assembly)
        self.account = self.add_account("first")
        self.key = self.issue_key(self.account)

    @property
    def sqlite(self) -> SqliteWriter:
        """The database in memory, to inspect or break it."""
        writer = self.assembly.runtime.engine.writer
        assert isinstance(writer, SqliteWriter)
        return writer

    def add_account(self, name: str, **limits: Any) -> Account:
        """Add an account."""
        account: Account = run(self.assembly.accounts.keep.add(name, **limits))
        return account

    def issue_key(self, account: Account, **limits: Any) -> str:
        """Issue a key, with high limits by default."""
        limits = {"per_minute": 1_000_000, "per_day": 1_000_000, **limits}
        secret: str = run(self.assembly.accounts.keep.issue_key(account, "", **limits)).secret
        return secret

    def use_every_scope(self) -> None:
        """Use a key of the account that names every scope that it can have."""
        scopes = [
            str(one) for one in Scope if one is not Scope.OPERATOR or self.account.is_operator
        ]
        self.key = self.issue_key(self.account, rights=make_rights(scopes))

    def address(self, tag: str = "", account: Account | None = None) -> str:
        """Return an inbox address."""
        name = (account or self.account).mailbox_name
        return join_subaddress(name, tag, self.assembly.runtime.config.inbox.domain)

    def receive(
        self, *recipients: str, raw: bytes | None = None, sender: str = "shop@example.com"
    ) -> DeliveryId:
        """Receive a mail as the SMTP server does. It fails in the same way."""
        session = Session("192.0.2.7", "mx.example.com", True)
        receiver = self.receiver
        accepted = [
            result_of(
                maybeDeferred(receiver.accept_recipient, session, sender, parse_mailbox(recipient))
            )
            for recipient in recipients or (self.address(),)
        ]
        raw = mail() if raw is None else raw
        delivery: DeliveryId = result_of(
            maybeDeferred(receiver.deliver, session, Envelope(sender, tuple(accepted)), raw)
        )
        return delivery

    def receiver_elsewhere(self) -> ReceiveMail:
        """Return the receiver of another daemon. Its mail wakes waits by notifications only."""
        assembly = self.assembly
        nobody = InboxFeeds(assembly.mail.store, assembly.runtime.now)
        contents, want = assembly.mail.contents, assembly.mail.derivation.want
        mail = structs.replace(
            assembly.mail, hand_over=MailHandoff(nobody, contents, want, call_immediately)
        )
        log_in = assembly.accounts.log_in
        return build_receiver(assembly.runtime, mail, log_in, assembly.tests, assembly.reports)

    def refuse(self, tag: str = "", reason: str = "too large") -> None:
        """Reject a mail to the first account as the SMTP server does after DATA."""
        session = Session("192.0.2.7", "mx.example.com", True)
        recipient = Recipient(self.address(tag), self.account.id, tag)
        receiver = self.receiver
        receiver.record_refusal(session, "shop@example.com", (recipient,), reason)

    def ask(self, method: str, path: str, key: str | None = "", **options: Any) -> Pending:
        """Send a request below the API's base path, with the first account's key."""
        return self.open("/api/v1" + path, method, key, **options)

    def open(
        self, path: str, method: str = "GET", key: str | None = None, **options: Any
    ) -> Pending:
        """Send a request to any path."""
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["X-API-Key"] = key or self.key
        return Pending(self, method, path, headers, **options)

    def get(self, path: str, **options: Any) -> Answer:
        """Send a GET request and return its answer."""
        return self.ask("GET", path, **options).answer()

    def pass_time(self, seconds: float) -> None:
        """Advance the time."""
        self.clock.advance(seconds)

    def close(self) -> None:
        """End all waits, and close the store."""
        if self not in _OPEN:
            return
        _OPEN.remove(self)
        self.assembly.mail.feeds.close()
        self.assembly.runtime.engine.close()


class EmptyHouse(House):
    """An application without accounts."""

    def add_account(self, name: str, **limits: Any) -> Any:
        """Do not add an account."""

    def issue_key(self, account: Any, **limits: Any) -> str:
        """Do not issue a key."""
        return ""


class HouseWithAnalyst(House):
    """An application in which the test replaces the analysis, as the ``analyst``."""

    def __init__(self, config: Config, workers: Workers | None = None) -> None:
        self.analyst = Analyst()
        super().__init__(config, workers, analyse=self.analyst)


def mail(
    subject: str = "Welcome",
    body: str = "Your code is 482913: https://example.com/confirm?t=7f3a",
    author: str = "Shop <shop@example.com>",
) -> bytes:
    """Return an ordinary mail."""
    text = f"From: {author}\r\nTo: you@example.com\r\nSubject: {subject}\r\n\r\n{body}\r\n"
    return text.encode()


def config_in_memory(**sections: Any) -> Config:
    """Return a configuration with a store in memory and cheap passwords.

    Sections replace the defaults.
    """
    sections.setdefault("accounts", AccountsOptions(password_cost=CHEAP_HASH))
    sections.setdefault("daemon", DaemonOptions(memory=MEMORY))
    return Config(storage=StorageOptions(url="sqlite::memory:", min_free=0), **sections)


@pytest.fixture(autouse=True)
def _houses_are_closed() -> Iterator[None]:
    """Close the applications that a test has built, and fail a test that uses an older one.

    A test changes the clock, the sessions and the limits of its application. In another order, the
    next test of a shared one would fail.
    """
    shared = [one for one in _OPEN if not one.is_restored]
    restored = [one for one in _OPEN if one.is_restored]
    yield
    for house in [one for one in _OPEN if one not in restored]:
        house.close()
    assert not shared, "a fixture shares its house with other tests: build one for each test"


@pytest.fixture
def house() -> House:
    """An application with one account and one key."""
    return House(config_in_memory())
