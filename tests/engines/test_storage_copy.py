"""Copying a SQLite file to PostgreSQL, completely or not at all."""

import sqlite3
from pathlib import Path

import psycopg2
import pytest
from msgspec.structs import replace

from mailcheck.core.accounts import ApiKey, Quota
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.domains.digests import DigestSettings
from mailcheck.core.domains.heartbeats import DayOfBeats, HeartbeatSettings, Schedule
from mailcheck.core.domains.receiver_reports import ReportKind, SenderDecision
from mailcheck.core.domains.watches import (
    AlertId,
    Raised,
    WatchChange,
    WatchKind,
    WatchScore,
    WatchSettings,
)
from mailcheck.core.errors import ExpectedFailure, StoreUnavailable
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.inbound import InboundAttempt, InboundState, NextStep
from mailcheck.core.instants import HOUR
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.core.oauth.clients import Client, ClientSource
from mailcheck.core.oauth.grants import AuthorizationCode, NewTokens
from mailcheck.core.projects import Member, Role
from mailcheck.core.signing_in.company import LinkedIdentity
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.core.webhooks import Attempt, WebhookDelivery
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.engines.store_copy import (
    CopyDiffers,
    StoreInUse,
    TargetNotEmpty,
    copy_store,
    list_tables,
)
from mailcheck.ports.cluster import Hit
from mailcheck.ports.workers import Lease
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.accounts.audit_store import AuditStore
from mailcheck.store.accounts.identity_store import IdentityStore
from mailcheck.store.accounts.oauth_store import OAuthStore
from mailcheck.store.accounts.passkey_store import PasskeyStore
from mailcheck.store.accounts.project_store import ProjectStore
from mailcheck.store.accounts.sign_in_store import PasswordStore, SessionStore
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.deliverability_store import DeliverabilityStore
from mailcheck.store.domains.digest_store import DigestStore
from mailcheck.store.domains.heartbeat_store import HeartbeatRecord, HeartbeatStore
from mailcheck.store.domains.local_state import SqlMemory, SqlRateCounters, SqlSelectors
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore
from mailcheck.store.domains.report_quotas import Outcome, Tally
from mailcheck.store.domains.report_store import CountedRow, ReportStore
from mailcheck.store.domains.sender_store import SenderStore
from mailcheck.store.domains.traffic_store import TrafficCount, TrafficKey, TrafficStore
from mailcheck.store.domains.watch_store import RunRecord, WatchStore
from mailcheck.store.inbound_store import InboundStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.mailbox_store import MailboxStore, MailStructure
from mailcheck.store.messages import MessagePage
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import (
    NOON,
    account,
    addressed,
    at,
    content,
    deliverability_test,
    delivery,
    inbound_delivery,
    inbound_mail,
    inbound_route,
    mail,
    noted,
    recipient,
    refusal,
    report_recipient,
    watch,
    webhook,
)
from tests.house import result_of
from tests.table import rows

ANN = AccountId("ann")
KEY = ApiKey(KeyId("k"), ANN, "CI", "mc_abc", NOON, at(5), None, 6_000, None)
ENTRY = AuditEntry("e1", NOON, ANN, "", "ann", "192.0.2.7", Action.KEY_ISSUED, "k 'CI'")
QUOTA = Quota(10_000, 2**40)
RAW = mail("Grüße", "x\x00\r\n.\r\n" * 9) + bytes(range(256))


def ignore_progress(table: str, done: int, total: int) -> None:
    """Ignore the progress."""


