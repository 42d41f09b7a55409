"""Results of deliverability tests for agents: score, deductions and advice.

mailcheck writes the sentences. The addresses, subjects, names and records in them come from the
sender of the mail or the owner of a domain, and are untrusted.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from mailcheck.api.deliverability.tests import address_of, explain_wait, render_tested
from mailcheck.api.domains.findings import LeftOutTerm
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Fence, Untrusted, clean, defuse
from mailcheck.api.requests.fields import (
    DEFAULT_WAIT,
    LONGEST_TASK,
    NAME,
    Timeout,
)
from mailcheck.api.requests.parsing import Description, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Texts, Timestamp, doc
from mailcheck.api.urls import PublicUrls
from mailcheck.core.deliverability_tests import DeliverabilityResult, DeliverabilityTest, State
from mailcheck.core.instants import format_instant

MAX_DEDUCTIONS = 40
"""Maximum number of deductions in a result, the largest first. A mail with more has score 0."""


class WaitForTestArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``wait_for_test``."""

    test_id: Annotated[str, NAME, Description(brief="from generate_test")]
    timeout: Annotated[Timeout, Description(brief="seconds to wait; a call answers within 55")] = (
        DEFAULT_WAIT
    )


class LongTestWaitArguments(WaitForTestArguments, frozen=True, kw_only=True):
    """Arguments of ``wait_for_test`` for clients of tasks."""

    timeout: Annotated[Timeout, Description(brief="seconds to wait", high=LONGEST_TASK)] = (
        DEFAULT_WAIT
    )


class GenerateResult(Shape):
    """A new deliverability test."""

    test_id: Annotated[str, doc("pass it to wait_for_test")]
    address: Annotated[str, doc("send one real mail to it from the server under test")]
    email: Annotated[str, doc("the same as address")]
    expires_at: Timestamp


class ShownEmail(Shape):
    """The tested mail."""

    from_: str
    subject: str
    bounce_address: str | None


class ShownCheck(Shape):
    """A check of the mail."""

    name: Annotated[str, doc("spf, dkim, dmarc, blacklist or spamassassin")]
    status: Annotated[str, doc("pass, warn or fail")]
    result: Annotated[str, doc("temperror and unknown: undetermined, which does not mean no")]
    detail: str
    deduction: Annotated[float, doc("points deducted")]


class ShownRecord(Shape):
    """A DNS record to publish."""

    name: str
    type: str
    value: str


class ShownDeduction(Shape):
    """A finding that deducts points."""

    check: str
    id: Annotated[str, doc("stable identifier, like dkim.unsigned")]
    points: Annotated[float, doc("points deducted")]
    meaning: str
    fix: Annotated[str, doc("what to do")]
    aliases: Texts | Absent = ABSENT
    record: ShownRecord | Absent = ABSENT
    replaces: Texts | Absent = ABSENT
    beside: tuple[ShownRecord, ...] | Absent = ABSENT
    leaves_out: tuple[LeftOutTerm, ...] | Absent = ABSENT
    gain: Annotated[float, doc("points that publishing the record adds")] | Absent = ABSENT
    score_after: Annotated[float, doc("score after publishing the record")] | Absent = ABSENT


class ReportResult(Shape):
    """The result of a wait for a report, with the parts of the report that an agent acts on."""

    untrusted: Untrusted
    timed_out: Annotated[bool, doc("true: not finished; call again with the same testId")]
    test_id: str
    status: Annotated[str, doc("pending, processing, completed, expired or error")]
    hint: Annotated[str | None, doc("what to do next; null if the test is completed")]
    score: Annotated[float | None, doc("0 to 10; null unless completed")]
    email: ShownEmail | None
    notes: Annotated[Texts, doc("limitations of the report")]
    checks: tuple[ShownCheck, ...]
    deductions: Annotated[
        tuple[ShownDeduction, ...], doc("findings that deduct points, largest first")
    ]
    replies: Annotated[Texts, doc("what receivers would reply")]
    undetermined: Annotated[Texts, doc("checks that could not be determined; they deduct nothing")]
    share_url: Annotated[str, doc("complete report; public, requires no key")]
    waited: Annotated[float, doc("seconds")]


