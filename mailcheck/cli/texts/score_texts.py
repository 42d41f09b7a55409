"""A deliverability report as text, rendered from its JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mailcheck.checks.quality.topics import topic_of, topic_of_finding
from mailcheck.cli.commands import BLUE, BOLD, GREEN, RED, YELLOW, Line, Painted
from mailcheck.cli.texts.check_texts import describe_topics

GOOD, FAIR = 8.0, 5.0
"""Scores from which the colour is green, or yellow."""

_COLOURS = {"pass": GREEN, "warn": YELLOW, "fail": RED}

_NO_MAIL_TELLS = ".spam-rate"
"""End of the ids of rules that a single mail cannot show."""

Shape = Mapping[str, Any]
"""A report as `mailcheck.api.deliverability.report` renders it."""


def describe_report(report: Shape) -> Iterator[Line]:
    """Yield the lines of a report: score, checks, deductions and the rules of receivers."""
    score, email = report["score"], report["email"]
    colour = GREEN if score >= GOOD else YELLOW if score >= FAIR else RED
    author = email["from"] or "(no author)"
    subject = email["subject"] or "(no subject)"
    yield Painted(f"{score:.1f}/10", colour), f"  {author}  {subject}"
    if report.get("preflight"):
        count = len(report["records"])
        yield Painted(f"  with {count} proposed record(s)", BOLD)
    yield from (f"  {note}" for note in report["notes"])
    for name, check in report["checks"].items():
        word = check["status"] if check["determined"] else "unknown"
        colour = _COLOURS[check["status"]] if check["determined"] else BLUE
        cost = f"-{check['deduction']:.1f}" if check["deduction"] else "    "
        title = topic_of(name).title
        yield "  ", Painted(f"{word:<7}", colour), f" {cost} {title:<14} {check['detail']}"
    rspamd = report["report"].get("rspamd")
    if rspamd is not None:
        word, colour = ("spam", RED) if rspamd["spam"] else ("pass", GREEN)
        if rspamd["problem"] is not None:
            word, colour = "unknown", BLUE
        yield "  ", Painted(f"{word:<7}", colour), f"      {'rspamd':<14} {rspamd['detail']}"
    yield from _findings("deductions", report["deductions"])
    others = [
        finding
        for finding in report["findings"]
        if not finding["points"] and finding["severity"] in ("error", "warning")
    ]
    yield from _findings("further findings, without a deduction", others)
    topics = (
        topic_of_finding(deduction["id"], deduction["check"]) for deduction in report["deductions"]
    )
    yield from describe_topics(topics)
    yield ""
    for checklist in report["report"]["checklists"]:
        yield from _checklist_lines(checklist)
    yield from describe_replies(report["report"].get("replies", ()))


def _findings(title: str, found: Sequence[Shape]) -> Iterator[Line]:
    if not found:
        return
    yield ""
    yield Painted(title, BOLD)
    for listing in found:
        cost = f"-{listing['points']:.1f}" if listing["points"] else "    "
        yield f"  {cost} {listing['meaning']}"
        yield f"       fix: {listing['fix']}"
        record = listing.get("record")
        if record is not None:
            yield f"       {record['name']}  {record['type']}  {record['value']}"


def _checklist_lines(checklist: Shape) -> Iterator[Line]:
    """Yield the rules that are not met. Rules that could not be judged never count as met."""
    rules = [rule for rule in checklist["rules"] if not rule["id"].endswith(_NO_MAIL_TELLS)]
    broken = [rule["text"] for rule in rules if rule["result"] == "not-met"]
    count = sum(rule["result"] == "undetermined" for rule in rules)
    rest = f"  ({count} of {len(rules)} rules could not be judged)" if count else ""
    if broken:
        word = Painted(f"{'misses':<7}", RED)
    elif count:
        word = Painted(f"{'unknown':<7}", BLUE)
    else:
        word = Painted(f"{'meets':<7}", GREEN)
    yield "  ", word, f" rules of {checklist['name']}{rest}"
    yield from (f"          not met: {text}" for text in broken)


_ACTIONS = {"accept": GREEN, "spam": YELLOW, "unknown": BLUE, "defer": YELLOW, "reject": RED}
"""Action of a receiver -> colour."""


def describe_replies(replies: Sequence[Shape]) -> Iterator[Line]:
    """Yield the replies of receivers by their published rules, each with its reason."""
    if not replies:
        return
    yield ""
    yield Painted("replies by the published rules", BOLD)
    for reply in replies:
        word = Painted(f"{reply['action']:<7}", _ACTIONS[reply["action"]])
        yield "  ", word, f" {reply['receiver']:<12} {_describe_reply(reply)}"
        if reply["action"] != "accept":
            rule = reply["rules"][0]
            yield f"          {reply['explanation']} ({rule['source']}, {rule['date']})"


def _describe_reply(one: Shape) -> str:
    reply = one["reply"]
    if reply is None:
        return "no reply is known"
    return " ".join(str(part) for part in (reply["code"], reply["enhanced"], reply["text"]) if part)


def describe_checks(checks: Shape) -> Iterator[Line]:
    """Yield the lines about HTML support and accessibility."""
    yield ""
    compatibility, accessibility = checks["compatibility"], checks["accessibility"]
    if compatibility is None:
        yield "the mail has no HTML; all programs show plain text"
        return
    facts = f"caniemail.com, {compatibility['date']}"
    yield Painted(f"features that mail programs do not support ({facts})", BOLD)
    shares = (
        f"{client['family']} {client['supported']} of"
        f" {client['supported'] + client['partial'] + client['unsupported']}"
        for client in compatibility["clients"]
    )
    yield f"  full support: {', '.join(shares)}"
    for finding in compatibility["findings"]:
        lines = ", ".join(str(place["line"]) for place in finding["places"])
        yield "  ", Painted(finding["title"], YELLOW), f"  line {lines}"
        if finding["unsupported"]:
            yield f"       not in: {', '.join(finding['unsupported'])}"
        if finding["partial"]:
            yield f"       partly in: {', '.join(finding['partial'])}"
    for entry in compatibility["notJudged"]:
        what = entry["what"].replace("-", " ") + ("" if entry["count"] == 1 else "s")
        yield f"  not judged: {entry['count']} {what}: {entry['reason']}"
    if accessibility["findings"]:
        yield ""
        yield Painted("accessibility", BOLD)
    for finding in accessibility["findings"]:
        yield f"       {finding['meaning']}"
        yield f"       fix: {finding['fix']}"


def describe_pressed(pressed: Shape) -> Iterator[Line]:
    """Yield the lines of the result of an unsubscribe request."""
    verdict = pressed["verdict"]
    colour = {"accepted": GREEN, "refused": RED}.get(verdict, BLUE)
    status = "" if pressed["status"] is None else f" ({pressed['status']})"
    yield ""
    yield Painted("one-click unsubscribe", BOLD)
    yield "  ", Painted(f"{verdict}{status}", colour), f"  {pressed['explanation']}"
    if pressed["url"] is not None:
        yield f"       {pressed['url']}"
    if pressed["location"] is not None:
        yield f"       redirect to {pressed['location']}"
    if pressed["fix"] is not None:
        yield f"       fix: {pressed['fix']}"
