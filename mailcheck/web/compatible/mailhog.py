"""The API of MailHog, on the listener of Mailpit, whose paths it shares."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from mailcheck.checks.content.raw_parts import RawPart, read_raw_parts
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import ANY, Field, MessageFilter, Search, Term
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.instants import format_instant
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
    with_notes,
)
from mailcheck.web.compatible.reading import HeldMails, MailRange, group_fields
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Route
from mailcheck.web.site.bodies import ANY_TYPE, FORM, JSON
from mailcheck.web.site.failures import NOT_FOUND, Problem, RefusedAsProduct
from mailcheck.web.site.replies import Reply, download_reply, json_reply

READ, WRITE = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,)

_KINDS = {
    "from": Field.FROM,
    "to": Field.ANY_RECIPIENT,
    "containing": Field.ANYWHERE,
}


class SearchMessages(MailRange, frozen=True):
    """A search by sender, recipient or content."""

    kind: str = "containing"
    query: str = ""


class Jim(Struct, frozen=True, rename="pascal"):
    """The chances of simulated failures, from 0 to 1. Other chances of MailHog are ignored."""

    reject_sender_chance: float = 0.05
    reject_recipient_chance: float = 0.05
    reject_auth_chance: float = 0.05


class MailHog(Struct, frozen=True):
    """Handles the requests of MailHog's clients."""

    _inbox: InboxOperations
    _mail_bytes: MailBytes
    _mails: HeldMails
    _chaos: Chaos

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
        wanted = ANY
        if asked.query:
            wanted = MessageFilter(
                search=Search(asked.query, (Term(_KINDS[asked.kind], asked.query),))
            )
        return await self._list(call, wanted)

    async def message(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/messages/{id}."""
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        return json_reply(await self._render(mail))

    async def download(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/messages/{id}/download."""
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        return download_reply(await self._raw(mail), "message/rfc822", f"{mail.id}.eml")

    async def delete(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/v1/messages/{id}."""
        mail = await self._inbox.mails.mail(call.caller, call.path["id"])
        await self._inbox.mails.delete(call.caller, MessageFilter(mails=(DeliveryId(mail.id),)))
        return json_reply({})

    async def jim(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v2/jim: 404 while no failure is simulated."""
        triggers = await self._chaos.triggers()
        chances = {name: trigger.probability / 100 for name, trigger in triggers.items()}
        if not self._chaos.is_on or not any(chances.values()):
            raise RefusedAsProduct("Jim is not enabled", NOT_FOUND)
        return json_reply(Jim(chances["sender"], chances["recipient"], chances["authentication"]))

    async def set_jim(self, call: Call[Jim]) -> Reply:
        """POST and PUT /api/v2/jim."""
        asked = call.request
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
        return json_reply({})

    async def stop_jim(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/v2/jim."""
        await self._chaos.set({})
        return json_reply({})

    async def _list(
        self, call: Call[MailRange] | Call[SearchMessages], wanted: MessageFilter
    ) -> Reply:
        found = await self._mails.find(call.caller, wanted, call.request)
        items = [await self._render(one) for one in found.mails]
        return json_reply(
            {
                "total": found.matches.total,
                "count": len(items),
                "start": call.request.start,
                "items": items,
            }
        )

    async def _raw(self, mail: Mail) -> bytes:
        summary = mail.message.summary
        return await self._inbox.read.raw_message(summary.account_id, summary.id)

    async def _render(self, mail: Mail) -> Mapping[str, object]:
        raw = await self._raw(mail)
        work = partial(read_raw_parts, raw)
        account_id = mail.message.summary.account_id
        root: RawPart = await self._mail_bytes.work(work, len(raw), account_id)
        sender, recipients = mail.message.envelope_sender, [one.recipient for one in mail.messages]
        return {
            "ID": mail.id,
            "From": _path(sender),
            "To": [_path(one) for one in recipients],
            "Content": {**_content(root), "MIME": None},
            "Created": format_instant(mail.received_at),
            "MIME": _mime(root),
            "Raw": {
                "From": sender,
                "To": recipients,
                "Data": raw.decode("utf-8", "replace"),
                "Helo": mail.message.session.helo_name,
            },
        }


def _path(address: str) -> Mapping[str, object]:
    """Render an address of the envelope."""
    mailbox, _, domain = address.rpartition("@")
    return {"Relays": None, "Mailbox": mailbox, "Domain": domain, "Params": ""}


def _content(part: RawPart) -> Mapping[str, object]:
    """Render a mail or a part of it, as it was sent: encoded."""
    return {
        "Headers": group_fields(part.fields),
        "Body": part.body,
        "Size": len(part.body),
        "MIME": _mime(part),
    }


def _mime(part: RawPart) -> Mapping[str, object] | None:
    """Render the parts of a multipart."""
    return {"Parts": [_content(one) for one in part.parts]} if part.parts else None


def write_error(problem: Problem) -> Reply:
    """Return an error as JSON, since the clients parse every body."""
    return json_reply({"error": problem.sentence}, problem.status)


_MESSAGE = "/api/v1/messages/<id>"

_SEARCH, _JIM = "/api/v2/search", "/api/v2/jim"
_EVENTS = "use the WebSocket /api/events, or GET /api/v1/inbox/events"
_HELD = "held while it is empty"
_NOTES = {
    f"GET {_SEARCH}": (
        "held until a message matches; `containing` looks at subject, addresses, text and names of "
        "files"
    ),
    f"POST {_JIM}": "the chances to reject; connections are not closed or slowed down",
    f"PUT {_JIM}": "as POST",
}
_ROUTES: Sequence[Route[Any]] = (
    Route(
        "GET", "/api/v2/messages", MailHog.messages, MailRange, costs.WHOLE_MAILS, READ, note=_HELD
    ),
    Route("GET", _SEARCH, MailHog.search, SearchMessages, costs.WHOLE_MAILS, READ),
    Route("GET", _MESSAGE, MailHog.message, NoParameters, costs.CONTENT, READ),
    Route("DELETE", _MESSAGE, MailHog.delete, NoParameters, costs.FREE, WRITE),
    Route("GET", f"{_MESSAGE}/download", MailHog.download, NoParameters, costs.FREE, READ),
    not_offered("POST", f"{_MESSAGE}/release", SENDS_NOTHING, 403),
    Route("GET", _JIM, MailHog.jim, NoParameters, costs.FREE, READ),
    Route("POST", _JIM, MailHog.set_jim, Jim, costs.CHAOS, WRITE),
    Route("PUT", _JIM, MailHog.set_jim, Jim, costs.CHAOS, WRITE),
    Route("DELETE", _JIM, MailHog.stop_jim, NoParameters, costs.CHAOS, WRITE),
    not_offered("GET", "/api/v1/events", _EVENTS),
    not_offered("GET", "/api/v2/outgoing-smtp", SENDS_NOTHING),
)

MAILHOG = make_facade(
    "mailhog",
    "MailHog",
    "",
    with_notes(_ROUTES, _NOTES),
    read_no_key,
    write_error,
    (JSON, FORM, ANY_TYPE),
)
"""A body is JSON unless it is a form, whatever its type is, as for MailHog itself."""