def render_generated(test: DeliverabilityTest, domain: str) -> GenerateResult:
    """Render a new test."""
    address = address_of(test, domain)
    return GenerateResult(test.id, address, address, format_instant(test.expires_at))


def render_test_wait(
    result: DeliverabilityResult, waited: float, domain: str, urls: PublicUrls
) -> ReportResult:
    """Render the end of a wait from the stored JSON of the report, or from the test's status."""
    test = result.test
    shape: Mapping[str, Any] = render_tested(result, domain, urls)
    email = shape.get("email")
    return ReportResult(
        untrusted=PUBLISHED_NOTICE,
        timed_out=not test.state.is_final,
        test_id=test.id,
        status=test.state.value,
        hint=_hint(result, domain),
        score=shape.get("score"),
        email=None if email is None else clean(msgspec.convert(email, ShownEmail)),
        notes=defuse(tuple(shape.get("notes", ()))),
        checks=_checks(shape.get("checks", {})),
        deductions=_deductions(shape.get("deductions", ())),
        replies=defuse(tuple(map(_reply, shape.get("report", {}).get("replies", ())))),
        undetermined=defuse(tuple(shape.get("undetermined", ()))),
        share_url=shape["shareUrl"],
        waited=waited,
    )


def describe_test_wait(result: ReportResult, fence: Fence) -> list[str]:
    """Describe the result as text. All sentences that quote others are in a fenced block."""
    ours = f"Deliverability test {result.test_id} is {result.status}."
    if result.hint is not None:
        ours += f" {result.hint}."
    if result.score is None or result.email is None:
        return [ours]
    ours += f" Score: {result.score} of 10. Complete report: {result.share_url}"
    lines = [f"From: {result.email.from_}", f"Subject: {result.email.subject}"]
    lines += [f"Note: {note}" for note in result.notes]
    for check in result.checks:
        lines.append(f"{check.name}: {check.result} (-{check.deduction}). {check.detail}")
    for deduction in result.deductions:
        lines.append(
            f"-{deduction.points} {deduction.id}: {deduction.meaning} Fix: {deduction.fix}"
        )
        if isinstance(deduction.record, ShownRecord):
            publish = deduction.record
            lines.append(f"  publish {publish.name} {publish.type} {publish.value}")
            if not isinstance(deduction.replaces, Absent):
                lines += [f"    replace {value}" for value in deduction.replaces]
            if not isinstance(deduction.leaves_out, Absent):
                lines += [f"    omit {left.term}: {left.reason}" for left in deduction.leaves_out]
    lines += result.replies
    fenced = fence.around("\n".join(lines))
    return [f"{ours}\n{fence.notice}\n{fenced}"]


def _hint(result: DeliverabilityResult, domain: str) -> str | None:
    state = result.test.state
    if state is State.COMPLETED:
        return None
    if state is State.EXPIRED:
        return "no mail arrived before the address expired: call generate_test for a new one"
    if state is State.ERROR:
        return f"the analysis failed ({result.failure}); request a recheck over the REST API"
    return explain_wait(result.test, domain)


def _checks(checks: Mapping[str, Mapping[str, Any]]) -> tuple[ShownCheck, ...]:
    return tuple(
        defuse(msgspec.convert({"name": name, **check}, ShownCheck))
        for name, check in checks.items()
    )


def _reply(one: Mapping[str, Any]) -> str:
    """Describe the reply of a receiver: its action, its reply and the reason."""
    reply = one["reply"]
    shown = [] if reply is None else [reply["code"], reply["enhanced"], reply["text"]]
    words = " ".join(str(part) for part in shown if part)
    return f"{one['receiver']}: {one['action']} {words} ({one['explanation']})"


def _deductions(deductions: Sequence[Mapping[str, Any]]) -> tuple[ShownDeduction, ...]:
    rows = msgspec.convert(deductions, tuple[ShownDeduction, ...])
    largest = sorted(rows, key=lambda one: one.points, reverse=True)
    return defuse(tuple(largest[:MAX_DEDUCTIONS]))
