"""Reports of receivers and plans of a policy as text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mailcheck.api.domains.report_overviews import render_split
from mailcheck.api.shapes import as_json
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.senders import Cause
from mailcheck.checks.receiver_reports.tls import TlsReport, explain_failure
from mailcheck.cli.commands import BLUE, BOLD, GREEN, RED, YELLOW, Line, Painted
from mailcheck.core.instants import DAY, Instant, format_instant
from mailcheck.operations.reports.summarize_senders import ShownOverview, ShownSender

_TITLES = {
    "request-reports": "Request reports",
    "repair": "Repair the DMARC record",
    "decide": "Decide about {name}",
    "set-up": "Set up {name}",
    "sign": "Turn on DKIM for {name}",
}


def reporter_of(report: AggregateReport) -> str:
    """Return the reporter that a report names."""
    return report.organisation or report.email.rpartition("@")[2] or "unknown"


def describe_overviews(shown: Iterable[ShownOverview]) -> Iterator[Line]:
    """Yield the lines of overviews."""
    for overview in shown:
        known = overview.overview
        last = Instant(known.ends_at - DAY)
        days = f"{format_instant(known.begins_at)[:10]} to {format_instant(last)[:10]}"
        yield Painted(known.domain, BOLD), f"  {days}  policy {known.policy or 'unknown'}"
        reporters = ", ".join(list(known.reporters)[:10])
        yield f"  {known.messages} messages, {known.passing} pass; reported by {reporters}"
        yield f"  {_describe_numbers(as_json(render_split(known.mail)))}"
        yield f"  p=reject would stop {known.stopped.total} of them"
        for sender in overview.senders:
            yield from _describe_sender(sender)


def _describe_numbers(numbers: Mapping[str, int]) -> str:
    """Return numbers with their names: ``40 yours, 2 unknown``."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items())


def _describe_sender(shown: ShownSender) -> Iterator[Line]:
    sender = shown.sender
    colours = {Cause.PASSES: GREEN, Cause.FORWARDED: BLUE}
    colour = colours.get(sender.cause, YELLOW if sender.is_known else RED)
    counts = f"{sender.failing} of {sender.messages} fail"
    yield ""
    yield "  ", Painted(sender.name, colour), f"  {counts}"
    yield f"    {shown.meaning}"
    if sender.failing:
        yield f"    {shown.fix}"
    if shown.record is not None:
        yield f"    {shown.record.name}  {shown.record.rdtype}  {shown.record.value}"
    for source in sender.sources[:3]:
        yield f"    from {source.address} {source.host}".rstrip()
    if sender.source_count > 3:
        yield f"    and {sender.source_count - 3} more addresses"


def describe_tls(reports: Iterable[TlsReport]) -> Iterator[Line]:
    """Yield the lines of TLS reports: the policies, and why sessions failed."""
    for report in reports:
        day = format_instant(report.begins_at)[:10]
        yield Painted(report.organisation or report.contact, BOLD), f"  {day}"
        yield from (f"  {problem}" for problem in report.problems)
        for policy in report.policies:
            colour = RED if policy.failed else GREEN
            counts = Painted(f"{policy.failed} failed", colour)
            yield f"  {policy.domain} ({policy.kind}): {policy.successful} encrypted, ", counts
            for failure in policy.failures:
                meaning, fix = explain_failure(failure.result)
                where = failure.receiving_host or failure.receiving_ip
                yield f"    {failure.sessions} {failure.result} {where}".rstrip()
                yield f"      {meaning} {fix}"
                if failure.reason:
                    yield f"      {failure.reason}"


def describe_plan(plan: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a plan: the simulations, the missing steps, and the result."""
    policy, following = plan["policy"] or "unknown", plan["nextPolicy"]
    yield (
        Painted(plan["domain"], BOLD),
        f"  policy {policy}" + (f", next {following}" if following else ""),
    )
    if plan["firstDay"]:
        yield (
            f"  {count(plan['messages'], 'message')}, {plan['failing']} fail, in reports about"
            f" {count(plan['daysWithReports'], 'day')} from {plan['firstDay']} to"
            f" {plan['lastDay']}"
        )
        yield from _describe_ways(plan)
        for simulated in plan["simulations"]:
            stopped = _describe_numbers(simulated["stopped"])
            yield f"  p={simulated['policy']} would have stopped {stopped}"
    for number, step in enumerate(plan["steps"], 1):
        yield ""
        yield from _describe_step(plan["domain"], number, step)
    yield ""
    yield from (("  ", Painted(doubt, YELLOW)) for doubt in plan["doubts"])
    yield from _describe_result(plan)


def _describe_ways(plan: dict[str, Any]) -> Iterator[Line]:
    """Yield how reports came that were imported, and whether the domain is proven."""
    found = {way: number for way, number in plan["ways"].items() if number}
    if set(found) - {"received"}:
        yield "  " + ", ".join(f"{number} in {way} reports" for way, number in found.items())
    if not plan["proven"]:
        yield f"  not proven: {plan['domain']} has not requested reports here in DNS"


def _describe_step(domain: str, number: int, step: dict[str, Any]) -> Iterator[Line]:
    title = _TITLES[step["kind"]].format(name=step["name"] or "unknown senders")
    messages = f": {count(step['messages'], 'message')}" if step["messages"] else ""
    yield f"  {number}. ", Painted(title, BOLD), messages
    yield f"     {step['meaning']}"
    yield f"     {step['fix']}"
    for record in (*step["records"], *step["patterns"]):
        yield f"     {record['name']}  {record['type']}  {record['value']}"
    if "guide" in step:
        yield f"     {step['guide']}"
    if step["kind"] == "decide":
        for option in ("mine", "not-mine"):
            yield f"     mailcheck dmarc plan {domain} --{option} {step['sender']}"


def _describe_result(plan: dict[str, Any]) -> Iterator[Line]:
    if plan["state"] == "safe":
        record = plan["record"]
        yield "  ", Painted("Safe to publish:", GREEN)
        yield f"  {record['name']}  {record['type']}  {record['value']}"
    elif plan["state"] == "enforced":
        yield (
            "  ",
            Painted("The domain has the strictest policy, and none of your mail fails.", GREEN),
        )
    elif plan["state"] == "steps":
        number = len(plan["steps"])
        steps = "1 step is" if number == 1 else f"{number} steps are"
        yield "  ", Painted(f"Not safe yet: {steps} missing.", RED)
    else:
        yield "  ", Painted("Could not be determined.", YELLOW)


def describe_letter(letter: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a mail that is not a report, such as one that confirms the address."""
    yield f"    {letter['author']}: {letter['subject']}"
    for line in letter["text"].splitlines():
        yield f"    {line}"
    for url in letter["links"]:
        yield f"    {url}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, which becomes a plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