def fill_signing_in(engine: SqliteEngine) -> None:
    """Add an identity, a link, a passkey, a challenge, and a client with a code and tokens."""
    identities, passkeys, oauth = IdentityStore(engine), PasskeyStore(engine), OAuthStore(engine)
    result_of(identities.link(LinkedIdentity("https://id.example", "ann-1", ANN, NOON), noted()))
    result_of(identities.add_link(b"link", ANN, at(60), noted(NOON)))
    result_of(
        passkeys.add_passkey(Passkey("p", ANN, b"\xff\x00", b"cose", 0, "Laptop", NOON), noted())
    )
    result_of(passkeys.add_challenge(b"challenge", NOON, at(60)))
    back = "https://agent.example/back"
    client = Client(
        id="agent",
        name="Agent",
        redirect_uris=back,
        source=ClientSource.OPERATOR,
        has_secret=True,
        created_at=NOON,
    )
    result_of(oauth.add_client(client, b"secret", 9, noted()))
    code = AuthorizationCode(ANN, ANN, "agent", "Agent", back, "challenge", "inbox:read", at(60))
    result_of(oauth.add_code(b"code", code, NOON))
    grant = ApiKey(KeyId("g"), ANN, "", "", NOON, None, None, None, None, client_id="agent")
    tokens = NewTokens(b"access", at(60), b"refresh", at(60))
    redeemed = oauth.redeem_code(b"code", grant, b"none", back, "challenge", tokens, 9, noted())
    assert result_of(redeemed).key is not None


def fill(path: str) -> None:
    """Create a database with rows in each of its tables, and close it."""
    engine = SqliteEngine(path, DirectWorker(), DirectWorker())
    engine.open()
    accounts, mails, passwords = (
        AccountStore(engine),
        MailStore(engine, QUOTA),
        PasswordStore(engine),
    )
    for one in (account("ann", is_operator=True, max_messages=9_999), account("bob")):
        result_of(accounts.add_account(one, noted()))
    result_of(accounts.add_key(KEY, b"\x00digest\xff", noted()))
    result_of(accounts.add_key_days([(KEY.id, 20_000, 7)], 0))
    result_of(passwords.set_password(ANN, "$scrypt$hash", noted(NOON)))
    result_of(passwords.add_invitation(b"invitation", at(60), noted(NOON)))
    result_of(SessionStore(engine).open_session(b"session", ANN, at(60), noted(NOON, "192.0.2.7")))
    result_of(AuditStore(engine).add(ENTRY))
    projects, owner = ProjectStore(engine), Member(ANN, "ann", Role.OWNER, NOON)
    result_of(projects.add(account("shop", is_project=True), owner, 9, noted()))
    shop = AccountId("shop")
    result_of(
        projects.add_invitation(b"join", shop, Role.READER, "bob@example.com", at(60), noted(NOON))
    )
    fill_signing_in(engine)
    test = deliverability_test("report")
    result_of(DeliverabilityStore(engine).add(test, at(9_999)))
    many = [recipient("ann", f"t{number}") for number in range(1_200)]
    result_of(mails.deliver(delivery(*many)))
    beats = HeartbeatStore(engine)
    expected = WatchSettings(heartbeat=HeartbeatSettings(Schedule(every=HOUR)))
    beating = replace(watch("beat"), kind=WatchKind.HEARTBEAT, target="beat", settings=expected)
    result_of(beats.add(beating))
    result_of(beats.observe(NOON))
    result_of(mails.deliver(delivery(recipient("ann", "beat.beat"))))
    result_of(beats.claim("daemon", NOON, 15_000, 1))
    of_beat = RunRecord(beating, NOON, at(60), "{}")
    days = (DayOfBeats(NOON, on_time=1, lowest=95),)
    result_of(beats.record_beats("daemon", HeartbeatRecord(of_beat, (), days)))
    odd = delivery(recipient("ann", "a"), recipient("bob"), raw=RAW, sender="nul\x00@example.com")
    result_of(mails.deliver(odd))
    result_of(mails.deliver(delivery(addressed(test), raw=mail("Judge me"))))
    result_of(ContentStore(engine).save_content(odd.id, content("Grüße \x00", ["482913"])))
    structure = MailStructure(b'("\\xff")', b"{1}\r\n\xff", None)
    result_of(MailboxStore(engine).save_structures([(odd.id, structure)]))
    result_of(mails.mark_read(ANN, [odd.message_ids[0]]))
    result_of(mails.note_refusal(refusal("bob", 1)))
    result_of(SqlRateCounters(engine).hit(Hit(key_of("list", "a"), ((DAY_WINDOW, 1, 9),))))
    result_of(SqlMemory(engine, lambda: NOON).keep(key_of("health"), "{}", 60_000))
    result_of(SqlSelectors(engine).note_selectors([("a.example", "s")]))
    webhooks = WebhookStore(engine)
    made = result_of(webhooks.add(webhook("ci"), noted(), is_from_now=True))
    result_of(webhooks.note(made.id, WebhookDelivery("test_1", NOON, Attempt(), 7)))
    assert result_of(webhooks.claim("daemon", NOON, 15_000))
    inbound, route = InboundStore(engine), inbound_route("route", password="\x00", user="u")
    result_of(inbound.add_route(route, noted(), is_per_recipient=True, opening=None))
    posted = inbound_mail("mail", raw_message=RAW)
    result_of(inbound.add_mail(posted, [inbound_delivery("inbound", route, posted)]))
    claimed = result_of(inbound.claim(Lease("daemon", at(60)), NOON, 1))
    tried = InboundAttempt(
        claimed.jobs[0].id, route.id, posted.id, 1, NOON, 500, 7, "no \x00", answer=b"\x00\xff"
    )
    step = NextStep(InboundState.FAILED)
    assert result_of(inbound.record(claimed.jobs[0], "daemon", tried, step, NOON, is_taken=False))
    watches = WatchStore(engine)
    watched = result_of(watches.add(watch("one")))
    result_of(watches.claim("daemon", NOON, 15_000, 1))
    change = WatchChange(NOON, "SPF", "record", None, "v=spf1 \x00 -all", "It is new.", "note")
    raised = Raised("SPF: record", "error", "It is bad.", is_new=True)
    score = WatchScore(NOON, 90, "A", {"SPF": 20})
    recorded = RunRecord(watched, NOON, at(60), "{}", (change,), ((AlertId("a1"), raised),), score)
    assert result_of(watches.record("daemon", recorded))
    decided = SenderDecision.MINE
    result_of(SenderStore(engine).decide(ANN, "example.org", "sendgrid", decided, NOON))
    reports = ReportStore(engine)
    result_of(mails.deliver(delivery(report_recipient("ann"), raw=mail("Report"))))
    row = CountedRow(
        ANN, ReportKind.DMARC, "example.org", NOON, "digest", "google.com", '{"row": "\x00"}', 2
    )
    result_of(reports.count([row]))
    tally = Tally(NOON, "google.com", Outcome.OVER_QUOTA, 1, 2, 3, "example.org")
    result_of(reports.tally(AccountId("ann"), tally))
    result_of(DigestStore(engine).save(ANN, DigestSettings(), NOON, at(60)))
    assert result_of(ReportMailboxStore(engine).claim("mailbox", "daemon", NOON, 15_000))
    sender = TrafficKey(NOON, "a.example", "b.example", "192.0.2.7", "", "pass", "none", "fail")
    result_of(TrafficStore(engine).add(ANN, [(sender, TrafficCount(3, 2, 1, -7))]))
    result_of(engine.close())
    fill_with_rows(path)


