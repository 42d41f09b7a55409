"""The contract of `ReportStore` for quotas and rejected reports."""

import pytest
from msgspec.structs import replace

from mailcheck.core.domains.receiver_reports import REPORTS_KEPT, ReportState
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.store.domains.report_quotas import (
    MOST_SENDERS,
    OF_ACCOUNT,
    OF_SENDER,
    OF_STRANGERS,
    Admission,
    Claim,
    Outcome,
    Tally,
)
from tests.contracts.conftest import Stores
from tests.contracts.test_report_store_contract import (
    ANN,
    BOB,
    MINE,
    TODAY,
    claimed,
    counted,
    counts,
    posted,
)

pytestmark = pytest.mark.attack


def claim(sender: str, rows: int, octets: int = 1_000, account_id: AccountId = ANN) -> Claim:
    """Return what a report would add; its entry in the list takes 200 of the octets."""
    report = replace(posted(f"{sender} {rows}", account_id), domain="example.org")
    report = replace(report, state=ReportState.COUNTED)
    return Claim(report, TODAY, sender, rows, octets, 200)


@pytest.mark.parametrize("sender", ["", "google.com"])
@pytest.mark.parametrize("is_of_octets", [False, True])
async def test_the_daily_quota_of_a_sender(stores: Stores, sender: str, is_of_octets: bool) -> None:
    """The last report that fits is stored, the next one is only listed, later ones are counted."""
    quota = OF_SENDER if sender else OF_STRANGERS
    half, step = claim(sender, quota.rows // 2 - 1), 1
    if is_of_octets:
        half, step = claim(sender, 1, quota.octets // 2), 0
    admit = stores.reports.admit
    assert [await admit(half) for _ in range(2)] == [Admission.WHOLE] * 2
    assert await admit(replace(half, sender="other.example")) is Admission.WHOLE
    assert await admit(claim(sender, step)) is Admission.NOTHING
    assert await admit(replace(half, day=Instant(TODAY + DAY))) is Admission.WHOLE
    assert await admit(claim(sender, 1, account_id=BOB)) is Admission.WHOLE
    (refused,) = await stores.reports.refused(ANN, 10)
    assert refused == Tally(TODAY, sender, Outcome.OVER_QUOTA, 1, step + 1, 1_000, "example.org")
    assert await stores.reports.refused(BOB, 10) == []


async def test_a_report_without_room_for_its_rows_is_listed(stores: Stores) -> None:
    """Its entry is stored, and its rows are counted as rejected."""
    assert await stores.reports.admit(claim("", OF_STRANGERS.rows)) is Admission.LISTED
    assert await stores.reports.admit(claim("", OF_STRANGERS.rows - 2)) is Admission.WHOLE
    (refused,) = await stores.reports.refused(ANN, 10)
    assert (refused.reports, refused.rows, refused.octets) == (1, OF_STRANGERS.rows, 800)


async def test_many_senders_share_the_quota_of_the_account(stores: Stores) -> None:
    """A sender for each report does not help, and few rows are stored for rejected reports."""
    whole = OF_ACCOUNT.rows // 2 - 1
    for number in range(2):
        rows = replace(claim(f"s{number}", 0), rows=whole)
        # One sender alone has a smaller quota.
        expected = Admission.WHOLE if whole < OF_SENDER.rows else Admission.LISTED
        assert await stores.reports.admit(rows) is expected
    for number in range(MOST_SENDERS + 20):
        assert await stores.reports.admit(claim(f"t{number}", 1)) is Admission.NOTHING
    refused = await stores.reports.refused(ANN, 1_000)
    assert len(refused) == MOST_SENDERS + 1
    assert (refused[0].sender, refused[0].reports) == ("", 20)


async def test_a_report_that_was_counted_is_repeated(stores: Stores) -> None:
    """A repeated report uses only the room of its list entry, with any number of rows."""
    await stores.reports.post(posted(), b"{}")
    report = counted(await claimed(stores))
    await stores.reports.finish(posted().id, MINE.holder, [report])
    again = replace(claim("", OF_STRANGERS.rows - 1), report=report)
    assert await stores.reports.admit(again) is Admission.REPEATED
    assert await stores.reports.admit(claim("", OF_STRANGERS.rows - 2)) is Admission.WHOLE


async def test_foreign_reports_share_a_row_per_day(stores: Stores) -> None:
    """They are added up; the row is deleted like reports."""
    for number in range(3):
        tally = Tally(TODAY, "", Outcome.FOREIGN, 1, 0, 0, f"d{number}.example")
        await stores.reports.tally(ANN, tally)
    expected = Tally(TODAY, "", Outcome.FOREIGN, 3, 0, 0, "d2.example")
    assert await stores.reports.refused(ANN, 10) == [expected]
    assert await stores.reports.forget(Instant(TODAY + REPORTS_KEPT - 1), 10) == 0
    assert await stores.reports.forget(Instant(TODAY + REPORTS_KEPT), 10) == 1
    assert await stores.reports.refused(ANN, 10) == []


async def test_domains_with_counted_reports(stores: Stores) -> None:
    """Domains of both kinds of report are known, with any number of rows, per account."""
    names = [f"d{number}.example" for number in range(7)]
    await stores.reports.count([counts(n, domain=name) for n in (1, 2) for name in names])
    known = await stores.reports.domains_of(ANN)
    assert all(known.take(name) for name in names)
    assert not known.take("other.example")
    assert (await stores.reports.domains_of(BOB)).take("other.example")
    assert await stores.reports.count_all_rows(ANN, 100) == 14
    assert await stores.reports.count_all_rows(ANN, 10) == 10
