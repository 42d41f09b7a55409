"""The contract of `ReportStore`, and of `MailStore` for mail to report addresses."""

import json

import msgspec
import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from mailcheck.checks.receiver_reports.limits import MAX_SUM
from mailcheck.checks.receiver_reports.tls import TlsSessions
from mailcheck.core.domains.receiver_reports import (
    MAX_WAITING,
    RAW_KEPT,
    REPORTS_KEPT,
    SUMS_KEPT,
    Feedback,
    FeedbackType,
    Letter,
    ReceiverReport,
    ReportedMail,
    ReportId,
    ReportKind,
    ReportSelection,
    ReportState,
    ReportWay,
    SumOfDay,
    day_of,
    former_row_digest,
    row_digest,
)
from mailcheck.core.errors import InboxFull
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.ports.workers import Lease
from mailcheck.store.domains.report_quotas import Admission, Claim
from mailcheck.store.domains.report_store import CountedRow, ImportedReport, Removed, WaitingReport
from mailcheck.store.domains.report_sums import TOTALS
from mailcheck.workers.scheduling import DirectWorker
from tests.contracts.conftest import Stores
from tests.engines.deliveries import (
    NOON,
    SESSION,
    at,
    delivery,
    recipient,
    report_recipient,
)
from tests.house import result_of

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE = Lease("this daemon", Instant(NOON + 5 * MINUTE))
OTHER = Lease("another one", Instant(NOON + 5 * MINUTE))
TODAY = Instant(NOON - NOON % DAY)


def posted(name: str = "posted", account_id: AccountId = ANN) -> ReceiverReport:
    """Return a waiting report that was posted."""
    return ReceiverReport(ReportId(name), account_id, ReportKind.TLS, ReportState.WAITING, NOON)


def counted(waiting: WaitingReport, name: str = "counted", **facts: object) -> ReceiverReport:
    """Return the counted report of a waiting one."""
    known: dict[str, object] = {
        "state": ReportState.COUNTED,
        "domain": "example.org",
        "reporter": "google.com",
        "organisation": "Google",
        "report_id": "7",
        "begins_at": TODAY,
        "ends_at": Instant(TODAY + DAY),
        "policy": "none",
        "messages": 10,
        "failing": 4,
        "problems": ("row 3 is left out",),
    }
    return ReceiverReport(
        id=ReportId(name),
        account_id=waiting.account_id,
        kind=waiting.kind,
        received_at=waiting.received_at,
        **{**known, **facts},  # type: ignore[arg-type]
    )


def counts(number: int, day: Instant = TODAY, amount: int = 2, **facts: object) -> CountedRow:
    """Return a row to count; rows with the same number have the same result."""
    row = CountedRow(
        ANN,
        ReportKind.DMARC,
        "example.org",
        day,
        f"{number} {day}",
        "google.com",
        f"{number}",
        amount,
    )
    return replace(row, **facts)


async def claimed(stores: Stores, lease: Lease = MINE, now: Instant = NOON) -> WaitingReport:
    """Claim the next report, which must exist."""
    found = await stores.reports.claim(lease, now)
    assert found is not None
    return found


async def test_mail_to_a_report_address(stores: Stores) -> None:
    """It waits to be read, unchanged and once for each account, and no inbox shows it."""
    to = [report_recipient("ann"), report_recipient("ann"), recipient("bob")]
    positions = await stores.deliveries.deliver(delivery(*to, raw=b"Subject: x\r\n\r\nhello"))
    assert positions == (1,)
    waiting = await claimed(stores)
    assert (waiting.account_id, waiting.kind, waiting.attempts) == (ANN, ReportKind.DMARC, 1)
    assert waiting.mailbox_name == "dev-ann"
    assert waiting.mail is not None
    assert waiting.mail.raw_message == b"Subject: x\r\n\r\nhello"
    assert waiting.mail.session == SESSION
    assert await stores.reports.claim(MINE, NOON) is None
    (bob,) = (await stores.reports.of_account(BOB, 10, 0)).entries or (None,)
    assert bob is None


