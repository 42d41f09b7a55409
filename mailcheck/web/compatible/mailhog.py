"""The API of MailHog, on the listener of Mailpit, whose paths it shares."""

from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from functools import partial
from typing import Any

from msgspec import Struct

from mailcheck.checks.content.raw_parts import RawPart, read_raw_parts
from mailcheck.core.conditions import FROM, WITH_WORDS, Term, Where, sent_to
from mailcheck.core.errors import AttachmentNotFound, InvalidParameter, MessageNotFound
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import SECOND, format_instant
from mailcheck.core.rights import Scope
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.mails import Mail
from mailcheck.operations.inbox.open_inbox import DEFAULT_TRIGGERS, Chaos, ChaosTrigger
from mailcheck.web.compatible.facade import (
    SENDS_NOTHING,
    NoParameters,
    make_facade,
    not_offered,
    read_no_key,
    release_note,
    require_release,
    with_notes,
)
from mailcheck.web.compatible.reading import HeldMails, MailRange, group_fields, read_number
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Route
from mailcheck.web.site.bodies import ANY_TYPE, FORM, JSON
from mailcheck.web.site.failures import BAD_REQUEST, FORBIDDEN, NOT_FOUND, Problem, RefusedAsProduct
from mailcheck.web.site.replies import Reply, download_reply, json_reply

READ, WRITE = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,)

PAGE, MOST = 50, 250
"""Number of messages of a list without a limit, and of the longest list."""

NOTHING, CREATED = Reply(200, b"", "text/json"), Reply(201, b"", "text/json")
"""The answers without a body, which clients cannot read as JSON."""

_KINDS: Mapping[str, Callable[[str], Where]] = {
    "from": partial(Term, FROM),
    "to": sent_to,
    "containing": partial(Term, WITH_WORDS),
}


class SearchMessages(MailRange, frozen=True):
    """A search by sender, recipient or content."""

    kind: str = ""
    query: str = ""


class Jim(Struct, frozen=True, rename="pascal"):
    """The chances of simulated failures, from 0 to 1. The last five are always the same here."""

    reject_sender_chance: float = 0.05
    reject_recipient_chance: float = 0.05
    reject_auth_chance: float = 0.05
    disconnect_chance: float = 0
    accept_chance: float = 1
    link_speed_affect: float = 0
    link_speed_min: float = 0
    link_speed_max: float = 0


class ReleaseTo(Struct, frozen=True):
    """The recipient of a released mail. The server that MailHog's clients name is ignored."""

    email: str = ""


