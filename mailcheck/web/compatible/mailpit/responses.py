"""The responses of Mailpit's API, as its clients parse them."""

import re
import resource
from collections.abc import Mapping, Sequence
from typing import Any

from mailcheck.api.inbox.checks import FEATURE_PAGE
from mailcheck.checks import mail_checks as checks
from mailcheck.checks.content.bodies import Digests
from mailcheck.checks.content.header.fields import parse_moment
from mailcheck.checks.content.raw_parts import Details, Fields
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.checks.link_checks import LinkCheck, LinkProblem
from mailcheck.core.content import AttachmentFacts, Person
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.version import installed_version
from mailcheck.operations.inbox.mails import Mail, MailList

Json = dict[str, Any]

MAX_SNIPPET = 250
"""Maximum number of characters of the beginning of a text."""

PRIVATE = "Blocked private/reserved address"

_TAG = re.compile(r"<[A-Za-z]")
_LINK = re.compile(r"<\s*([^<>\s]+)\s*>")
_SUPPORT = ("supported", "partial", "unsupported")


def used_memory() -> int:
    """Return the largest number of bytes of memory that the process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def own_version() -> str:
    """Return the version that clients are told."""
    return f"mailcheck {installed_version()}"


def render_list(found: MailList, start: int, tags: Sequence[str]) -> Json:
    """Render a page of messages."""
    return {
        "total": found.inbox.total,
        "unread": found.inbox.unread,
        "count": len(found.mails),
        "messages_count": found.matches.total,
        "messages_unread": found.matches.unread,
        "start": start,
        "tags": tags,
        "messages": [render_summary(mail) for mail in found.mails],
    }


def render_summary(mail: Mail) -> Json:
    """Render a message of a list, or of an event."""
    content = mail.message.content
    return {
        **_head(mail),
        "Read": mail.is_read,
        "Created": format_instant(mail.received_at),
        "Attachments": len(content.files),
        "Snippet": content.snippet[:MAX_SNIPPET],
    }


def text_of(mail: Mail, details: Details) -> str:
    """Return the text of a message with the line ends that it was sent with."""
    return mail.message.content.text.replace("\n", details.text_line_end)


def render_message(mail: Mail, details: Details) -> Json:
    """Render a whole message. As with Mailpit, Content-Disposition tells what is inline."""
    content = mail.message.content
    fields = {name.lower(): value for name, value in reversed(content.header_list)}
    files: dict[bool, list[Json]] = {True: [], False: []}
    for attachment in content.attachments:
        files[attachment.id in details.inline].append(_attachment(attachment, details.digests))
    return {
        **_head(mail),
        "Read": True,
        "ReturnPath": mail.message.envelope_sender,
        "ListUnsubscribe": _unsubscribe(fields),
        "Date": format_instant(_date(fields.get("date", ""), mail.received_at)),
        "Text": text_of(mail, details),
        "HTML": content.html.replace("\n", details.html_line_end),
        "Inline": files[True],
        "Attachments": files[False],
    }


def _head(mail: Mail) -> Json:
    """Return what lists and whole messages have in common."""
    summary, content = mail.message.summary, mail.message.content
    header = summary.header
    hidden = [_address("", recipient) for recipient in mail.hidden_recipients]
    return {
        "ID": mail.id,
        "MessageID": content.message_id.strip("<>") or _own_message_id(mail),
        "From": _address(header.author_name, header.author_address),
        "To": _people(content.people_in("to")),
        "Cc": _people(content.people_in("cc")),
        "Bcc": _people(content.people_in("bcc")) + hidden,
        "ReplyTo": _people(content.people_in("reply-to")),
        "Subject": header.subject,
        "Username": mail.message.session.user_name,
        "Tags": mail.tags,
        "Size": summary.size,
    }


def _own_message_id(mail: Mail) -> str:
    """Return the Message-ID of a mail that was sent without one."""
    return f"{mail.id}@mailcheck"


def _people(people: Sequence[Person]) -> list[Json]:
    return [_address(person.name, person.address) for person in people]


def _address(name: str, address: str) -> Json:
    return {"Name": name, "Address": address}


def _attachment(facts: AttachmentFacts, digests: Mapping[str, Digests]) -> Json:
    sums = digests[facts.id]._asdict() if facts.id in digests else {}
    return {
        "PartID": facts.id,
        "FileName": facts.filename,
        "ContentType": facts.content_type,
        "ContentID": facts.content_id or "",
        "Size": facts.size,
        "Checksums": {name.upper(): value for name, value in sums.items()},
    }


def _unsubscribe(fields: Mapping[str, str]) -> Json:
    header = fields.get("list-unsubscribe", "")
    links = _LINK.findall(header)
    return {
        "Header": header,
        "Links": links,
        "Errors": "" if links or not header else "a link in angle brackets is missing",
        "HeaderPost": fields.get("list-unsubscribe-post", ""),
    }


def _date(value: str, received_at: Instant) -> Instant:
    sent_at = parse_moment(value)
    return received_at if sent_at is None else sent_at


def render_headers(mail: Mail, fields: Fields) -> Mapping[str, list[str]]:
    """Render all header fields, by names as Go writes them, with those that Mailpit adds."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault("-".join(part.capitalize() for part in name.split("-")), []).append(value)
    found["Return-Path"] = [f"<{mail.message.envelope_sender}>"]
    found.setdefault("Message-Id", [f"<{_own_message_id(mail)}>"])
    if mail.hidden_recipients:
        found["Bcc"] = [", ".join([*found.get("Bcc", ()), *mail.hidden_recipients])]
    return dict(sorted(found.items()))


