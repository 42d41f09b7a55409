"""The requests of Mailpit's API."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.messages import Posted, SubmittedMail
from mailcheck.operations.inbox.keywords import write_keywords
from mailcheck.operations.inbox.open_inbox import ChaosTrigger
from mailcheck.operations.write_mail import (
    File,
    OutgoingMail,
    Person,
    make_headers,
    make_person,
    write_mail,
)
from mailcheck.web.compatible.mailpit.sniffing import sniff_type
from mailcheck.web.compatible.reading import MailRange
from mailcheck.web.providers.bodies import decode_base64
from mailcheck.web.providers.conversion import RequestSize, Stamp
from mailcheck.web.providers.posted import describe_request

OWN_HEADERS = frozenset(
    (
        *("to", "from", "cc", "bcc", "reply-to", "date", "subject", "content-type"),
        "mime-version",
    )
)
"""Header fields that Mailpit does not accept in ``Headers``."""


class SearchMessages(MailRange, frozen=True):
    """A search."""

    query: str = ""
    tz: str = ""


class ChosenMessages(Struct, frozen=True):
    """Messages by id or by a search; all messages without either."""

    ids: list[str] | str = field(name="IDs", default_factory=list)
    search: str = ""
    read: bool = False
    tz: str = ""

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ids."""
        return (self.ids,) if isinstance(self.ids, str) else tuple(self.ids)


class SetTags(Struct, frozen=True, rename="pascal"):
    """The tags of messages, which replace earlier ones."""

    ids: list[str] = field(name="IDs", default_factory=list)
    tags: list[str] = field(default_factory=list)


class RenameTag(Struct, frozen=True, rename="pascal"):
    """The new name of a tag."""

    name: str


class OneMessage(Struct, frozen=True):
    """With the id ``latest``: the search whose newest match is wanted."""

    query: str = ""
    tz: str = ""


class HtmlView(OneMessage, frozen=True):
    """Whether remote pictures are shown."""

    remote: bool = False


class ReleaseTo(OneMessage, frozen=True):
    """The recipients of a released mail."""

    to: list[str] = field(name="To", default_factory=list)


class LinkCheck(OneMessage, frozen=True):
    """Whether redirects are followed. They are not with another text than "true" or "1"."""

    follow: str = ""


class SetChaos(Struct, frozen=True):
    """Triggers of simulated failures; a missing one is switched off."""

    sender: ChaosTrigger | None = None
    recipient: ChaosTrigger | None = None
    authentication: ChaosTrigger | None = None


class NamedAddress(Struct, rename="pascal"):
    """An address with its display name."""

    email: str
    name: str = ""


class SentFile(Struct, rename="pascal"):
    """A file in Base64 or a ``data:`` URL; with a Content-ID it is an inline image."""

    content: str
    filename: str
    content_type: str = ""
    content_id: str = field(name="ContentID", default="")


class SendMessage(Struct, frozen=True):
    """A mail to be received."""

    from_: NamedAddress = field(name="From")
    to: list[NamedAddress] = field(default_factory=list)
    cc: list[NamedAddress] = field(default_factory=list)
    bcc: list[str] = field(default_factory=list)
    reply_to: list[NamedAddress] = field(name="ReplyTo", default_factory=list)
    subject: str = ""
    text: str = ""
    html: str = field(name="HTML", default="")
    headers: Mapping[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    attachments: list[SentFile] = field(default_factory=list)


def mail_of(request: SendMessage, stamp: Stamp) -> SubmittedMail:
    """Return the mail that a request describes. It runs in a worker process.

    :raises InvalidParameter: an address, a header or a file is invalid, or no address is given.
    """
    _require_free_headers(request)
    if not (request.to or request.cc or request.bcc):
        raise InvalidParameter("To", "no recipient is given: send To, Cc or Bcc")
    mail = OutgoingMail(
        author=_person("From", request.from_),
        to=_people("To", request.to),
        cc=_people("Cc", request.cc),
        bcc=tuple(make_person("Bcc", "", address) for address in request.bcc),
        reply_to=_people("ReplyTo", request.reply_to),
        subject=request.subject,
        text=request.text if request.text or not request.html else None,
        html=request.html or None,
        headers=make_headers("Headers", [*request.headers.items(), *_tag_header(request.tags)]),
        files=tuple(map(_file, request.attachments)),
    )
    RequestSize().add(mail)
    return SubmittedMail(
        mail.envelope_sender,
        mail.recipients,
        write_mail(mail, stamp.message_id(0), stamp.sent_at),
        Posted("mailpit", describe_request(_shown(request), "")),
        write_keywords(request.tags),
    )


def _require_free_headers(request: SendMessage) -> None:
    """Check that no header field overwrites one that follows from other fields."""
    taken = {*OWN_HEADERS, "x-tags"} if request.tags else OWN_HEADERS
    for name in request.headers:
        if name.lower() in taken:
            raise InvalidParameter("Headers", f'cannot overwrite header: "{name[:100]}"')


def _shown(request: SendMessage) -> object:
    return {name: getattr(request, name) for name in SendMessage.__struct_fields__}


def _tag_header(tags: Sequence[str]) -> Sequence[tuple[str, str]]:
    return [("X-Tags", ", ".join(tags))] if tags else []


def _person(name: str, given: NamedAddress) -> Person:
    return make_person(name, given.name, given.email)


def _people(name: str, given: Sequence[NamedAddress]) -> tuple[Person, ...]:
    return tuple(_person(name, address) for address in given)


def _file(given: SentFile) -> File:
    data = decode_base64("Attachments.Content", given.content.rpartition(",")[2])
    is_inline = bool(given.content_id)
    kind = given.content_type or sniff_type(data)
    return File(given.filename, kind, data, given.content_id, is_inline=is_inline)
