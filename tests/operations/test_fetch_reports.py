"""Fetching reports from mailboxes: order of steps, retries, tokens, and one daemon at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from mailcheck.core.domains.report_mailboxes import (
    OPERATOR_RETRY,
    MailboxState,
    ReportMailbox,
    TokenGrant,
)
from mailcheck.core.errors import ExpectedFailure, Overloaded
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import MINUTE, SECOND
from mailcheck.engines.database import call_immediately
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.operations.reports.fetch_reports import (
    UNEXPECTED,
    AccessTokens,
    FetchReports,
    ImportedMail,
)
from mailcheck.ports.identity_provider import JsonObject, ProviderRefused
from mailcheck.ports.report_mailboxes import (
    Batch,
    FetchedMail,
    MailboxFailed,
    Place,
    Remedy,
)
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.clock_and_randomness import TEST_START, clock_and_randomness_of
from tests.house import result_of, run
from tests.table import rows

MAILBOX = ReportMailbox("shop", "imap.example.com", 993, user="r@example.com", password="secret")
GRANT = TokenGrant("https://login.example.com/token", "client", refresh_token="first")
WITH_TOKEN = replace(MAILBOX, password="", grant=GRANT)


class Mailbox:
    """A mailbox in memory, its server, and what was done in which order."""

    def __init__(self, mails: dict[int, bytes]) -> None:
        self.mails = mails
        self.steps: list[str] = []
        self.tokens: list[str] = []
        self.failures: list[tuple[str, Exception]] = []
        self.size = 2
        self.place = Place()

    async def open(self, token: str, place: Place) -> "Mailbox":
        """Open it."""
        self.tokens.append(token)
        self._fail_at("open")
        self.steps.append(f"open after {place.last_uid}")
        self.place = place
        return self

    async def next_batch(self, limit: int) -> Batch | None:
        """Fetch the next mails."""
        uids = [uid for uid in self.mails if uid > self.place.last_uid]
        uids = uids[: min(limit, self.size)]
        if not uids:
            return None
        self._fail_at(f"fetch {uids[0]}")
        self.place = Place(1, uids[-1])
        return Batch([FetchedMail(str(uid), self.mails[uid]) for uid in uids], self.place)

    async def finish(self, keys: Sequence[str]) -> None:
        """Mark mails."""
        if not keys:
            return
        self._fail_at(f"mark {keys[0]}")
        self.steps.append(f"mark {','.join(keys)}")

    async def close(self) -> None:
        """Close it."""
        self.steps.append("close")

    def _fail_at(self, step: str) -> None:
        for number, (where, failure) in enumerate(self.failures):
            if where == step:
                del self.failures[number]
                raise failure


class Endpoint:
    """A token endpoint that numbers its tokens. ``rotates``: each answer has a refresh token."""

    def __init__(self) -> None:
        self.forms: list[Mapping[str, str]] = []
        self.problem: Exception | None = None
        self.rotates = True

    def post(self, url: str, form: Mapping[str, str], user: Any) -> Deferred[JsonObject]:
        """Answer a form."""
        self.forms.append(form)
        if self.problem is not None:
            return fail(self.problem)
        number = len(self.forms)
        more = {"refresh_token": f"refresh {number}"} if self.rotates else {}
        return succeed({"access_token": f"access {number}", "expires_in": 3_600, **more})


class World:
    """Daemons on one database, with one mailbox."""

    def __init__(self, mailbox: ReportMailbox = MAILBOX) -> None:
        self.clock = Clock()
        self.clock.advance(TEST_START)
        worker = DirectWorker()
        engine = SqliteEngine(IN_MEMORY, worker, worker, call_immediately)
        engine.open()
        self.store = ReportMailboxStore(engine)
        self.mailbox = Mailbox({uid: b"report %d" % uid for uid in range(1, 6)})
        self.endpoint = Endpoint()
        self.imported: list[bytes] = []
        self.refusal: ExpectedFailure | None = None
        self.accounts = {"shop": AccountId("shop")}
        self.configured = mailbox
        self.daemons = [self.daemon("one")]

    def daemon(self, holder: str) -> FetchReports:
        """Return a started daemon."""

        async def import_mails(account: AccountId, mails: Sequence[bytes]) -> list[ImportedMail]:
            self.mailbox.steps.append(f"import {len(mails)}")
            if self.refusal is not None:
                raise self.refusal
            found = []
            for mail in mails:
                is_new = mail not in self.imported
                found.append(ImportedMail(mail.startswith(b"report"), int(is_new)))
                self.imported += [mail] * is_new
            return found

        async def find_account(name: str) -> AccountId | None:
            return self.accounts.get(name)

        daemon = FetchReports(
            self.store,
            lambda _: self.mailbox,
            AccessTokens(self.endpoint, self.store, self.clock),
            import_mails,
            find_account,
            holder=holder,
            clocks=clock_and_randomness_of(self.clock),
        )
        daemon.change([self.configured])
        run(daemon.start())
        return daemon

    def poll(self, milliseconds: int = 0) -> list[str]:
        """Let all daemons look into the mailbox after a time; return the steps."""
        self.clock.advance(milliseconds / SECOND)
        self.mailbox.steps.clear()
        for daemon in self.daemons:
            run(daemon.poll())
        return list(self.mailbox.steps)

    @property
    def state(self) -> MailboxState:
        """What is stored about the mailbox."""
        (state,) = result_of(self.store.states([self.configured.id])).values()
        assert isinstance(state, MailboxState)
        return state


def run_first(world: World) -> list[str]:
    """Return the steps of the first look, which a daemon takes when it starts."""
    return list(world.mailbox.steps)


def test_reports_are_stored_before_mails_are_marked() -> None:
    """Each batch is stored, then marked, and then the place in the mailbox is stored."""
    world = World()
    assert run_first(world) == [
        "open after 0",
        *("import 2", "mark 1,2"),
        *("import 2", "mark 3,4"),
        *("import 1", "mark 5"),
        "close",
    ]
    assert (world.state.uid_validity, world.state.last_uid) == (1, 5)
    assert (world.state.mails, world.state.reports, world.state.problem) == (5, 5, "")


def test_only_reports_are_marked() -> None:
    """Other mails of a shared mailbox stay as they are, and are read once."""
    world = World()
    world.mailbox.mails |= {6: b"hello", 7: b"report 7", 8: b"hello again", 9: b"and again"}
    assert world.poll(10 * MINUTE) == ["open after 5", "import 2", "mark 7", "import 2", "close"]
    assert world.poll(10 * MINUTE) == ["open after 9", "close"]


def test_a_mailbox_is_read_by_one_daemon() -> None:
    """Of three daemons, one reads the mailbox, and the next time is the same for all."""
    world = World()
    world.daemons += [world.daemon("two"), world.daemon("three")]
    assert world.poll(9 * MINUTE) == []
    assert world.poll(1 * MINUTE) == ["open after 5", "close"]
    assert len(world.imported) == 5


def test_a_crash_repeats_a_batch() -> None:
    """A batch that is stored but not marked is fetched again, and has no new report."""
    world = World()
    world.mailbox.mails |= {6: b"report 6"}
    world.mailbox.failures = [("mark 6", MailboxFailed("It broke."))]
    assert world.poll(10 * MINUTE) == ["open after 5", "import 1", "close"]
    assert (world.state.last_uid, world.state.problem) == (5, "It broke.")
    assert world.poll(5 * MINUTE) == ["open after 5", "import 1", "mark 6", "close"]
    assert (world.state.last_uid, world.state.reports) == (6, 5)
    assert len(world.imported) == 6


@pytest.mark.usefixtures("logged_failures")
def test_an_answer_that_nobody_expects() -> None:
    """The owner learns that the mailbox cannot be read, which is tried again as ever."""
    world = World()
    world.mailbox.failures = [("open", ValueError("invalid literal for int()"))]
    assert world.poll(10 * MINUTE) == []
    assert (world.state.problem, world.state.failures) == (UNEXPECTED, 1)
    assert world.poll(5 * MINUTE) == ["open after 5", "close"]
    assert world.state.problem == ""


def test_a_lost_connection_is_replaced_after_progress() -> None:
    """A server that ends the connection in the middle is asked for the rest at once."""
    world = World()
    world.mailbox.mails |= {uid: b"report %d" % uid for uid in (6, 7, 8)}
    world.mailbox.failures = [("fetch 8", MailboxFailed("The server closed the connection."))]
    steps = world.poll(10 * MINUTE)
    assert [step for step in steps if step.startswith("open")] == ["open after 5", "open after 7"]
    assert (world.state.problem, world.state.last_uid) == ("", 8)


@rows(
    (MailboxFailed("a"), (5 * MINUTE, 10 * MINUTE, 20 * MINUTE)),
    (MailboxFailed("b", Remedy.OPERATOR), (OPERATOR_RETRY, OPERATOR_RETRY)),
    (MailboxFailed("c", Remedy.RETRY_ONCE), (5 * MINUTE, OPERATOR_RETRY)),
    (MailboxFailed("d", wait=30 * MINUTE), (30 * MINUTE, 30 * MINUTE)),
    (MailboxFailed("e", Remedy.RENEW), (5 * MINUTE, 10 * MINUTE)),
)
def test_failures_are_retried_later(failure: MailboxFailed, pauses: Sequence[int]) -> None:
    """The pause depends on what helps, and a server that is asked for too much gets its time."""
    world = World()
    world.mailbox.failures = [("open", failure)] * (len(pauses) + 1)
    world.poll(10 * MINUTE)
    for pause in pauses:
        assert world.state.problem == str(failure)
        assert world.state.next_at - TEST_START * SECOND == _passed(world) + pause
        world.poll(pause - 1)
        before = len(world.mailbox.failures)
        world.poll(1)
        assert len(world.mailbox.failures) == before - 1
    world.mailbox.failures.clear()
    world.poll(OPERATOR_RETRY)
    assert (world.state.problem, world.state.failures) == ("", 0)


def _passed(world: World) -> int:
    return round((world.clock.seconds() - TEST_START) * SECOND)


def test_reports_that_cannot_be_stored() -> None:
    """A store that is full for now is a problem of the mailbox, which is read again later."""
    world = World()
    world.mailbox.mails |= {6: b"report 6"}
    world.refusal = Overloaded("other imports are in progress")
    assert world.poll(10 * MINUTE) == ["open after 5", "import 1", "close"]
    problem = "The reports could not be stored: other imports are in progress."
    assert (world.state.problem, world.state.last_uid) == (problem, 5)
    world.refusal = None
    assert world.poll(5 * MINUTE) == ["open after 5", "import 1", "mark 6", "close"]


def test_a_changed_configuration_is_tried_at_once() -> None:
    """After a reload with another password, a mailbox that fails is tried again at once."""
    world = World()
    world.mailbox.failures = [("open", MailboxFailed("Wrong password.", Remedy.OPERATOR))]
    world.poll(10 * MINUTE)
    assert world.poll(MINUTE) == []
    world.daemons[0].change([replace(MAILBOX, password="right")])
    assert world.mailbox.steps == ["open after 5", "close"]
    world.daemons[0].change([])
    assert world.poll(OPERATOR_RETRY) == []


def test_a_corrected_maildir_is_tried_at_a_reload() -> None:
    """A folder that is created later is read at a reload without another change."""
    maildir = ReportMailbox("shop", maildir="/var/mail/dmarc")
    world = World(maildir)
    world.mailbox.failures = [("open", MailboxFailed("/var/mail/dmarc/new does not exist"))]
    world.poll(10 * MINUTE)
    assert world.state.problem
    world.mailbox.steps.clear()
    world.daemons[0].change([maildir])
    assert world.mailbox.steps == ["open after 5", "close"]


def test_a_project_that_does_not_exist() -> None:
    """Without the account, nothing is fetched, and the problem names it."""
    world = World()
    world.accounts.clear()
    assert world.poll(10 * MINUTE) == []
    assert world.state.problem == "There is no account or project 'shop'."


def test_tokens_are_renewed_and_kept() -> None:
    """A token is used until it ends. A new refresh token replaces the configured one."""
    world = World(WITH_TOKEN)
    assert world.mailbox.tokens == ["access 1"]
    assert world.endpoint.forms == [
        {"client_id": "client", "grant_type": "refresh_token", "refresh_token": "first"}
    ]
    world.poll(10 * MINUTE)
    assert world.mailbox.tokens == ["access 1"] * 2
    world.poll(46 * MINUTE)
    assert world.mailbox.tokens[-1] == "access 2"
    assert world.endpoint.forms[-1]["refresh_token"] == "refresh 1"
    changed = replace(WITH_TOKEN, grant=replace(GRANT, refresh_token="from the operator"))
    world.daemons[0].change([changed])
    world.poll(10 * MINUTE)
    assert world.endpoint.forms[-1]["refresh_token"] == "from the operator"


def test_a_token_that_ends_during_a_session() -> None:
    """The session goes on with a new token; a server that rejects that one too is left alone."""
    world = World(WITH_TOKEN)
    ended = MailboxFailed("AccessTokenExpired", Remedy.RENEW)
    world.mailbox.mails |= {6: b"report 6"}
    world.mailbox.failures = [("fetch 6", ended)]
    world.poll(10 * MINUTE)
    assert world.mailbox.tokens[-2:] == ["access 1", "access 2"]
    used = [form["refresh_token"] for form in world.endpoint.forms]
    assert used == ["first", "refresh 1"]
    assert (world.state.last_uid, world.state.problem) == (6, "")
    world.mailbox.failures = [("open", ended)] * 5
    world.poll(10 * MINUTE)
    assert len(world.mailbox.failures) == 3
    assert world.state.problem == "AccessTokenExpired"


def test_client_credentials() -> None:
    """Without a refresh token, the client's own credentials get the token."""
    grant = TokenGrant(
        "https://login.example.com/token", "client", "key", scope="https://x/.default"
    )
    world = World(replace(WITH_TOKEN, grant=grant))
    assert world.endpoint.forms == [
        {
            "client_id": "client",
            "grant_type": "client_credentials",
            "client_secret": "key",
            "scope": "https://x/.default",
        }
    ]


def test_a_refused_token() -> None:
    """The operator reads the error and the number that the provider's documents explain."""
    world = World(WITH_TOKEN)
    world.endpoint.problem = ProviderRefused(
        "x", "invalid_grant", "AADSTS700082: It has expired.\r\n"
    )
    world.poll(60 * MINUTE)
    assert world.state.problem == (
        "The token endpoint refused a token: invalid_grant: AADSTS700082: It has expired."
    )
    assert world.state.next_at == (TEST_START + 3_600) * SECOND + OPERATOR_RETRY
    assert "first" not in world.state.problem


def test_a_mailbox_that_is_not_configured_any_more() -> None:
    """Its state and its token are deleted after a while, and those of others are kept."""
    world = World(WITH_TOKEN)
    kept = replace(MAILBOX, user="other@example.com")
    world.daemons[0].change([kept])
    for _ in range(31):
        world.poll(24 * 60 * MINUTE)
    result_of(world.store.forget(round(world.clock.seconds() * SECOND)))  # type: ignore[arg-type]
    assert list(result_of(world.store.states([WITH_TOKEN.id, kept.id]))) == [kept.id]