ROWS: dict[str, tuple[object, ...]] = {
    "report_day": ("ann", "dmarc", "example.org", NOON, 12, 3),
    "provisioned_user": ("bob", "Bob", "bob", "b-1", "{}", 1, NOON, 1),
    "provisioned_group": ("g", "Staff", "staff", "g-1", NOON, NOON, 1),
    "provisioned_member": ("g", "bob"),
    "provisioned_role": ("shop", "bob", "reader"),
}
"""Rows of tables that are written with the rows of other tables only."""


def fill_with_rows(path: str) -> None:
    """Add the rows to a closed database."""
    connection = sqlite3.connect(path)
    for table, values in ROWS.items():
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    connection.commit()
    connection.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a full database, which no test changes."""
    path = str(tmp_path_factory.mktemp("full") / "mail.db")
    fill(path)
    return path


def newest(engine: DatabaseEngine) -> MessagePage:
    """Return the newest mails of ann."""
    page: MessagePage = result_of(MailStore(engine, QUOTA).page(ANN, MessageFilter(), NOON, 100, 0))
    return page


def counts(url: str, path: str) -> dict[str, int]:
    """Return the number of rows of each table of a PostgreSQL database."""
    with sqlite3.connect(path) as source:
        names = [table.name for table in list_tables(source)]
    source.close()
    connection = psycopg2.connect(url)
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(f"SELECT '{name}', COUNT(*) FROM {name}" for name in names)
        )
        found = dict(cursor.fetchall())
    connection.close()
    return found


def test_everything_is_copied(full: str, postgresql_url: str) -> None:
    """Each row of each table is copied; readers see the same mail, keys and cursor."""
    told: dict[str, tuple[int, int]] = {}
    copied = copy_store(full, postgresql_url, lambda name, *how: told.update({name: how}))
    assert {name: summary.rows for name, summary in copied.items()} == counts(postgresql_url, full)
    assert min(counts(postgresql_url, full).values()) > 0
    assert told == {name: (one.rows, one.rows) for name, one in copied.items()}
    before = SqliteEngine(full, DirectWorker(), DirectWorker())
    after = PostgresqlEngine(postgresql_url, DirectWorker(), DirectWorker())
    for engine in (before, after):
        engine.open()
    assert newest(after) == newest(before)
    odd = newest(after).entries[0][0]
    assert odd.is_read
    for engine in (before, after):
        assert result_of(ContentStore(engine).raw_message(odd.delivery_id)) == RAW
    assert result_of(AccountStore(after).find_key(b"\x00digest\xff")) == KEY
    result_of(MailStore(after, QUOTA).deliver(delivery(recipient("ann"))))
    assert newest(after).last_position == newest(before).last_position + 1
    for engine in (before, after):
        result_of(engine.close())


def test_a_target_that_is_not_empty(full: str, postgresql_url: str) -> None:
    """Existing data in the target is not changed."""
    copy_store(full, postgresql_url, ignore_progress)
    before = counts(postgresql_url, full)
    with pytest.raises(TargetNotEmpty, match="account"):
        copy_store(full, postgresql_url, ignore_progress)
    assert counts(postgresql_url, full) == before


def test_a_file_in_use(full: str, postgresql_url: str) -> None:
    """A file that another process has open is not copied; after it is closed, it is."""
    engine = SqliteEngine(full, DirectWorker(), DirectWorker())
    engine.open()
    with pytest.raises(StoreInUse, match="stop the daemon"):
        copy_store(full, postgresql_url, ignore_progress, timeout=0.0)
    newest(engine)
    result_of(engine.close())
    assert set(counts(postgresql_url, full).values()) == {0}
    copy_store(full, postgresql_url, ignore_progress)


def test_no_file(tmp_path: Path, postgresql_url: str) -> None:
    """A missing file is not created."""
    missing = tmp_path / "none.db"
    with pytest.raises(StoreUnavailable, match="there is no database"):
        copy_store(str(missing), postgresql_url, ignore_progress)
    assert not missing.exists()


def test_an_interrupted_copy(full: str, postgresql_url: str) -> None:
    """An interrupted copy leaves the target empty, and can be repeated."""

    class Interrupted(ExpectedFailure):
        pass

    def interrupt(table: str, done: int, total: int) -> None:
        if table == "message":
            raise Interrupted

    with pytest.raises(Interrupted):
        copy_store(full, postgresql_url, interrupt)
    assert set(counts(postgresql_url, full).values()) == {0}
    copy_store(full, postgresql_url, ignore_progress)
    assert counts(postgresql_url, full)["message"] == 1_203


@rows(
    ("inbox", "NEW.last_position := NEW.last_position + 1"),
    ("account", "NEW.max_bytes := 0"),
    ("message", "NEW.tag := upper(NEW.tag)"),
    ("delivery", "NEW.raw_message := substr(NEW.raw_message, 2)"),
    ("invitation", "RETURN NULL"),
)
def test_a_target_that_keeps_something_else(
    full: str, postgresql_database: str, table: str, change: str
) -> None:
    """A changed number, text, byte string or row is detected, and the copy is rolled back."""
    connection = psycopg2.connect(postgresql_database)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(
            "DROP FUNCTION IF EXISTS change CASCADE; "
            "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {change}; RETURN NEW; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER change BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION change()"
        )
    with pytest.raises(CopyDiffers, match=table):
        copy_store(full, postgresql_database, ignore_progress)
    connection.close()
    assert set(counts(postgresql_database, full).values()) == {0}
