"""JSON shapes of deliverability tests (SPEC.md 2.4 to 2.6, DECISIONS.md section 3)."""

import json

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.core.deliverability_tests import (
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    State,
    local_part_of,
)
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.operations.deliverability.ports import ListedTestPage
from mailcheck.wire.deliverability.findings import points
from mailcheck.wire.deliverability.report import render_report
from mailcheck.wire.json_values import JsonObject, JsonValue
from mailcheck.wire.urls import PublicUrls


def render_new_address(test: DeliverabilityTest, domain: str) -> JsonObject:
    """Give the address of a test that was just made (SPEC.md 2.4)."""
    return {
        "testId": test.id,
        "email": address_of(test, domain),
        "expiresAt": format_instant(test.expires_at),
        "checkUrl": _path_of(test),
    }


def render_tested(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> JsonObject:
    """Give a test with what is known of it; what is not known yet is absent (SPEC.md 2.5)."""
    shape = _render_test(result.test, domain, urls)
    if result.failure:
        shape["failure"] = result.failure
    if result.report is not None:
        shape |= {"score": points(result.report.tenths), **json.loads(result.report.document)}
    return shape


def render_test_page(
    found: ListedTestPage, page: int, limit: int, domain: str, urls: PublicUrls
) -> JsonObject:
    """Give a page of tests."""
    has_more = bool(found.entries) and (page - 1) * limit + len(found.entries) < found.total
    return {
        "tests": [_render_listed(one, domain, urls) for one in found.entries],
        "nextPage": page + 1 if has_more else None,
        "total": found.total,
    }


def render_wait_over(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> JsonObject:
    """Give a test that was waited for in vain, and say how it stands."""
    return {"error": explain_wait(result.test, domain), **render_tested(result, domain, urls)}


def explain_wait(test: DeliverabilityTest, domain: str) -> str:
    """Say what a test is waiting for."""
    if test.state is State.PENDING:
        return (
            f"no mail has come in for {address_of(test, domain)} yet: send one, and wait again "
            f"until {format_instant(test.expires_at)}"
        )
    return "the mail has come in and is being analysed: wait again"


def render_recheck(test_id: str, *, is_started: bool) -> JsonObject:
    """Give the answer to a recheck (SPEC.md 2.6)."""
    started = "all checks run again: wait for the test to be completed"
    running = "the checks are running already: nothing was started twice"
    return {"success": True, "testId": test_id, "message": started if is_started else running}


def render_report_share(test: DeliverabilityTest, urls: PublicUrls) -> JsonObject:
    """Give the share link of a test."""
    return {"testId": test.id, "shareUrl": urls.report_url(test.id, test.share_token)}


def render_preflight(test_id: str, report: DeliverabilityReport) -> JsonObject:
    """Give what a test's mail would get if some records were published."""
    return {"testId": test_id, **render_report(report)}


def address_of(test: DeliverabilityTest, domain: str) -> str:
    """Give the address of a test."""
    return f"{local_part_of(test.id)}@{domain}"


def _path_of(test: DeliverabilityTest) -> str:
    return f"/test/{test.id}"


def _render_listed(one: ListedTest, domain: str, urls: PublicUrls) -> JsonObject:
    shape = _render_test(one.test, domain, urls)
    if one.header is not None:
        sender = one.envelope_sender
        shape["email"] = {
            "from": one.header.author_address,
            "subject": one.header.subject,
            "bounceAddress": None if sender == NULL_REVERSE_PATH else sender,
        }
    if one.tenths is not None and one.test.state is State.COMPLETED:
        shape["score"] = points(one.tenths)
    return shape


def _render_test(test: DeliverabilityTest, domain: str, urls: PublicUrls) -> dict[str, JsonValue]:
    shape: dict[str, JsonValue] = {
        "testId": test.id,
        "status": test.state.value,
        "createdAt": format_instant(test.created_at),
        "expiresAt": format_instant(test.expires_at),
        "checkUrl": _path_of(test),
        "shareUrl": urls.report_url(test.id, test.share_token),
    }
    if test.state is State.PENDING:
        shape["address"] = address_of(test, domain)
    if test.received_at is not None:
        shape["receivedAt"] = format_instant(test.received_at)
    return shape
