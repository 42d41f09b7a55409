"""The JSON of MailSlurp. Its strict clients need every field, even if it never has a value."""

import hashlib
from collections.abc import Sequence
from typing import Any

from mailcheck.core.content import AttachmentFacts, Person
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.webhooks import Webhook, WebhookState
from mailcheck.web.compatible.mailslurp.names import InboxNames
from mailcheck.web.compatible.reading import group_fields, join_file_id

Json = dict[str, Any]

NEW_EMAIL = "NEW_EMAIL"
"""The event of webhooks: a message has arrived."""


def render_inbox(tag: str, owner: str, address: str, at: Instant, names: InboxNames) -> Json:
    """Render an inbox: a tag and its address."""
    local_part, _, domain = address.rpartition("@")
    return {
        "id": tag,
        "userId": owner,
        "createdAt": format_instant(at),
        "emailAddress": address,
        "localPart": local_part,
        "domain": domain,
        "domainId": domain,
        "name": names.name,
        "description": names.description,
        "tags": names.all_tags,
        "expiresAt": None,
        "favourite": False,
        "inboxType": "HTTP_INBOX",
        "readOnly": False,
        "virtualInbox": False,
        "teamAccess": False,
        "functionsAs": None,
        "accountRegion": None,
        "mergedIntoInboxId": None,
    }


def render_page(found: Sequence[Json], total: int, page: int, size: int) -> Json:
    """Render a page of a list. Pages are counted from 0."""
    pages = -(-total // size)
    return {
        "content": found,
        "totalPages": pages,
        "totalElements": total,
        "size": size,
        "number": page,
        "numberOfElements": len(found),
        "first": page == 0,
        "last": page + 1 >= pages,
        "empty": not found,
        "pageable": None,
        "sort": None,
    }


def render_preview(message: StoredMessage) -> Json:
    """Render a message of a list."""
    summary, content, header = message.summary, message.content, message.summary.header
    at = format_instant(summary.received_at)
    people = {name: content.people_in(name) for name in ("to", "cc", "bcc")}
    addresses = {name: [person.address for person in found] for name, found in people.items()}
    answered = (value for name, value in content.header_list if name.lower() == "in-reply-to")
    body = body_of(message).encode("utf-8", "replace")
    return {
        "id": summary.id,
        "userId": summary.account_id,
        "inboxId": summary.tag,
        "domainId": summary.recipient.rpartition("@")[2],
        "subject": header.subject,
        "from": header.author_address,
        **addresses,
        "to": addresses["to"] or [summary.recipient],
        "sender": _recipient(Person("from", header.author_address, header.author_name)),
        "recipients": {
            name: [_recipient(person) for person in some] for name, some in people.items()
        },
        "attachments": [
            join_file_id(summary.id, attachment.id) for attachment in content.attachments
        ],
        "createdAt": at,
        "updatedAt": at,
        "read": summary.is_read,
        "messageId": content.message_id,
        "inReplyTo": next(answered, None),
        "sizeBytes": summary.size,
        "bodyPartContentTypes": [
            kind
            for kind, text in (("text/plain", content.text), ("text/html", content.html))
            if text
        ],
        "bodyExcerpt": content.snippet,
        "textExcerpt": content.snippet,
        "bodyMD5Hash": hashlib.md5(body, usedforsecurity=False).hexdigest(),
        "threadId": None,
        "plusAddress": None,
        "imapUid": None,
        "favourite": False,
        "teamAccess": False,
    }


def render_email(message: StoredMessage) -> Json:
    """Render a whole message, which is read from now on."""
    content = message.content
    values = group_fields(content.header_list)
    answers = content.people_in("reply-to")
    return {
        **render_preview(message),
        "read": True,
        "body": body_of(message),
        "headers": {name: found[-1] for name, found in values.items()},
        "headersMap": values,
        "replyTo": answers[0].address if answers else None,
        "isHTML": bool(content.html),
        "html": bool(content.html),
        "isXAmpHtml": False,
        "xampHtml": False,
        "charset": "utf-8",
        "externalId": None,
        "analysis": None,
    }


def body_of(message: StoredMessage) -> str:
    """Return the HTML, or the text of a mail without HTML."""
    return message.content.html or message.content.text


def render_file(message_id: str, one: AttachmentFacts) -> Json:
    """Render the facts of an attachment."""
    return {
        "id": join_file_id(message_id, one.id),
        "name": one.filename,
        "contentType": one.content_type,
        "contentLength": one.size,
        "contentId": one.content_id,
    }


def render_codes(codes: Sequence[str]) -> Json:
    """Render codes, the best one first."""
    found = {"confidence": 1.0, "method": "PATTERN", "source": "BODY", "context": None}
    return {
        "found": bool(codes),
        "code": next(iter(codes), None),
        "methodUsed": "PATTERN",
        "candidates": [{"code": code, **found} for code in codes],
        "warnings": [],
    }


def render_webhook(hook: Webhook) -> Json:
    """Render a webhook."""
    at = format_instant(hook.created_at)
    return {
        "id": hook.id,
        "userId": hook.account_id,
        "url": hook.url,
        "inboxId": hook.wanted.tag,
        "createdAt": at,
        "updatedAt": at,
        "enabled": hook.state is WebhookState.ACTIVE,
        "healthStatus": "UNHEALTHY" if hook.failures else "HEALTHY",
        "name": None,
        "eventName": NEW_EMAIL,
        "method": "POST",
        "payloadJsonSchema": "{}",
        "basicAuth": False,
        "username": None,
        "password": None,
        "phoneId": None,
        "requestBodyTemplate": None,
        "requestHeaders": None,
        "aiTransformId": None,
        "ignoreInsecureSslCertificates": False,
        "useStaticIpRange": False,
    }


def _recipient(person: Person) -> Json:
    """Render a person, with the text of the header."""
    raw = f"{person.name} <{person.address}>".strip()
    return {"rawValue": raw, "emailAddress": person.address, "name": person.name or None}
