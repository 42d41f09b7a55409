"""JSON shapes of deliverability tests."""

import json
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from mailcheck.api.deliverability.findings import points
from mailcheck.api.deliverability.report import (
    MailReport,
    PreflightReport,
    Score,
    ScoredMail,
    render_email,
    render_report,
)
from mailcheck.api.inbox.overview import NextPage, encode_raw
from mailcheck.api.shapes import (
    ABSENT,
    Absent,
    Always,
    Count,
    JsonObject,
    Shape,
    Timestamp,
    as_json,
    combine_shapes,
    doc,
)
from mailcheck.api.urls import PublicUrls
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.core import deliverability_tests as tests
from mailcheck.core.deliverability_tests import DeliverabilityResult, State, local_part_of
from mailcheck.core.instants import format_instant
from mailcheck.store.deliverability_store import ListedTestPage

TestIdField = Annotated[str, doc("id of the test", pattern="^[a-z2-7]{13}$")]

CheckUrl = Annotated[str, doc("path of the test, relative to the base URL of the API")]


class GeneratedTest(Shape):
    """A new deliverability test."""

    test_id: TestIdField
    email: Annotated[str, doc("test address: send one mail to it from the server under test")]
    address: Annotated[str, doc("the same as email")]
    expires_at: Annotated[Timestamp, doc("one hour after creation")]
    check_url: CheckUrl


class StateOfTest(Shape):
    """The status of a test."""

    test_id: TestIdField
    status: Annotated[State, doc("completed, expired and error are final")]
    created_at: Timestamp
    expires_at: Annotated[Timestamp, doc("when the address stops accepting mail")]
    check_url: CheckUrl
    share_url: Annotated[str, doc("public page with the report")]
    received_at: Annotated[Timestamp | Absent, doc("when the mail arrived; absent before")] = ABSENT
    address: Annotated[str | Absent, doc("test address, while the test is pending")] = ABSENT
    failure: Annotated[str | Absent, doc("why there is no result; only with error")] = ABSENT


WHOLE_TEST = combine_shapes(
    "Test",
    "Status of a test. The fields of the report are absent until the status is completed.",
    StateOfTest,
    optional=MailReport,
)
"""Status of a test with its report. The report is sent as the JSON that was stored."""


class ListedTest(StateOfTest):
    """An entry of a list of tests."""

    score: Score | Absent = ABSENT
    email: ScoredMail | Absent = ABSENT


class PageOfTests(Shape):
    """A page of tests."""

    component_name: ClassVar[str] = "Tests"
    tests: Annotated[tuple[ListedTest, ...], doc("newest first")]
    next_page: NextPage
    total: Count


class WaitOver(StateOfTest, kw_only=True):
    """The test did not finish before the timeout. Wait again."""

    component_name: ClassVar[str] = "TestWaitOver"
    error: Annotated[str, doc("status of the test in one sentence")]


class Recheck(Shape):
    """Response to a recheck."""

    success: bool
    test_id: TestIdField
    message: str


class DeletedTest(Shape):
    """Confirmation that a test was deleted."""

    success: Always
    test_id: TestIdField


class ReportShare(Shape):
    """Share link of a report."""

    component_name: ClassVar[str] = "TestShare"
    test_id: TestIdField
    share_url: Annotated[str, doc("public; requires no API key")]


class RawTestMail(Shape):
    """The raw mail: as text if it is valid UTF-8, otherwise in Base64."""

    id: TestIdField
    raw: Annotated[str, doc("the mail")]
    encoding: Literal["utf-8", "base64"]


class Preflight(PreflightReport):
    """The report that the same mail would get."""

    test_id: TestIdField


def render_new_address(test: tests.DeliverabilityTest, domain: str) -> GeneratedTest:
    """Render a new test with its address."""
    address = address_of(test, domain)
    return GeneratedTest(test.id, address, address, format_instant(test.expires_at), _path(test))


def render_tested(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> JsonObject:
    """Render a test. The fields of the report are absent until the test is completed."""
    shape: dict[str, Any] = as_json(StateOfTest(**_state(result.test, domain, urls)))
    if result.failure:
        shape["failure"] = result.failure
    if result.report is not None:
        shape |= {"score": points(result.report.tenths), **json.loads(result.report.document)}
    return shape


def render_test_page(
    found: ListedTestPage, page: int, limit: int, domain: str, urls: PublicUrls
) -> PageOfTests:
    """Render a page of tests."""
    has_more = bool(found.entries) and (page - 1) * limit + len(found.entries) < found.total
    entries = tuple(_listed(entry, domain, urls) for entry in found.entries)
    return PageOfTests(entries, page + 1 if has_more else None, found.total)


def render_wait_over(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> WaitOver:
    """Render a test that did not finish before the timeout."""
    test = result.test
    return WaitOver(**_state(test, domain, urls), error=explain_wait(test, domain))


def explain_wait(test: tests.DeliverabilityTest, domain: str) -> str:
    """Return one sentence about what a test is waiting for."""
    if test.state is State.PENDING:
        return (
            f"no mail has arrived at {address_of(test, domain)} yet: send one, and wait again "
            f"until {format_instant(test.expires_at)}"
        )
    return "the mail has arrived and is being analysed: wait again"


def render_recheck(test_id: str, *, is_started: bool) -> Recheck:
    """Render the response to a recheck."""
    started = "all checks are running again: wait for the test to complete"
    running = "the checks are already running: no second run was started"
    return Recheck(success=True, test_id=test_id, message=started if is_started else running)


def render_report_share(test: tests.DeliverabilityTest, urls: PublicUrls) -> ReportShare:
    """Render the share link of a test."""
    return ReportShare(test.id, urls.report_url(test.id, test.share_token))


def render_raw_mail(test_id: str, raw_message: bytes) -> RawTestMail:
    """Render the raw mail of a test."""
    return RawTestMail(test_id, *encode_raw(raw_message))


def render_preflight(test_id: str, report: DeliverabilityReport) -> Preflight:
    """Render the report that a mail would get if some records were published."""
    return Preflight(**msgspec.structs.asdict(render_report(report)), test_id=test_id)


def address_of(test: tests.DeliverabilityTest, domain: str) -> str:
    """Return the address of a test."""
    return f"{local_part_of(test.id)}@{domain}"


def _path(test: tests.DeliverabilityTest) -> str:
    return f"/test/{test.id}"


def _listed(one: tests.ListedTest, domain: str, urls: PublicUrls) -> ListedTest:
    header, is_completed = one.header, one.test.state is State.COMPLETED
    return ListedTest(
        **_state(one.test, domain, urls),
        score=points(one.tenths) if one.tenths is not None and is_completed else ABSENT,
        email=ABSENT
        if header is None
        else render_email(header.author_address, header.subject, one.envelope_sender),
    )


def _state(test: tests.DeliverabilityTest, domain: str, urls: PublicUrls) -> dict[str, Any]:
    return {
        "test_id": test.id,
        "status": test.state,
        "created_at": format_instant(test.created_at),
        "expires_at": format_instant(test.expires_at),
        "check_url": _path(test),
        "share_url": urls.report_url(test.id, test.share_token),
        "address": address_of(test, domain) if test.state is State.PENDING else ABSENT,
        "received_at": ABSENT if test.received_at is None else format_instant(test.received_at),
    }
