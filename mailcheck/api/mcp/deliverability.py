"""Results of deliverability tests for agents: score, deductions and advice.

mailcheck writes the sentences. The addresses, subjects, names and records in them come from the
sender of the mail or the owner of a domain, and are untrusted.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from mailcheck.api.deliverability.tests import address_of, explain_wait, render_tested
from mailcheck.api.domains.findings import LeftOutTerm
from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, clean, defuse
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
    expires_at: Timestamp


class ShownEmail(Shape):
    """The tested mail."""

    from_: str
    subject: str


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


class ReportResult(Summarized):
    """The result of a wait for a report, with the checks that do not pass."""

    timed_out: Annotated[bool, doc("true: not finished; call again with the same testId")]
    test_id: str
    status: Annotated[str, doc("pending, processing, completed, expired or error")]
    share_url: Annotated[str, doc("complete report; public, requires no key")]
    score: Annotated[float | None, doc("0 to 10; null unless completed")]
    hint: Annotated[str | Absent, doc("what to do next; absent if completed")] = ABSENT
    email: ShownEmail | Absent = ABSENT
    notes: Annotated[Texts | Absent, doc("limitations of the report")] = ABSENT
    checks: Annotated[tuple[ShownCheck, ...] | Absent, doc("checks that do not pass")] = ABSENT
    deductions: Annotated[
        tuple[ShownDeduction, ...] | Absent, doc("findings that deduct points, largest first")
    ] = ABSENT
    replies: Annotated[
        Texts | Absent, doc("what receivers would reply; those with the same reply together")
    ] = ABSENT
    undetermined: Annotated[Texts | Absent, doc("they deduct nothing")] = ABSENT


def render_generated(test: DeliverabilityTest, domain: str) -> GenerateResult:
    """Render a new test."""
    return GenerateResult(test.id, address_of(test, domain), format_instant(test.expires_at))


def render_test_wait(result: DeliverabilityResult, domain: str, urls: PublicUrls) -> ReportResult:
    """Render the end of a wait from the stored JSON of the report, or from the test's status."""
    test = result.test
    shape: Mapping[str, Any] = render_tested(result, domain, urls)
    email, checks = shape.get("email"), _checks(shape.get("checks", {}))
    bad = tuple(check for check in checks if check.status != "pass")
    summary, score = f"test {test.id} is {test.state.value}", shape.get("score")
    if score is not None:
        summary += f": score {score} of 10, {len(checks) - len(bad)} of {len(checks)} checks pass"
    return ReportResult(
        PUBLISHED_NOTICE,
        summary,
        timed_out=not test.state.is_final,
        test_id=test.id,
        status=test.state.value,
        share_url=shape["shareUrl"],
        score=score,
        hint=_hint(result, domain) or ABSENT,
        email=ABSENT if email is None else clean(msgspec.convert(email, ShownEmail)),
        notes=defuse(tuple(shape.get("notes", ()))) or ABSENT,
        checks=bad or ABSENT,
        deductions=_deductions(shape.get("deductions", ())) or ABSENT,
        replies=defuse(_replies(shape.get("report", {}).get("replies", ()))) or ABSENT,
        undetermined=defuse(tuple(shape.get("undetermined", ()))) or ABSENT,
    )


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


def _replies(replies: Sequence[Mapping[str, Any]]) -> Texts:
    """Describe the replies of receivers, with the receivers of each: action, reply and reason."""
    receivers: dict[str, list[str]] = {}
    for one in replies:
        reply = one["reply"]
        shown = [] if reply is None else [reply["code"], reply["enhanced"], reply["text"]]
        words = " ".join(str(part) for part in (one["action"], *shown) if part)
        receivers.setdefault(f"{words} ({one['explanation']})", []).append(one["receiver"])
    return tuple(f"{', '.join(names)}: {words}" for words, names in receivers.items())


def _deductions(deductions: Sequence[Mapping[str, Any]]) -> tuple[ShownDeduction, ...]:
    rows = msgspec.convert(deductions, tuple[ShownDeduction, ...])
    largest = sorted(rows, key=lambda one: one.points, reverse=True)
    return defuse(tuple(largest[:MAX_DEDUCTIONS]))