def render_html_check(compatibility: checks.Compatibility, html: str) -> Json:
    """Render the support of mail clients, as percentages of them and of the HTML elements."""
    warnings = [_warning(finding) for finding in compatibility.findings]
    scores = [warning["Score"] for warning in warnings]
    nodes = max(len(_TAG.findall(html)), sum(score["Found"] for score in scores), 1)

    def total(name: str) -> float:
        return float(round(sum(score[name] * score["Found"] for score in scores) / nodes, 2))

    partial, unsupported = total("Partial"), total("Unsupported")
    return {
        "Total": {
            "Tests": len(warnings),
            "Nodes": nodes,
            "Supported": round(100 - partial - unsupported, 2),
            "Partial": partial,
            "Unsupported": unsupported,
        },
        "Warnings": warnings,
        "Platforms": {client.family: [client.family] for client in compatibility.clients},
    }


def _warning(one: checks.FeatureFinding) -> Json:
    counts = {name: sum(getattr(each, name) for each in one.support) for name in _SUPPORT}
    known = max(sum(counts.values()), 1)
    shares = {name.capitalize(): round(100 * count / known, 2) for name, count in counts.items()}
    numbered = {str(number): note for number, note in enumerate(one.notes, 1)}
    numbers = {client: number for number, note in numbered.items() for client in note.clients}
    return {
        "Slug": one.slug,
        "Title": one.title,
        "Description": "",
        "URL": FEATURE_PAGE.format(slug=one.slug),
        "Category": "html" if one.slug.startswith("html") else "css",
        "Tags": [],
        "Keywords": "",
        "Results": [
            _result_of(client, support, numbers.get(client, ""))
            for support, clients in (("no", one.unsupported), ("partial", one.partial))
            for client in clients
        ],
        "NotesByNumber": {number: note.text for number, note in numbered.items()},
        "Score": {**shares, "Found": one.count},
    }


def _result_of(client: str, support: str, note_number: str) -> Json:
    family, _, platform = client.partition(" (")
    return {
        "Name": client,
        "Family": family,
        "Platform": platform.rstrip(")"),
        "Version": "",
        "Support": support,
        "NoteNumber": note_number,
    }


def render_links(found: Sequence[LinkCheck], follow: bool) -> Json:
    """Render the statuses of links: of the first answer, or of the last redirect."""
    links = [_link(check, follow) for check in found]
    broken = [link for link in links if not 0 < link["StatusCode"] < 400]
    return {"Errors": len(broken), "Links": links}


def _link(one: LinkCheck, follow: bool) -> Json:
    """Render a link with the status of its answer; 0 without one."""
    answer, status, text = one.answer, 0, one.explanation
    if answer.problem is LinkProblem.NOT_PUBLIC:
        status, text = 451, PRIVATE
    elif answer.hops:
        status = answer.hops[-1 if follow else 0].status
        text = text if status >= 400 else "OK"
    return {"URL": answer.url, "StatusCode": status, "Status": text}


def render_spam_check(outcome: FilterOutcome) -> Json:
    """Render the verdict of the content filter, or the reason why there is none."""
    if isinstance(outcome, FilterUnavailable):
        return {"IsSpam": False, "Error": outcome.reason, "Score": 0.0, "Rules": None}
    rules = [
        {"Score": rule.points, "Name": rule.name, "Description": rule.description}
        for rule in outcome.rules
    ]
    return {"IsSpam": outcome.is_spam, "Error": "", "Score": outcome.points, "Rules": rules}
