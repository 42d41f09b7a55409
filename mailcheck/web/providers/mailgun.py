"""The API of Mailgun."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from mailcheck.core.errors import InboxFull, InvalidParameter
from mailcheck.core.inbound import InboundFormat
from mailcheck.core.webhooks import EventKind
from mailcheck.operations.inbox.webhooks.event_signatures import sign_with_hmac
from mailcheck.operations.write_mail import (
    AMP,
    Alternative,
    File,
    OutgoingMail,
    Person,
    RawMail,
    make_headers,
    read_people,
)
from mailcheck.web.providers.bodies import (
    MAX_BATCH,
    Form,
    Template,
    read_form,
    require_bodies,
    require_few,
    substitute,
    text_of,
)
from mailcheck.web.providers.events import BOUNCE, Event
from mailcheck.web.providers.inbound.mailgun import (
    head_fields,
    header_pairs,
    message_url,
    parsed_fields,
    results_of,
    stored_files,
    stored_ids,
)
from mailcheck.web.providers.inbound.received import ReceivedMail
from mailcheck.web.providers.inbound.trace import on_top
from mailcheck.web.providers.provider import (
    CREATED_AT,
    STATUSES_WITHOUT_CODES,
    AskRoute,
    Fetched,
    FetchRoute,
    FieldMissing,
    KeyMissing,
    Mails,
    Posting,
    Provider,
    Sending,
    SendRoute,
    Submission,
    Support,
    has_format,
)
from mailcheck.web.providers.received_files import show_part
from mailcheck.web.site.bodies import decode_json
from mailcheck.web.site.failures import PathUnknown
from mailcheck.web.site.forms import Upload
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.web.site.requests import basic_credentials

MAX_PEOPLE = 1_000


def read_mails(posting: Posting) -> Mails:
    """Return the mail, or a mail for each recipient if there are recipient variables."""
    form = read_form(posting)
    mail = _mail_of(form)
    variables = _object(form, "recipient-variables")
    source = form.shown
    if not variables:
        return [Sending(mail, source)]
    return (
        Sending(_personal(mail, person, variables), source)
        for person in (*mail.to, *mail.cc, *mail.bcc)[:MAX_BATCH]
    )


def read_mime(posting: Posting) -> Mails:
    """Return the mail that ``POST /v3/{domain}/messages.mime`` has as a file."""
    form = read_form(posting)
    to = read_people("to", form.all("to"))
    require_few("to", to, MAX_PEOPLE)
    if not to:
        raise FieldMissing("to", "to parameter is missing")
    raw = next((file.data for file in form.files if file.name == "message"), None)
    if raw is None:
        raw = form.require("message").encode()
    recipients = tuple({person.mailbox.folded: person.mailbox for person in to}.values())
    return [Sending(RawMail(_sender(form, posting), recipients, raw), form.shown)]


def _sender(form: Form, posting: Posting) -> str:
    people = read_people("from", form.all("from"))
    return str(people[0].mailbox) if people else f"postmaster@{posting.path['domain']}"


def _mail_of(form: Form) -> OutgoingMail:
    authors = read_people("from", form.get("from"))
    if len(authors) != 1:
        raise FieldMissing("from", "from parameter is missing")
    to, cc, bcc = (read_people(name, form.all(name)) for name in ("to", "cc", "bcc"))
    if not to:
        raise FieldMissing("to", "to parameter is missing")
    require_few("to, cc and bcc", (*to, *cc, *bcc), MAX_PEOPLE)
    text, headers = form.get("text"), form.beginning("h:")
    template = form.get("template")
    if template is not None:
        text = Template(template, _object(form, "t:variables", "h:X-Mailgun-Variables")).text
        headers.append(("X-Template", template))
    amp = form.get("amp-html")
    require_bodies("text or html", text, form.get("html"), amp)
    headers.extend(("X-Mailgun-Tag", tag) for tag in form.all("o:tag"))
    variables = dict(form.beginning("v:"))
    if variables:
        headers.append(("X-Mailgun-Variables", text_of(variables)))
    scheduled_at = form.get("o:deliverytime")
    if scheduled_at is not None:
        headers.append(("X-Scheduled-At", scheduled_at))
    reply_to = [value for name, value in headers if name.lower() == "reply-to"]
    return OutgoingMail(
        author=authors[0],
        to=to,
        cc=cc,
        bcc=bcc,
        reply_to=read_people("h:Reply-To", reply_to),
        subject=form.get("subject") or "",
        text=text,
        html=form.get("html"),
        other_forms=() if amp is None else (Alternative(AMP, amp),),
        headers=make_headers(
            "h:", [header for header in headers if header[0].lower() != "reply-to"]
        ),
        files=tuple(_file_of(file) for file in form.files),
    )


def _personal(mail: OutgoingMail, person: Person, variables: Mapping[str, Any]) -> OutgoingMail:
    address = str(person.mailbox)
    own = variables.get(address)
    values = {
        f"%recipient.{name}%": text_of(value)
        for name, value in (own.items() if isinstance(own, dict) else ())
    }
    values.setdefault("%recipient%", address)
    return msgspec.structs.replace(
        mail,
        to=(person,),
        cc=(),
        bcc=(),
        subject=substitute(mail.subject, values) or "",
        text=substitute(mail.text, values),
        html=substitute(mail.html, values),
        other_forms=tuple(
            msgspec.structs.replace(alternative, text=substitute(alternative.text, values) or "")
            for alternative in mail.other_forms
        ),
    )


def _object(form: Form, *names: str) -> Mapping[str, Any]:
    for name in names:
        text = form.get(name)
        if text is None:
            continue
        try:
            found: Mapping[str, Any] = decode_json(text, dict[str, Any])
        except ValueError:
            raise InvalidParameter(
                name, f"{name} must be a JSON object; got {text[:40]!r}"
            ) from None
        return found
    return {}


def _file_of(upload: Upload) -> File:
    is_inline = upload.name == "inline"
    content_id = upload.filename if is_inline else ""
    return File(upload.filename, upload.content_type, upload.data, content_id, is_inline=is_inline)


def answer(sent: Submission) -> Reply:
    """Return the Message-ID of the first mail."""
    message_id = sent.outcomes[0].shown["message_id"]
    return json_reply({"id": f"<{message_id}>", "message": "Queued. Thank you."})


def read_key(headers: Mapping[str, str]) -> str:
    """Return the password of ``Authorization: Basic``. The user name is ``api``.

    :raises KeyMissing: there is none.
    """
    name, secret = basic_credentials(headers.get("authorization", ""))
    if name != "api" or not secret:
        raise KeyMissing("send the API key of mailcheck as the password of the user api (Basic)")
    return secret


_EVENTS: Mapping[EventKind, Mapping[str, object]] = {
    EventKind.DELIVERED: {"event": "delivered", "delivery-status": {"code": 250, "message": "OK"}},
    EventKind.BOUNCED: {
        "event": "failed",
        "severity": "permanent",
        "reason": "bounce",
        "delivery-status": {"code": 550, "message": BOUNCE, "enhanced-code": "5.1.1"},
    },
    EventKind.COMPLAINED: {"event": "complained"},
    EventKind.OPENED: {"event": "opened"},
}


def write_event(event: Event) -> object:
    """Return an event of Mailgun with its signature."""
    tags = event.sent.get("o:tag", [])
    timestamp, token = str(event.seconds), event.id.replace("-", "")
    signature = sign_with_hmac(event.secret, timestamp, token)
    headers = {
        "message-id": event.message_id,
        "from": event.author,
        "to": event.recipient,
        "subject": event.subject,
    }
    facts = {
        "id": event.id,
        "timestamp": event.seconds,
        "recipient": event.recipient,
        "message": {"headers": headers},
        "tags": tags if isinstance(tags, list) else [tags],
        "user-variables": {
            name.removeprefix("v:"): value
            for name, value in event.sent.items()
            if name.startswith("v:")
        },
    }
    return {
        "signature": {"timestamp": timestamp, "token": token, "signature": signature},
        "event-data": {**facts, **_EVENTS[event.kind]},
    }


def list_domains(posting: Posting) -> Reply:
    """Return the domain of this server. Mail from any domain is sent."""
    return json_reply({"total_count": 1, "items": [_domain(posting.domain)]})


def tell_domain(posting: Posting) -> Reply:
    """Return the facts of any domain, which is verified."""
    domain = _domain(posting.path["domain"])
    return json_reply({"domain": domain, "receiving_dns_records": [], "sending_dns_records": []})


def _domain(name: str) -> dict[str, object]:
    return {
        "id": name,
        "name": name,
        "state": "active",
        "type": "custom",
        "created_at": CREATED_AT,
        "smtp_login": f"postmaster@{name}",
        "smtp_password": "",
        "spam_action": "disabled",
        "wildcard": False,
        "is_disabled": False,
        "require_tls": False,
        "skip_verification": False,
        "use_automatic_sender_security": False,
        "web_prefix": "email",
        "web_scheme": "http",
    }


STORED_TEXTS = ("body-plain", "body-html", "stripped-text", "stripped-signature", "stripped-html")
"""The fields of a stored mail that have its text."""


def show_stored(fetched: Fetched) -> Reply:
    """Return a stored mail: its fields, or the whole mail for ``Accept: message/rfc2822``."""
    mail = fetched.mail
    received = ReceivedMail(mail.raw_message)
    results = results_of(mail)
    head: dict[str, object] = {**dict(head_fields(mail, received))}
    head["recipients"] = ", ".join(mail.recipients)
    if "message/rfc2822" in fetched.posting.headers.get("accept", ""):
        whole = on_top(received.raw_message, *results).decode("utf-8", "replace")
        return json_reply({**head, "body-mime": whole})
    fields = dict(parsed_fields(mail, received))
    texts = {name: fields[name] for name in STORED_TEXTS if name in fields}
    url = message_url(f"{fetched.base}/mailgun", mail)
    value: dict[str, object] = {
        **head,
        **texts,
        "attachments": stored_files(received, url),
        "content-id-map": stored_ids(received, url),
        "message-headers": header_pairs(received, results),
    }
    return json_reply(value)


def show_file(fetched: Fetched) -> Reply:
    """Return the bytes of a file, which are numbered from 0.

    :raises PathUnknown: the mail has no such file.
    """
    number = fetched.posting.path["number"]
    if not number.isascii() or not number.isdigit() or len(number) > 6:
        raise PathUnknown("the mail has no such attachment")
    return show_part(str(int(number) + 1), fetched.mail)


STORED = "/v3/domains/<domain>/messages/<id>"

_HAS = partial(has_format, InboundFormat.MAILGUN_STORE)

RECEIVING = (
    FetchRoute(STORED, _HAS, show_stored),
    FetchRoute(f"{STORED}/attachments/<number>", _HAS, show_file),
)
"""The routes of Mailgun's API for stored mails."""


