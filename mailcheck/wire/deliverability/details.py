"""The ``report`` of a deliverability test as JSON: what the five checks do not show."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailcheck.checks.deliverability.report import Area
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.lookups import Presence
from mailcheck.checks.mail_quality.facts import MailFacts
from mailcheck.checks.mail_quality.receiver_rules import Checklist
from mailcheck.core.instants import format_instant
from mailcheck.wire.deliverability.findings import render_area
from mailcheck.wire.json_values import JsonObject

MAX_SHOWN = 200
"""Entries of a list that the report repeats: a mail may have a thousand of anything."""

MAX_TEXT = 1000
"""Characters of a text of the mail that the report repeats."""


def render_details(report: DeliverabilityReport) -> JsonObject:
    """Give reverse DNS, HELO, transport, and how the mail is made, each with its findings."""
    facts = report.facts
    return {
        "reverseDns": _reverse_dns(report),
        "helo": _helo(report),
        "transport": {**_transport(report), **_findings(report, Area.TRANSPORT)},
        "headers": {**_headers(facts), **_findings(report, Area.HEADERS)},
        "mime": {**_mime(facts), **_findings(report, Area.CONTENT)},
        "html": _html(facts),
        "links": {**_links(facts), **_findings(report, Area.LINKS)},
        "unsubscribe": {**_unsubscribe(facts), **_findings(report, Area.UNSUBSCRIBE)},
        "arc": {**_arc(report), **_findings(report, Area.ARC)},
        "checklists": [_checklist(one) for one in report.checklists],
    }


def _findings(report: DeliverabilityReport, area: Area) -> JsonObject:
    return {"findings": render_area(report.score.charged, area)}


def _reverse_dns(report: DeliverabilityReport) -> JsonObject:
    found = report.evidence.reverse_dns
    ip = report.evidence.authentication.origin.client_ip
    if found is None:
        return {"ip": ip, "names": [], "validatedNames": [], "confirmed": None, "generic": None}
    is_known = found.presence is not Presence.UNDETERMINED
    return {
        "ip": ip,
        "names": list(found.ptr_names),
        "validatedNames": list(found.validated_names),
        "confirmed": found.is_confirmed if is_known else None,
        "generic": found.is_generic if is_known else None,
    }


def _helo(report: DeliverabilityReport) -> JsonObject:
    found = report.evidence.helo
    return {
        "name": report.evidence.authentication.origin.helo_name or None,
        "resolves": None if found is None else found.is_resolvable,
        "addresses": [] if found is None else [str(address) for address in found.addresses],
        "leadsToClient": None if found is None else found.leads_to_client,
    }


def _transport(report: DeliverabilityReport) -> JsonObject:
    session = report.mail.session
    tls = session.tls
    return {
        "tls": None if tls is None else {"version": tls.version, "cipher": tls.cipher},
        "extended": session.is_extended,
        "transcript": list(report.mail.transcript),
    }


def _headers(facts: MailFacts) -> JsonObject:
    date, message_id = facts.date, facts.message_id
    instant = None if date is None else date.instant
    return {
        "size": facts.header_size,
        "fields": _cut(facts.field_names),
        "repeated": _cut(facts.repeated_fields),
        "from": [
            _in_json_case({"address": one.address, "name": one.display_name, "domain": one.domain})
            for one in facts.authors
        ],
        "sender": facts.sender_address or None,
        "replyTo": facts.reply_to_address or None,
        "date": None if date is None else date.text,
        "dateUtc": None if instant is None else format_instant(instant),
        "messageId": None if message_id is None else message_id.text,
        "received": facts.received_fields,
        "listFields": _cut(facts.bulk.list_fields),
        "precedence": facts.bulk.precedence or None,
        "autoSubmitted": facts.bulk.auto_submitted or None,
    }


def _mime(facts: MailFacts) -> JsonObject:
    return {
        "size": facts.size,
        "contentType": facts.content_type,
        "hasText": facts.has_text,
        "hasHtml": facts.html is not None,
        "textSize": facts.text_size,
        "overlap": facts.overlap,
        "longLines": facts.long_lines,
        "longestLine": facts.longest_line,
        "placeholders": list(facts.placeholders),
        "riskyAttachments": list(facts.risky_attachments),
        "problems": list(facts.problems),
        "parts": [_in_json_case(asdict(part)) for part in facts.parts[:MAX_SHOWN]],
    }


def _html(facts: MailFacts) -> JsonObject | None:
    return None if facts.html is None else _in_json_case(asdict(facts.html))


def _links(facts: MailFacts) -> JsonObject:
    links = facts.link_facts
    shown = _in_json_case(asdict(links))
    pairs = [
        {"shown": words[:MAX_TEXT], "leadsTo": host[:MAX_TEXT]}
        for words, host in links.disguised[:MAX_SHOWN]
    ]
    return {
        "urls": _cut(facts.links),
        "hosts": _cut(facts.link_hosts),
        **shown,
        "disguised": pairs,
    }


def _unsubscribe(facts: MailFacts) -> JsonObject:
    found = facts.unsubscribe
    return {
        "listUnsubscribe": _cut(found.uris) if found.is_present else None,
        "listUnsubscribePost": found.post,
        "bodyLinks": found.body_links,
    }


def _arc(report: DeliverabilityReport) -> JsonObject:
    arc = report.evidence.arc
    return {
        "result": arc.result.value,
        "detail": arc.explanation or None,
        "count": arc.count,
        "seals": [_in_json_case(asdict(seal)) for seal in arc.seals],
    }


def _checklist(checklist: Checklist) -> JsonObject:
    return {
        "receiver": checklist.id,
        "name": checklist.name,
        "source": checklist.source,
        "met": checklist.is_met,
        "rules": [
            {"id": rule.id, "text": rule.text, "result": rule.result.value}
            for rule in checklist.rules
        ],
    }


def _in_json_case(fields: dict[str, Any]) -> dict[str, Any]:
    """Write the names of fields as JSON has them: ``image_count`` is ``imageCount``."""
    return {_camel(name): _plain(value) for name, value in fields.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value[:MAX_SHOWN]]
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _cut(texts: Sequence[str]) -> list[str]:
    return [text[:MAX_TEXT] for text in texts[:MAX_SHOWN]]