class MailHog(Struct, frozen=True):
    """Handles the requests of MailHog's clients."""

    _inbox: InboxOperations
    _mail_bytes: MailBytes
    _mails: HeldMails
    _chaos: Chaos
    _domain: str

    async def messages(self, call: Call[MailRange]) -> Reply:
        """GET /api/v2/messages."""
        return await self._list(call, ANY)

    async def search(self, call: Call[SearchMessages]) -> Reply:
        """GET /api/v2/search."""
        asked = call.request
        if asked.kind not in _KINDS:
            raise InvalidParameter(
                "kind", f"kind must be one of {', '.join(_KINDS)}; got {asked.kind[:80]!r}"
            )
        if not asked.query:
            raise InvalidParameter("query", "query is missing: send what to search for")
        return await self._list(call, MessageFilter(search=(_KINDS[asked.kind](asked.query),)))

    async def message(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/messages/{id}: null for an unknown id."""
        try:
            mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        except MessageNotFound:
            return json_reply(None)
        return json_reply(await self._render(mail))

    async def download(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/messages/{id}/download."""
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        return download_reply(await self._raw(mail), "message/rfc822", f"{mail.id}.eml")

    async def download_part(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/messages/{id}/mime/part/{part}/download: a part of the first level."""
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        parts, number = (await self._read(mail, await self._raw(mail))).parts, call.path["part"]
        if not number.isdecimal() or int(number[:9]) >= len(parts):
            raise AttachmentNotFound(f"the message has no part {number[:80]!r}")
        body = parts[int(number)].body.encode("utf-8", "replace")
        return download_reply(body, "application/octet-stream", f"{mail.id}-part-{number}")

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/v1/messages/{id}. An unknown id is no error."""
        wanted = MessageFilter(mails=(DeliveryId(call.path["id"]),))
        await self._inbox.mails.delete(call.caller, wanted)
        return NOTHING

    async def release(self, call: Call[ReleaseTo]) -> Reply:
        """POST /api/v1/messages/{id}/release: without a body, as MailHog answers."""
        require_release(self._inbox.release, FORBIDDEN)
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        to = (call.request.email,)
        await self._inbox.release.release(mail.message, to, call.caller.actor)
        return NOTHING

    async def jim(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v2/jim: 404 while no failure is simulated."""
        chances = await self._chances()
        self._require_jim(is_there=any(chances.values()))
        return json_reply(Jim(chances["sender"], chances["recipient"], chances["authentication"]))

    async def start_jim(self, call: Call[Jim]) -> Reply:
        """POST /api/v2/jim: 400 while Jim is there."""
        if any((await self._chances()).values()):
            raise RefusedAsProduct("Jim is enabled already: change him with PUT", BAD_REQUEST)
        await self._set(call.request)
        return CREATED

    async def change_jim(self, call: Call[Jim]) -> Reply:
        """PUT /api/v2/jim."""
        self._require_jim(is_there=any((await self._chances()).values()))
        await self._set(call.request)
        return NOTHING

    async def stop_jim(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/v2/jim."""
        self._require_jim(is_there=any((await self._chances()).values()))
        await self._chaos.set({})
        return NOTHING

    async def _chances(self) -> dict[str, float]:
        triggers = await self._chaos.triggers() if self._chaos.is_on else {}
        return {name: trigger.probability / 100 for name, trigger in triggers.items()}

    def _require_jim(self, *, is_there: bool) -> None:
        if not is_there:
            raise RefusedAsProduct("Jim is not enabled", NOT_FOUND)

    async def _set(self, asked: Jim) -> None:
        chances = {
            "sender": asked.reject_sender_chance,
            "recipient": asked.reject_recipient_chance,
            "authentication": asked.reject_auth_chance,
        }
        await self._chaos.set(
            {
                name: ChaosTrigger(DEFAULT_TRIGGERS[name].error_code, round(100 * chance))
                for name, chance in chances.items()
            }
        )

    async def _list(
        self, call: Call[MailRange] | Call[SearchMessages], wanted: MessageFilter
    ) -> Reply:
        most = min(read_number(call.request.limit, PAGE, 1), MOST)
        found = await self._mails.find(call.caller, wanted, call.request, most)
        items = [await self._render(mail) for mail in found.mails]
        return json_reply(
            {
                "total": found.matches.total,
                "count": len(items),
                "start": call.request.first,
                "items": items,
            }
        )

    async def _raw(self, mail: Mail) -> bytes:
        summary = mail.message.summary
        return await self._inbox.read.raw_message(summary.account_id, summary.id)

    async def _read(self, mail: Mail, raw: bytes) -> RawPart:
        work, account_id = partial(read_raw_parts, raw), mail.message.summary.account_id
        found: RawPart = await self._mail_bytes.work(work, len(raw), account_id)
        return found

    async def _render(self, mail: Mail) -> Mapping[str, object]:
        raw = await self._raw(mail)
        root = await self._read(mail, raw)
        sender = mail.message.envelope_sender
        recipients = [message.recipient for message in mail.messages]
        content = _content(root)
        return {
            "ID": mail.id,
            "From": _path(sender),
            "To": [_path(recipient) for recipient in recipients],
            "Content": {**content, "Headers": self._headers(mail, root), "MIME": None},
            "Created": format_instant(mail.received_at),
            "MIME": content["MIME"],
            "Raw": {
                "From": sender,
                "To": recipients,
                "Data": raw.decode("utf-8", "replace").removesuffix("\r\n"),
                "Helo": mail.message.session.helo_name,
            },
        }

    def _headers(self, mail: Mail, root: RawPart) -> Mapping[str, list[str]]:
        """Return the header with the fields that MailHog adds at its end."""
        helo, at = mail.message.session.helo_name, formatdate(mail.received_at / SECOND)
        received = f"from {helo} by {self._domain} (mailcheck)\r\n          id {mail.id}; {at}"
        found = group_fields(root.fields)
        names = {name.lower(): name for name in found}
        if "message-id" not in names:
            found["Message-ID"] = [mail.id]
        for name, value in (
            ("Received", received),
            ("Return-Path", f"<{mail.message.envelope_sender}>"),
        ):
            found.setdefault(names.get(name.lower(), name), []).append(value)
        return found


def _path(address: str) -> Mapping[str, object]:
    """Render an address of the envelope."""
    mailbox, _, domain = address.rpartition("@")
    return {"Relays": None, "Mailbox": mailbox, "Domain": domain, "Params": ""}


def _content(part: RawPart) -> Mapping[str, object]:
    """Render a mail or a part of it, as it was sent: encoded."""
    return {
        "Headers": group_fields(part.fields),
        "Body": part.body,
        "Size": part.size,
        "MIME": _mime(part),
    }


def _mime(part: RawPart) -> Mapping[str, object] | None:
    """Render the parts of a multipart."""
    return {"Parts": [_content(inner) for inner in part.parts]} if part.parts else None


def write_error(problem: Problem) -> Reply:
    """Return an error as JSON, since the clients parse every body."""
    return json_reply({"error": problem.sentence}, problem.status)


_MESSAGE = "/api/v1/messages/<id>"
_PART = f"{_MESSAGE}/mime/part/<part>/download"
_SEARCH, _JIM = "/api/v2/search", "/api/v2/jim"
_EVENTS = "use the WebSocket /api/events, or GET /api/v1/inbox/events"
_HELD = (
    "held while it is empty; a header field that occurs several times has all its values. "
    "`GET` and `DELETE /api/v1/messages` are those of Mailpit"
)
_NOTES = {
    f"GET {_SEARCH}": (
        "held until a message matches; `containing` looks at subject, addresses, text and names of "
        "files"
    ),
    f"POST {_JIM}": "the chances to reject; connections are not closed or slowed down",
    f"PUT {_JIM}": "as POST",
    f"GET {_PART}": "the body alone, without header fields of the part as those of HTTP",
    f"POST {_MESSAGE}/release": release_note(
        FORBIDDEN, "; the relay is that of the operator: `host`, `port` and the login are ignored"
    ),
}
_ROUTES: Sequence[Route[Any]] = (
    Route(
        "GET",
        "/api/v2/messages",
        MailHog.messages,
        MailRange,
        costs.WHOLE_MAILS,
        scopes=READ,
        note=_HELD,
    ),
    Route("GET", _SEARCH, MailHog.search, SearchMessages, costs.WHOLE_MAILS, scopes=READ),
    Route("GET", _MESSAGE, MailHog.message, NoParameters, costs.CONTENT, scopes=READ),
    Route("DELETE", _MESSAGE, MailHog.delete, NoParameters, costs.FREE, scopes=WRITE),
    Route("GET", f"{_MESSAGE}/download", MailHog.download, NoParameters, costs.FREE, scopes=READ),
    Route("GET", _PART, MailHog.download_part, NoParameters, costs.CONTENT, scopes=READ),
    Route("POST", f"{_MESSAGE}/release", MailHog.release, ReleaseTo, costs.RELEASE, scopes=WRITE),
    Route("GET", _JIM, MailHog.jim, NoParameters, costs.FREE, scopes=READ),
    Route("POST", _JIM, MailHog.start_jim, Jim, costs.CHAOS, scopes=WRITE),
    Route("PUT", _JIM, MailHog.change_jim, Jim, costs.CHAOS, scopes=WRITE),
    Route("DELETE", _JIM, MailHog.stop_jim, NoParameters, costs.CHAOS, scopes=WRITE),
    not_offered("GET", "/api/v1/events", _EVENTS),
    not_offered("GET", "/api/v2/websocket", _EVENTS),
    not_offered("GET", "/api/v2/outgoing-smtp", SENDS_NOTHING),
)

MAILHOG = make_facade(
    "mailhog",
    "MailHog",
    "",
    with_notes(_ROUTES, _NOTES),
    read_no_key,
    write_error=write_error,
    reads=(JSON, FORM, ANY_TYPE),
)
"""A body is JSON unless it is a form, whatever its type is, as for MailHog itself."""