async def test_a_report_is_stored_completely(stores: Stores) -> None:
    """The report that was read replaces the waiting one; only its account finds it."""
    await stores.deliveries.deliver(delivery(report_recipient("ann")))
    waiting = await claimed(stores)
    first = counted(waiting)
    second = counted(waiting, "b", state=ReportState.REFUSED, reason="it is no XML", domain="")
    second = replace(second, begins_at=None, ends_at=None, problems=())
    assert not await stores.reports.finish(waiting.id, OTHER.holder, [first])
    assert await stores.reports.finish(waiting.id, MINE.holder, [first, second])
    page = await stores.reports.of_account(ANN, 10, 0)
    assert {one.id: one for one in page.entries} == {"counted": first, "b": second}
    assert page.total == 2
    assert len((await stores.reports.of_account(ANN, 1, 1)).entries) == 1
    assert (await stores.reports.of_account(BOB, 10, 0)).total == 0
    (domain,) = await stores.reports.domains(ANN)
    assert (domain.domain, domain.reports, domain.messages, domain.failing) == (
        "example.org",
        1,
        10,
        4,
    )
    assert await stores.reports.policy(ANN, "example.org") == "none"


async def test_a_report_counts_once(stores: Stores) -> None:
    """An equal report of the same reporter is repeated; that of another reporter is counted."""
    for number, reporter in enumerate(("google.com", "google.com", "yahoo.com")):
        await stores.deliveries.deliver(delivery(report_recipient("ann"), received_at=at(number)))
        waiting = await claimed(stores, now=at(number))
        report = counted(waiting, f"r{number}", reporter=reporter)
        assert await stores.reports.finish(waiting.id, MINE.holder, [report])
    page = await stores.reports.of_account(ANN, 10, 0)
    assert [one.state for one in page.entries] == [
        ReportState.COUNTED,
        ReportState.REPEATED,
        ReportState.COUNTED,
    ]
    assert "before" in page.entries[1].reason


