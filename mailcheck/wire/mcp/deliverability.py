"""Deliverability tests as an agent gets them: the score, what it is made of, what to do.

The sentences are ours; addresses, subject, names and records in them were
written by whoever sent the mail or owns a domain.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mailcheck.core.deliverability_tests import DeliverabilityResult, DeliverabilityTest, State
from mailcheck.core.instants import format_instant
from mailcheck.wire.deliverability.tests import address_of, explain_wait, render_tested
from mailcheck.wire.json_values import JsonObject, JsonValue
from mailcheck.wire.mcp.domains import inert
from mailcheck.wire.mcp.schemas import UNTRUSTED
from mailcheck.wire.mcp.shapes import render_fence
from mailcheck.wire.mcp.untrusted import Fence, clean_line
from mailcheck.wire.schemas import array_of, boolean, number, or_null, record, text, timestamp
from mailcheck.wire.urls import PublicUrls

MAX_DEDUCTIONS = 40
"""Deductions that are shown, the dearest first; a mail with so many has a score of 0."""

GENERATE_OUTPUT = record(
    {
        "testId": text("pass it to wait_for_test"),
        "address": text("send one real mail to it, from the server under test"),
        "expiresAt": timestamp(),
    }
)

_RECORD = record({"name": text(), "type": text(), "value": text()}, "the DNS record to publish")

WAIT_FOR_TEST_OUTPUT = record(
    {
        "untrusted": UNTRUSTED,
        "timedOut": boolean("true: not finished in time; call again with the same testId"),
        "testId": text(),
        "status": text("pending, processing, completed, expired or error"),
        "hint": or_null(text("what to do next; null when the test is completed")),
        "score": or_null(number("0 to 10; null until it is completed")),
        "email": or_null(
            record({"from": text(), "subject": text(), "bounceAddress": or_null(text())})
        ),
        "notes": array_of(text(), "what to know before reading the rest"),
        "checks": array_of(
            record(
                {
                    "name": text("spf, dkim, dmarc, blacklist or spamassassin"),
                    "status": text("pass, warn or fail"),
                    "result": text("temperror and unknown: could not be found out, not a no"),
                    "detail": text(),
                    "deduction": number("points it takes off"),
                }
            )
        ),
        "deductions": array_of(
            record(
                {
                    "check": text(),
                    "id": text("stable, like dkim.unsigned"),
                    "points": number("points it takes off"),
                    "meaning": text(),
                    "fix": text("what to do"),
                    "record": _RECORD,
                },
                optional=("record",),
            ),
            "what takes points off, the dearest first",
        ),
        "undetermined": array_of(text(), "checks that cost nothing: they could not be found out"),
        "shareUrl": text("the whole report; public, needs no key"),
        "waited": number("seconds"),
    }
)

_CHECK_FIELDS = ("status", "result", "detail", "deduction")


def render_generated(test: DeliverabilityTest, domain: str) -> JsonObject:
    """Render a test that was just made."""
    return {
        "testId": test.id,
        "address": address_of(test, domain),
        "expiresAt": format_instant(test.expires_at),
    }


def render_test_wait(
    result: DeliverabilityResult, waited: float, domain: str, fence: Fence, urls: PublicUrls
) -> JsonObject:
    """Render the end of a wait, in vain or not; of the report what an agent acts on."""
    test = result.test
    shape = render_tested(result, domain, urls)
    return {
        "untrusted": render_fence(fence),
        "timedOut": not test.state.is_final,
        "testId": test.id,
        "status": test.state.value,
        "hint": _hint(result, domain),
        "score": shape.get("score"),
        "email": _email(shape.get("email")),
        "notes": inert(shape.get("notes", [])),
        "checks": _checks(shape.get("checks")),
        "deductions": _deductions(shape.get("deductions")),
        "undetermined": shape.get("undetermined", []),
        "shareUrl": shape["shareUrl"],
        "waited": waited,
    }


def describe_test_wait(shape: JsonObject, fence: Fence) -> list[str]:
    """Describe the same in words; what the sender wrote comes in a block of its own."""
    score, hint = shape["score"], shape["hint"]
    ours = f"Deliverability test {shape['testId']} is {shape['status']}."
    if hint is not None:
        ours += f" {hint}."
    if score is None:
        return [ours]
    lines = [f"{ours} Score: {score} of 10."]
    lines += [f"Note: {note}" for note in _rows(shape["notes"])]
    for check in _rows(shape["checks"]):
        lines.append(
            f"{check['name']}: {check['result']} (-{check['deduction']}). {check['detail']}"
        )
    for one in _rows(shape["deductions"]):
        lines.append(f"-{one['points']} {one['id']}: {one['meaning']} Fix: {one['fix']}")
        if "record" in one:
            publish = one["record"]
            lines.append(f"  publish {publish['name']} {publish['type']} {publish['value']}")
    lines.append(f"The whole report: {shape['shareUrl']}")
    email = shape["email"]
    assert isinstance(email, Mapping)
    mail = f"From: {email['from']}\nSubject: {email['subject']}"
    return ["\n".join(lines), f"{fence.notice}\n{fence.around(mail)}"]


def _hint(result: DeliverabilityResult, domain: str) -> str | None:
    state = result.test.state
    if state is State.COMPLETED:
        return None
    if state is State.EXPIRED:
        return "no mail came in while the address was valid: call generate_test for a new one"
    if state is State.ERROR:
        return f"the analysis failed ({result.failure}); a recheck over the API tries again"
    return explain_wait(result.test, domain)


def _email(email: JsonValue) -> JsonObject | None:
    if not isinstance(email, Mapping):
        return None
    return {
        name: clean_line(value) if isinstance(value, str) else None for name, value in email.items()
    }


def _checks(checks: JsonValue) -> list[JsonValue]:
    if not isinstance(checks, Mapping):
        return []
    return [
        inert({"name": name, **{field: check[field] for field in _CHECK_FIELDS}})
        for name, check in checks.items()
        if isinstance(check, Mapping)
    ]


def _deductions(deductions: JsonValue) -> JsonValue:
    rows = sorted(_rows(deductions), key=lambda one: float(one["points"]), reverse=True)
    return inert(rows[:MAX_DEDUCTIONS])


def _rows(value: JsonValue) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
