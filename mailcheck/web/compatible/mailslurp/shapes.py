"""The JSON of MailSlurp. Its strict clients need every field."""

import hashlib
from collections.abc import Sequence

from msgspec import field

from mailcheck.api.shapes import Shape
from mailcheck.core.content import AttachmentFacts, Person
from mailcheck.core.instants import format_instant
from mailcheck.core.messages import StoredMessage
from mailcheck.core.webhooks import Webhook, WebhookState
from mailcheck.web.compatible.reading import join_file_id

NEW_EMAIL = "NEW_EMAIL"
"""The event of webhooks: a message has arrived."""


class Inbox(Shape):
    """An inbox: a tag and its address."""

    id: str
    user_id: str
    created_at: str
    email_address: str
    name: str | None = None
    description: str | None = None
    domain_id: str | None = None
    domain: str = ""
    local_part: str = ""
    expires_at: str | None = None
    favourite: bool = False
    tags: tuple[str, ...] = ()
    inbox_type: str = "HTTP_INBOX"
    read_only: bool = False
    virtual_inbox: bool = False
    team_access: bool = False
    functions_as: str | None = None
    account_region: str | None = None
    merged_into_inbox_id: str | None = None


class Page(Shape):
    """A page of a list. Pages are counted from 0."""

    content: Sequence[Shape]
    total_pages: int
    total_elements: int
    size: int
    number: int
    number_of_elements: int
    first: bool
    last: bool
    empty: bool
    pageable: None = None
    sort: None = None


class Recipient(Shape):
    """A person, with the text of the header."""

    raw_value: str
    email_address: str
    name: str | None


class Recipients(Shape):
    """The recipients in the header."""

    to: tuple[Recipient, ...]
    cc: tuple[Recipient, ...]
    bcc: tuple[Recipient, ...]


class Preview(Shape):
    """A message in a list."""

    id: str
    user_id: str
    inbox_id: str
    domain_id: str
    subject: str
    from_: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    sender: Recipient
    recipients: Recipients
    attachments: tuple[str, ...]
    created_at: str
    updated_at: str
    read: bool
    message_id: str
    in_reply_to: str | None
    size_bytes: int
    body_part_content_types: tuple[str, ...]
    body_excerpt: str
    text_excerpt: str
    body_md5_hash: str = field(name="bodyMD5Hash")
    thread_id: str | None = None
    plus_address: str | None = None
    imap_uid: int | None = None
    favourite: bool = False
    team_access: bool = False


class Email(Preview):
    """A whole message. ``body`` is the HTML, or the text of a mail without HTML."""

    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    headers_map: dict[str, list[str]] = field(default_factory=dict)
    reply_to: str | None = None
    is_html: bool = field(name="isHTML", default=False)
    html: bool = False
    is_x_amp_html: bool = False
    xamp_html: bool = False
    charset: str = "utf-8"
    external_id: str | None = None
    analysis: None = None


class File(Shape):
    """Facts of an attachment."""

    id: str
    name: str
    content_type: str
    content_length: int
    content_id: str | None


class FileContent(Shape):
    """The bytes of an attachment in Base64."""

    base64_file_contents: str
    content_type: str
    size_bytes: int


class Links(Shape):
    """The links of a message."""

    links: tuple[str, ...]
    body: str


class Lines(Shape):
    """The lines of the text of a message."""

    lines: tuple[str, ...]
    body: str


class CodeCandidate(Shape):
    """A code that was found."""

    code: str
    confidence: float
    method: str
    source: str
    context: str | None = None


class Codes(Shape):
    """The best code, and all others."""

    found: bool
    code: str | None
    method_used: str
    candidates: tuple[CodeCandidate, ...]
    warnings: tuple[str, ...] = ()


class RawEmail(Shape):
    """The source of a message."""

    content: str


class Hook(Shape):
    """A webhook."""

    id: str
    user_id: str
    url: str
    inbox_id: str | None
    created_at: str
    updated_at: str
    enabled: bool
    health_status: str
    name: str | None = None
    event_name: str = NEW_EMAIL
    method: str = "POST"
    payload_json_schema: str = "{}"
    basic_auth: bool = False
    username: None = None
    password: None = None
    phone_id: None = None
    request_body_template: None = None
    request_headers: None = None
    ai_transform_id: None = None
    ignore_insecure_ssl_certificates: bool = False
    use_static_ip_range: bool = False