async def test_one_id_on_several_days_is_several_reports(stores: Stores) -> None:
    """The period and the organization are part of the identity, but not that of a complaint."""
    day: dict[str, object] = {"begins_at": TODAY, "ends_at": Instant(TODAY + DAY - 1)}
    before: dict[str, object] = {"begins_at": Instant(TODAY - DAY), "ends_at": Instant(TODAY - 1)}
    noon: dict[str, object] = {
        "begins_at": Instant(TODAY - DAY // 2),
        "ends_at": Instant(TODAY + DAY // 2),
    }
    states = []
    of_tenant: dict[str, object] = {**day, "organisation": "Tenant"}
    for number, facts in enumerate((day, before, noon, noon, of_tenant, before)):
        await stores.deliveries.deliver(delivery(report_recipient("ann"), received_at=at(number)))
        waiting = await claimed(stores, now=at(number))
        report = counted(waiting, f"r{number}", **facts)
        claim = Claim(report, TODAY, "google.com", 1, 1, 1)
        is_repeated = await stores.reports.admit(claim) is Admission.REPEATED
        await stores.reports.finish(waiting.id, MINE.holder, [report])
        (entry,) = (await stores.reports.of_account(ANN, 1, 0)).entries
        assert is_repeated is (entry.state is ReportState.REPEATED)
        states.append(entry.state)
    counting, repeated = ReportState.COUNTED, ReportState.REPEATED
    assert states == [counting, counting, counting, repeated, counting, repeated]
    for number, facts in enumerate((day, before)):
        to = report_recipient("ann", ReportKind.COMPLAINT)
        await stores.deliveries.deliver(delivery(to, received_at=at(10 + number)))
        waiting = await claimed(stores, now=at(10 + number))
        report = counted(waiting, f"c{number}", **facts)
        await stores.reports.finish(waiting.id, MINE.holder, [report])
    page = await stores.reports.of_account(ANN, 10, 0, ReportKind.COMPLAINT)
    assert [one.state for one in page.entries] == [repeated, counting]


async def test_equal_rows_of_one_id_in_one_day_are_counted_apart(stores: Stores) -> None:
    """Reports about parts of a day may have one id. Rows of an earlier version are deleted, too."""
    waiting = await _waiting(stores)
    halves = [
        counted(waiting, f"half{one}", begins_at=Instant(TODAY + one), ends_at=Instant(TODAY + 9))
        for one in (0, 1)
    ]
    await stores.reports.finish(waiting.id, MINE.holder, halves)
    digests = [row_digest(one, "1") for one in halves] + [former_row_digest(halves[0], "1")]
    await stores.reports.count([replace(counts(1), digest=one) for one in digests])
    assert await stores.reports.count_rows(ANN, ReportKind.DMARC, "example.org", TODAY) == 3
    selection = ReportSelection(report_id=halves[0].id)
    await stores.reports.remove(ANN, selection, NOON, 10)
    assert await stores.reports.count_rows(ANN, ReportKind.DMARC, "example.org", TODAY) == 1


async def _waiting(stores: Stores) -> WaitingReport:
    await stores.deliveries.deliver(delivery(report_recipient("ann")))
    return await claimed(stores)


async def test_leases(stores: Stores) -> None:
    """One holder reads a report at a time; an expired or released lease passes it on."""
    await stores.reports.post(posted(), b"{}")
    first = await claimed(stores)
    assert (first.mail, first.body) == (None, b"{}")
    assert await stores.reports.claim(OTHER, at(1)) is None
    await stores.reports.release(MINE.holder)
    assert (await claimed(stores, OTHER)).attempts == 1
    await stores.reports.postpone(first.id, OTHER.holder, at(60))
    assert await stores.reports.claim(MINE, at(59)) is None
    assert (await claimed(stores, MINE, at(60))).attempts == 2
    assert await stores.reports.claim(OTHER, at(299)) is None
    assert (await claimed(stores, replace(OTHER, until=at(900)), at(300))).attempts == 3


async def test_accounts_take_turns(stores: Stores) -> None:
    """Many reports of one account do not delay those of another account."""
    for number in range(3):
        await stores.reports.post(replace(posted(f"a{number}"), received_at=at(number)), b"{}")
    await stores.reports.post(replace(posted("b", BOB), received_at=at(9)), b"{}")
    assert [(await claimed(stores, now=at(10))).id for _ in range(3)] == ["a0", "b", "a1"]


async def test_the_mail_of_a_report_that_is_not_counted_is_kept(stores: Stores) -> None:
    """Its owner can find out why; the mail of a counted report is deleted."""
    for state in (ReportState.COUNTED, ReportState.APART):
        sent = delivery(report_recipient("ann"))
        await stores.deliveries.deliver(sent)
        waiting = await claimed(stores)
        report = counted(waiting, state.value, state=state)
        await stores.reports.finish(waiting.id, MINE.holder, [report])
        raw = await stores.contents.raw_message(sent.id)
        assert (raw is None) is (state is ReportState.COUNTED)


async def test_reports_about_single_mails(stores: Stores) -> None:
    """Their content is stored, their mail never; they are found by domain, day and kind."""
    content = Feedback(
        FeedbackType.ABUSE,
        source="192.0.2.1",
        results=("dkim=fail",),
        arrived_at=NOON,
        mail=ReportedMail(recipients=("a@b.example",), subject="\u0445 '\""),
    )
    found = {}
    for number, state in enumerate((ReportState.COUNTED, ReportState.APART, ReportState.REFUSED)):
        to = report_recipient("ann", ReportKind.COMPLAINT)
        sent = delivery(to, received_at=at(number))
        await stores.deliveries.deliver(sent)
        waiting = await claimed(stores, now=at(number))
        assert waiting.kind is ReportKind.COMPLAINT
        is_read = state is not ReportState.REFUSED
        report = counted(
            waiting,
            state.value,
            state=state,
            feedback=content if is_read else None,
            domain="example.org" if is_read else "",
        )
        await stores.reports.finish(waiting.id, MINE.holder, [report])
        found[state] = report
        assert await stores.contents.raw_message(sent.id) is None
    apart, first = found[ReportState.APART], found[ReportState.COUNTED]
    page = await stores.reports.feedback(ANN, "example.org", NOON, 10, 0)
    assert (page.entries, page.total, page.unauthenticated) == ((apart, first), 2, 1)
    page = await stores.reports.feedback(ANN, "example.org", at(1), 1, 0)
    assert (page.entries, page.total) == ((apart,), 1)
    assert (await stores.reports.feedback(ANN, "example.net", NOON, 10, 0)).total == 0
    assert (await stores.reports.feedback(BOB, "example.org", NOON, 10, 0)).total == 0
    assert (await stores.reports.of_account(ANN, 10, 0, ReportKind.COMPLAINT)).total == 3
    assert (await stores.reports.of_account(ANN, 10, 0, ReportKind.FAILURE)).total == 0


async def test_the_maximum_of_waiting_reports(stores: Stores) -> None:
    """A further report is temporarily rejected, by mail and by POST; other accounts have room."""
    for number in range(MAX_WAITING):
        await stores.reports.post(posted(f"p{number}"), b"{}")
    with pytest.raises(InboxFull):
        await stores.reports.post(posted("more"), b"{}")
    with pytest.raises(InboxFull):
        await stores.deliveries.deliver(delivery(report_recipient("ann"), recipient("bob")))
    await stores.deliveries.deliver(delivery(report_recipient("bob")))


async def test_rows_are_summed(stores: Stores) -> None:
    """Equal rows of a reporter are added over the days; counting them again changes nothing."""
    yesterday = Instant(TODAY - DAY)
    rows = [counts(1), counts(1, yesterday, 5), counts(2, amount=3)]
    other = counts(9, account_id=BOB)
    for _ in range(2):
        await stores.reports.count([*rows, other])
    sums = await stores.reports.sums(ANN, ReportKind.DMARC, "example.org", yesterday, 10)
    assert [(one.result, one.amount, one.first_day, one.last_day) for one in sums] == [
        ("1", 7, yesterday, TODAY),
        ("2", 3, TODAY, TODAY),
    ]
    (largest,) = await stores.reports.sums(ANN, ReportKind.DMARC, "example.org", TODAY, 1)
    assert (largest.result, largest.amount) == ("2", 3)
    assert await stores.reports.sums(ANN, ReportKind.TLS, "example.org", yesterday, 10) == []
    assert await stores.reports.count_rows(ANN, ReportKind.DMARC, "example.org", TODAY) == 2


async def test_rows_are_summed_by_days(stores: Stores) -> None:
    """Equal rows of all reporters are added in spans of days that begin with the first day.

    The sums of the whole period come with them.
    """
    begins = Instant(TODAY - 3 * DAY)
    rows = [counts(1, Instant(TODAY - ago * DAY), 10**ago) for ago in range(4)]
    await stores.reports.count([*rows, counts(2, begins, 5), counts(9, begins, account_id=BOB)])
    for width, expected in (
        (DAY, [("1", 3, 1_000), ("1", 2, 100), ("1", 1, 10), ("2", 3, 5), ("1", 0, 1)]),
        (2 * DAY, [("1", 3, 1_100), ("1", 1, 11), ("2", 3, 5)]),
    ):
        rows_of_all, sums = await stores.reports.sums_in_spans(
            ANN, "example.org", begins, width, (10, 10)
        )
        found = [(span.result, (TODAY - span.first_day) // DAY, span.amount) for span in sums]
        assert found == expected
        assert rows_of_all == await stores.reports.sums(
            ANN, ReportKind.DMARC, "example.org", begins, 10
        )
    (first,), (largest,) = await stores.reports.sums_in_spans(
        ANN, "example.org", begins, DAY, (1, 1)
    )
    assert (first.amount, largest.amount) == (1_111, 1_000)


@pytest.mark.attack
async def test_sums_of_what_is_stored_never_overflow(stores: Stores) -> None:
    """Lists and sums work on every engine, even for any values in reports of an earlier version."""
    huge = 2**62
    for number in range(3):
        await stores.reports.post(posted(f"p{number}"), b"{}")
        waiting = await claimed(stores)
        report = counted(waiting, f"r{number}", report_id=str(number), messages=huge, failing=huge)
        await stores.reports.finish(waiting.id, "this daemon", [report])
    await stores.reports.count(
        [counts(1, Instant(TODAY - n * DAY), huge, digest=f"{n}") for n in range(3)]
    )
    (domain,) = await stores.reports.domains(ANN)
    assert (domain.reports, domain.messages, domain.failing) == (3, 3 * MAX_SUM, 3 * MAX_SUM)
    since = Instant(NOON - 10 * DAY)
    (row,) = await stores.reports.sums(ANN, ReportKind.DMARC, "example.org", since, 10)
    assert row.amount == 3 * MAX_SUM


async def stored(
    stores: Stores, name: str, reporter: str, day: Instant, account_id: AccountId = ANN
) -> None:
    """Store a counted report with a separate row, and one that two domains share."""
    await stores.reports.post(posted(name, account_id), b"{}")
    waiting = await claimed(stores)
    facts = {"report_id": name, "reporter": reporter, "begins_at": Instant(day + 1)}
    report = counted(waiting, f"{name}!", **facts)
    rows = [
        replace(
            counts(0, day, account_id=account_id, kind=ReportKind.TLS, reporter=reporter),
            domain=domain,
            digest=row_digest(report, result),
            result=result,
        )
        for domain, result in (("a.example", "1"), ("a.example", name), ("b.example", "1"))
    ]
    await stores.reports.count(rows)
    await stores.reports.finish(waiting.id, MINE.holder, [report])


async def left(stores: Stores, account_id: AccountId = ANN) -> tuple[set[str], int]:
    """Return the remaining reports of an account, and the sum of their rows."""
    page = await stores.reports.of_account(account_id, 100, 0)
    sums = [
        one.amount
        for domain in ("a.example", "b.example")
        for one in await stores.reports.sums(account_id, ReportKind.TLS, domain, Instant(0), 100)
    ]
    return {one.id.rstrip("!") for one in page.entries}, sum(sums)


@pytest.mark.parametrize(
    ("selection", "remaining"),
    [
        (ReportSelection(report_id=ReportId("g1!")), {"g2", "g3", "y1"}),
        (ReportSelection(report_id=ReportId("none")), {"g1", "g2", "g3", "y1"}),
        (ReportSelection(reporter="google.com"), {"y1"}),
        (ReportSelection(reporter="google"), {"g1", "g2", "g3", "y1"}),
        (ReportSelection(day=TODAY), {"g3"}),
        (ReportSelection(reporter="google.com", day=TODAY), {"g3", "y1"}),
    ],
)
async def test_reports_are_deleted_with_all_they_count(
    stores: Stores, selection: ReportSelection, remaining: set[str]
) -> None:
    """One report, or those of a reporter or of a day, are deleted in batches, and no others."""
    await stored(stores, "bob", "google.com", TODAY, BOB)
    for name in ("g1", "g2"):
        await stored(stores, name, "google.com", TODAY)
    await stored(stores, "g3", "google.com", Instant(TODAY - DAY))
    await stored(stores, "y1", "yahoo.com", TODAY)
    while True:
        removed = await stores.reports.remove(ANN, selection, NOON, 2)
        assert removed.reports + removed.rows <= 2
        if removed.reports + removed.rows < 2:
            break
    assert await left(stores) == (remaining, 6 * len(remaining))
    assert await left(stores, BOB) == ({"bob"}, 6)


async def test_a_report_being_read_is_not_deleted(stores: Stores) -> None:
    """It would leave its rows behind; after the end of its lease it is deleted with its mail."""
    sent = delivery(report_recipient("ann"))
    await stores.deliveries.deliver(sent)
    waiting = await claimed(stores)
    of_today = ReportSelection(day=day_of(waiting.received_at))
    for selection in (of_today, ReportSelection(report_id=waiting.id)):
        assert await stores.reports.remove(ANN, selection, NOON, 10) == Removed(0, 0)
    assert await stores.reports.has_report(ANN, waiting.id)
    assert not await stores.reports.has_report(BOB, waiting.id)
    assert await stores.reports.remove(ANN, of_today, MINE.until, 10) == Removed(1, 0)
    assert not await stores.reports.has_report(ANN, waiting.id)
    assert await stores.contents.raw_message(sent.id) is None


async def test_pages_of_tls_sessions(stores: Stores) -> None:
    """Failures come first, then most sessions; each page has the sums of all pages."""
    quoted = '%"result":"","host":%'
    ended = [
        (TlsSessions("sts", "", "", ""), "google.com", 100),
        (TlsSessions("sts", "", "", ""), "yahoo.com", 50),
        (TlsSessions(quoted, quoted, quoted, quoted), "evil.example", 7),
        (TlsSessions("tlsa", "certificate-expired", "mx", ""), "google.com", 2),
        (TlsSessions("tlsa", "certificate-expired", "mx", ""), "yahoo.com", 3),
    ]
    rows = [
        counts(
            place,
            amount=amount,
            kind=ReportKind.TLS,
            reporter=reporter,
            result=json.dumps(to_builtins(sessions), separators=(",", ":")),
        )
        for place, (sessions, reporter, amount) in enumerate(ended)
    ]
    await stores.reports.count([*rows, replace(rows[0], account_id=BOB)])
    pages = [
        await stores.reports.tls_page(ANN, "example.org", TODAY, 2, offset) for offset in (0, 2, 4)
    ]
    shown = [(one.amount, one.last_day, one.reporters) for page in pages for one in page.rows]
    assert shown == [
        (7, TODAY, ("evil.example",)),
        (5, TODAY, ("yahoo.com", "google.com")),
        (150, TODAY, ("google.com", "yahoo.com")),
    ]
    for page in pages:
        assert (page.successful, page.failed, page.total) == (150, 12, 3)
        assert [(one.reporter, one.successful, one.failed) for one in page.sources] == [
            ("google.com", 100, 2),
            ("yahoo.com", 50, 3),
            ("evil.example", 0, 7),
        ]
    empty = await stores.reports.tls_page(BOB, "other.example", TODAY, 2, 0)
    assert (empty.successful, empty.failed, empty.total, empty.rows) == (0, 0, 0, ())


async def test_counted_reports_are_summed_by_reporter(stores: Stores) -> None:
    """Each reporter has its numbers of reports and messages by kind, most messages first."""
    for number, reporter in enumerate(("google.com", "yahoo.com", "google.com")):
        await stores.reports.post(posted(f"p{number}"), b"{}")
        waiting = await claimed(stores)
        report = counted(waiting, f"r{number}", report_id=f"{number}", reporter=reporter)
        await stores.reports.finish(waiting.id, MINE.holder, [report])
    facts = [(one.reporter, one.reports, one.messages) for one in await stores.reports.sources(ANN)]
    assert facts == [("google.com", 2, 20), ("yahoo.com", 1, 10)]
    assert len(await stores.reports.sources(ANN, 1)) == len(await stores.reports.domains(ANN, 1))
    assert await stores.reports.policy(ANN, "example.org") == ""


async def test_imported_reports_are_counted_once(stores: Stores) -> None:
    """A known report changes nothing, also within one import, and its rows have their own limit."""
    waiting = await _waiting(stores)
    imported = [
        ImportedReport(
            counted(
                waiting,
                f"import{number}",
                report_id=report_id,
                reporter=f"{number}.example",
                way=ReportWay.UPLOADED,
                row_count=1,
            ),
            msgspec.msgpack.encode([("example.org", TODAY, report_id, "{}", 3)]),
        )
        for number, report_id in enumerate(("a", "b", "a"))
    ]
    assert await stores.reports.add_imported(ANN, imported) == [True, True, False]
    assert await stores.reports.add_imported(ANN, imported) == [False, False, False]
    assert await stores.reports.count_imported_rows(ANN) == 2
    assert await stores.reports.count_imported_rows(BOB) == 0
    assert await stores.reports.count_all_rows(ANN, 10) == 0
    assert await stores.reports.count_rows(ANN, ReportKind.DMARC, "example.org", TODAY) == 2
    # The same report is received later from the reporter itself.
    received = counted(waiting, report_id="b", reporter="google.com")
    await stores.reports.finish(waiting.id, MINE.holder, [received])
    page = await stores.reports.of_account(ANN, 10, 0)
    ways = sorted((one.way.value, one.state.value) for one in page.entries)
    assert ways == [("received", "repeated"), ("uploaded", "counted"), ("uploaded", "counted")]


def test_totals_are_read_from_an_index_alone() -> None:
    """The totals of 300,000 complaints need neither their rows nor a sort."""
    engine = SqliteEngine(IN_MEMORY, DirectWorker(), DirectWorker())
    engine.open()
    (step,) = result_of(
        engine.read(lambda transaction: transaction.rows(f"EXPLAIN QUERY PLAN {TOTALS}", (ANN,)))
    )
    result_of(engine.close())
    assert "USING COVERING INDEX receiver_report_totals" in step.detail


async def test_old_letters_are_deleted(stores: Stores) -> None:
    """The text of a mail that is no report is deleted after a week; the report stays."""
    await stores.deliveries.deliver(delivery(report_recipient("ann")))
    waiting = await claimed(stores)
    letter = Letter("a@b.example", "Confirm", "Your code is 482913", ("https://b.example/c",))
    refused = counted(waiting, state=ReportState.REFUSED, letter=letter)
    await stores.reports.finish(waiting.id, MINE.holder, [refused])
    assert (await stores.reports.of_account(ANN, 10, 0)).entries == (refused,)
    assert await stores.reports.forget(Instant(NOON + RAW_KEPT - 1), 10) == 0
    assert await stores.reports.forget(Instant(NOON + RAW_KEPT), 10) == 1
    assert (await stores.reports.of_account(ANN, 10, 0)).entries == (replace(refused, letter=None),)


async def test_rows_of_old_days_become_sums(stores: Stores) -> None:
    """After 400 days the rows of a day are one row with its sums, also if they are many."""
    failing = '{"dkim":"fail","spf":"fail"}'
    passing = failing.replace("fail", "pass", 1)
    rows = [
        replace(counts(number), digest=f"d{number}", result=result, amount=number)
        for number, result in enumerate((passing, failing, failing), 1)
    ]
    await stores.reports.count(rows)
    late = Instant(TODAY + REPORTS_KEPT)
    while await stores.reports.forget(late, 2):
        pass
    assert await stores.reports.sums(ANN, ReportKind.DMARC, "example.org", Instant(0), 10) == []
    assert await stores.reports.earlier_days(ANN, "example.org") == [SumOfDay(TODAY, 6, 5)]
    assert await stores.reports.earlier_days(BOB, "example.org") == []
    while await stores.reports.forget(Instant(TODAY + SUMS_KEPT), 2):
        pass
    assert await stores.reports.earlier_days(ANN, "example.org") == []


async def test_old_reports_are_deleted(stores: Stores) -> None:
    """Mails are deleted after a week, reports and rows after 400 days; waiting mail is kept."""
    one, other = delivery(report_recipient("ann")), delivery(report_recipient("bob"))
    await stores.deliveries.deliver(one)
    waiting = await claimed(stores)
    apart = counted(waiting, state=ReportState.APART)
    await stores.reports.finish(waiting.id, MINE.holder, [apart])
    await stores.reports.count([counts(1)])
    await stores.deliveries.deliver(other)
    assert await stores.reports.forget(Instant(NOON + RAW_KEPT - 1), 10) == 0
    assert await stores.contents.raw_message(one.id) is not None
    assert await stores.reports.forget(Instant(NOON + RAW_KEPT), 10) == 1
    assert await stores.contents.raw_message(one.id) is None
    assert await stores.contents.raw_message(other.id) is not None
    assert (await stores.reports.of_account(ANN, 10, 0)).total == 1
    assert await stores.reports.forget(Instant(NOON + REPORTS_KEPT), 10) == 2
    assert (await stores.reports.of_account(ANN, 10, 0)).total == 0
    assert await stores.contents.raw_message(other.id) is None
    assert await stores.reports.sums(ANN, ReportKind.DMARC, "example.org", Instant(0), 10) == []
