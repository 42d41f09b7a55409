"""JSON shapes of messages (SPEC.md 2.7 and what DECISIONS.md section 4 adds)."""

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.core.content import AttachmentFacts, Candidate, Extracted, HeaderSummary
from mailcheck.core.cursors import format_cursor
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import (
    ListedMessage,
    MessageSummary,
    Refusal,
    Session,
    StoredMessage,
)
from mailcheck.wire.inbox.authentication import render_authentication
from mailcheck.wire.json_values import JsonObject, JsonValue
from mailcheck.wire.urls import PublicUrls


def render_message(
    message: StoredMessage, urls: PublicUrls, authentication: Authentication | None = None
) -> JsonObject:
    """Render a whole message; what is not known of its sender is absent."""
    content = message.content
    shape = {
        **_render_summary(message.summary, content.extracted, urls),
        "text": content.text,
        "html": content.html,
        "headers": render_headers(content.header_list),
        "headerList": [[name, value] for name, value in content.header_list],
        "attachments": [
            _render_attachment(message.summary, facts, urls) for facts in content.attachments
        ],
        "envelope": _render_envelope(message),
        "extraction": [_render_candidate(candidate) for candidate in content.candidates],
        "problems": list(content.problems),
    }
    if authentication is not None:
        shape["authentication"] = render_authentication(authentication)
    return shape


def render_listed_message(message: ListedMessage, urls: PublicUrls) -> JsonObject:
    """Render a message of a list: all but its text, html and headers."""
    shape = _render_summary(message.summary, message.extracted, urls)
    return {**shape, "isRead": message.summary.is_read}


def render_seen_message(message: MessageSummary, reasons: tuple[str, ...]) -> JsonObject:
    """Render a message that arrived but was not the one waited for."""
    return {
        "id": message.id,
        "to": message.recipient,
        "tag": message.tag,
        "from": _render_author(message.header),
        "subject": message.header.subject,
        "receivedAt": format_instant(message.received_at),
        "cursor": format_cursor(message.position),
        "reasons": list(reasons),
    }


def render_refusal(refusal: Refusal) -> JsonObject:
    """Render a mail that was refused for the inbox."""
    return {
        "to": refusal.recipient,
        "from": refusal.envelope_sender,
        "client": refusal.client_ip,
        "reason": refusal.reason,
        "refusedAt": format_instant(refusal.refused_at),
    }


def render_headers(header_list: tuple[tuple[str, str], ...]) -> JsonObject:
    """Key the header fields by lower-case name; a repeated one is joined by newlines, in order."""
    headers: dict[str, str] = {}
    for name, value in header_list:
        key = name.lower()
        headers[key] = f"{headers[key]}\n{value}" if key in headers else value
    return dict(headers)


def _render_summary(
    message: MessageSummary, extracted: Extracted, urls: PublicUrls
) -> dict[str, JsonValue]:
    return {
        "id": message.id,
        "to": message.recipient,
        "tag": message.tag,
        "from": _render_author(message.header),
        "subject": message.header.subject,
        "receivedAt": format_instant(message.received_at),
        "expiresAt": format_instant(message.expires_at),
        "links": list(extracted.links),
        "bestLink": extracted.best_link,
        "codes": list(extracted.codes),
        "shareUrl": urls.share_url(message.id, message.share_token),
        "size": message.size,
        "cursor": format_cursor(message.position),
        "deliveryId": message.delivery_id,
    }


def _render_author(header: HeaderSummary) -> JsonObject:
    return {"address": header.author_address, "name": header.author_name}


def _render_attachment(
    message: MessageSummary, facts: AttachmentFacts, urls: PublicUrls
) -> JsonObject:
    return {
        "id": facts.id,
        "filename": facts.filename,
        "contentType": facts.content_type,
        "size": facts.size,
        "contentId": facts.content_id,
        "url": urls.attachment_url(message.id, facts.id),
    }


def _render_envelope(message: StoredMessage) -> JsonObject:
    return {
        "mailFrom": message.envelope_sender,
        "rcptTo": message.summary.recipient,
        "helo": message.session.helo_name,
        "clientAddress": message.session.client_ip,
        "tls": _render_tls(message.session),
    }


def _render_tls(session: Session) -> JsonObject | None:
    if session.tls is None:
        return None
    return {"version": session.tls.version, "cipher": session.tls.cipher}


def _render_candidate(candidate: Candidate) -> JsonObject:
    return {
        "kind": candidate.kind.value,
        "value": candidate.value,
        "score": candidate.score,
        "accepted": candidate.is_accepted,
        "reasons": list(candidate.reasons),
    }