def render_page(found: Sequence[Shape], total: int, page: int, size: int) -> Page:
    """Render a page."""
    pages = -(-total // size)
    return Page(
        found, pages, total, size, page, len(found), page == 0, page + 1 >= pages, not found
    )


def render_preview(message: StoredMessage) -> Preview:
    """Render a message of a list."""
    summary, content, header = message.summary, message.content, message.summary.header
    at = format_instant(summary.received_at)
    author = Person("from", header.author_address, header.author_name)
    to, cc, bcc = map(content.people_in, ("to", "cc", "bcc"))
    return Preview(
        id=summary.id,
        user_id=summary.account_id,
        inbox_id=summary.tag,
        domain_id=summary.recipient.rpartition("@")[2],
        subject=header.subject,
        from_=header.author_address,
        to=_addresses(to) or (summary.recipient,),
        cc=_addresses(cc),
        bcc=_addresses(bcc),
        sender=_recipient(author),
        recipients=Recipients(*(tuple(map(_recipient, people)) for people in (to, cc, bcc))),
        attachments=tuple(join_file_id(summary.id, one.id) for one in content.attachments),
        created_at=at,
        updated_at=at,
        read=summary.is_read,
        message_id=content.message_id,
        in_reply_to=header_values(message).get("in-reply-to", [None])[0],
        size_bytes=summary.size,
        body_part_content_types=tuple(
            kind
            for kind, body in (("text/plain", content.text), ("text/html", content.html))
            if body
        ),
        body_excerpt=content.snippet,
        text_excerpt=content.snippet,
        body_md5_hash=hashlib.md5(
            body_of(message).encode("utf-8", "replace"), usedforsecurity=False
        ).hexdigest(),
    )


def render_email(message: StoredMessage) -> Email:
    """Render a whole message, which is read from now on."""
    content, preview = message.content, render_preview(message)
    values = header_values(message, is_folded=False)
    is_html = bool(content.html)
    fields = {name: getattr(preview, name) for name in Preview.__struct_fields__}
    return Email(
        **{**fields, "read": True},
        body=body_of(message),
        headers={name: found[-1] for name, found in values.items()},
        headers_map=values,
        reply_to=next((one.address for one in content.people_in("reply-to")), None),
        is_html=is_html,
        html=is_html,
    )


def body_of(message: StoredMessage) -> str:
    """Return the HTML, or the text of a mail without HTML."""
    return message.content.html or message.content.text


def header_values(message: StoredMessage, *, is_folded: bool = True) -> dict[str, list[str]]:
    """Return the values of each header field, by its name or its name in lower case."""
    found: dict[str, list[str]] = {}
    for name, value in message.content.header_list:
        found.setdefault(name.lower() if is_folded else name, []).append(value)
    return found


def render_file(message_id: str, one: AttachmentFacts) -> File:
    """Render the facts of an attachment."""
    file_id = join_file_id(message_id, one.id)
    return File(file_id, one.filename, one.content_type, one.size, one.content_id)


def render_codes(codes: Sequence[str]) -> Codes:
    """Render codes, the best one first."""
    candidates = tuple(CodeCandidate(code, 1.0, "PATTERN", "BODY") for code in codes)
    return Codes(bool(codes), next(iter(codes), None), "PATTERN", candidates)


def render_webhook(hook: Webhook) -> Hook:
    """Render a webhook."""
    is_active = hook.state is WebhookState.ACTIVE
    created_at = format_instant(hook.created_at)
    return Hook(
        id=hook.id,
        user_id=hook.account_id,
        url=hook.url,
        inbox_id=hook.wanted.tag,
        created_at=created_at,
        updated_at=created_at,
        enabled=is_active,
        health_status="UNHEALTHY" if hook.failures else "HEALTHY",
    )


def _recipient(person: Person) -> Recipient:
    raw = f"{person.name} <{person.address}>".strip()
    return Recipient(raw, person.address, person.name or None)


def _addresses(people: Sequence[Person]) -> tuple[str, ...]:
    return tuple(one.address for one in people)