def write_error(status: int, code: str, message: str) -> Reply:
    """Return an error of Mailgun, which has no codes."""
    return json_reply({"message": message}, status)


MAILGUN = Provider(
    name="mailgun",
    read_key=read_key,
    routes=(
        SendRoute("/v3/<domain>/messages", read_mails, answer),
        SendRoute("/v3/<domain>/messages.mime", read_mime, answer),
        *(
            AskRoute(f"/{version}/domains{path}", answer)
            for version in ("v3", "v4")
            for path, answer in (("", list_domains), ("/<domain>", tell_domain))
        ),
        *RECEIVING,
    ),
    statuses={**STATUSES_WITHOUT_CODES, InboxFull: (420, "")},
    write_error=write_error,
    write_event=write_event,
    switches=(
        ("mailgun.js (npm)", "`mailgun.client({{username: 'api', key, url: '{base}'}})`"),
        ("django-anymail", "`ANYMAIL = {{'MAILGUN_API_URL': '{base}/v3/'}}`"),
    ),
    support=(
        Support("`POST /v3/{domain}/messages`", Like.SAME, "any domain; as a form or multipart"),
        Support("`POST /v3/{domain}/messages.mime`", Like.SAME, "the mail is stored byte for byte"),
        Support("`h:`, `v:`, `o:tag`, `inline`, `attachment`", Like.SAME),
        Support("`recipient-variables`", Like.SAME, "a mail for each recipient"),
        Support("errors with `message`", Like.CLOSE, "the words differ"),
        Support("`template`, `t:variables`", Like.CLOSE, "the text contains both"),
        Support(
            "`o:deliverytime`", Like.CLOSE, "the mail is delivered at once, with X-Scheduled-At"
        ),
        Support("events", Like.SAME, "signed with HMAC; four kinds"),
        Support(
            "`GET /v3/domains`, `GET /v3/domains/{name}`, the same of version 4",
            Like.CLOSE,
            "each domain is active",
        ),
        Support(
            "`GET /v3/domains/{name}/messages/{key}` and its attachments",
            Like.SAME,
            "mail that a route has brought to an application with `store()`",
        ),
        Support("routes, lists, statistics", Like.NOT_OFFERED),
    ),
    ignored=(
        *("o:testmode", "o:tracking", "o:tracking-clicks", "o:tracking-opens"),
        *("o:tracking-pixel-location-top", "o:dkim", "o:secondary-dkim"),
        *("o:secondary-dkim-public", "o:require-tls", "o:skip-verification", "o:sending-ip"),
        *("o:sending-ip-pool", "o:suppress-headers", "o:archive-to"),
        *("o:deliverytime-optimize-period", "o:time-zone-localize", "t:version", "t:text"),
    ),
)
