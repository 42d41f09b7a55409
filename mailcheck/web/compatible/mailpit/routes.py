"""The routes of Mailpit's API."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from mailcheck.api.urls import PublicUrls
from mailcheck.checks.content.raw_parts import Details, read_details, read_raw_fields
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import (
    AttachmentNotFound,
    InvalidParameter,
    MessageNotFound,
)
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import DeliveryId, RandomBytes
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import Session
from mailcheck.core.rights import Scope
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.keywords import Keywords
from mailcheck.operations.inbox.mails import MOST, Mail
from mailcheck.operations.inbox.open_inbox import Chaos
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.operations.inbox.spam import CheckSpam
from mailcheck.operations.inbox.submit_mail import SubmitMail
from mailcheck.web.compatible.facade import (
    NoParameters,
    declare,
    make_facade,
    read_no_key,
    release_note,
    require_release,
    with_notes,
)
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailpit import responses
from mailcheck.web.compatible.mailpit.events import EventSockets
from mailcheck.web.compatible.mailpit.requests import (
    ChosenMessages,
    HtmlView,
    LinkCheck,
    OneMessage,
    ReleaseTo,
    RenameTag,
    SearchMessages,
    SendMessage,
    SetChaos,
    SetTags,
    mail_of,
)
from mailcheck.web.compatible.mailpit.search import NO_INLINE, read_search
from mailcheck.web.compatible.reading import HeldMails, MailRange, read_number
from mailcheck.web.providers.conversion import Conversion, Stamp
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Route
from mailcheck.web.site.bodies import ANY_TYPE, FORM, JSON
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.failures import BAD_REQUEST, FORBIDDEN, NOT_FOUND, Problem, RefusedAsProduct
from mailcheck.web.site.mail_frame import frame_reply
from mailcheck.web.site.replies import Reply, download_reply, json_reply, large_json_reply
from mailcheck.web.site.websockets import WebSocket

READ, WRITE = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,)

TEXT = "text/plain; charset=utf-8"
OK = Reply(200, b"ok", TEXT)
MAILHOG_DONE = Reply(200, b"", "text/json")
"""MailHog's answer to a deletion. Its client for Node.js sends no Accept, and cannot read "ok"."""
FOUND = 302
PROBES = ("/livez", "/readyz")
LATEST = "latest"

PAGE = 50
"""Number of messages of a list without a limit, as Mailpit has it."""

MAX_TOLD = 100
"""Maximum number of messages whose new tags are told one by one."""

OWN_SITES = ("same-origin", "none")
"""Values of Sec-Fetch-Site in a request of this listener's own pages, or of a typed address."""

_RELAY = (
    *("SMTPServer", "ReturnPath", "AllowedRecipients", "BlockedRecipients", "OverrideFrom"),
    "RecipientAllowlist",
)
_NO_CHAOS = "chaos is off: the operator has set [inbox] faults = false"


class Mailpit(Struct, frozen=True):
    """Handles the requests of Mailpit's clients.

    ``pages`` returns the URLs of the dashboard. ``received`` returns the numbers
    of mails on the SMTP listener since the start. ``domain`` is that of new mails.
    """

    _inbox: InboxOperations
    _mails: HeldMails
    _keywords: Keywords
    _hold: Hold
    _mail_bytes: MailBytes
    _conversion: Conversion
    _submit: SubmitMail
    _spam: CheckSpam
    _show: ShowMessage
    _chaos: Chaos
    _sockets: EventSockets
    _turns: PacedQueue
    _pages: Callable[[], PublicUrls]
    _received: Callable[[], Mapping[str, int]]
    _domain: str
    _random_bytes: RandomBytes
    _began: Instant

    async def messages(self, call: Call[MailRange]) -> Reply:
        """GET /api/v1/messages."""
        return await self._list(call, ANY)

    async def search(self, call: Call[SearchMessages]) -> Reply:
        """GET /api/v1/search."""
        return await self._list(call, _require_search(call.request))

    async def message(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}; marks it as read."""
        mail = await self._mail(call)
        if not mail.is_read:
            await self._mark(call.caller, MessageFilter(mails=(mail.id,)), is_read=True)
        details = await self._details(call, mail)
        return await large_json_reply(responses.render_message(mail, details), self._turns)

    async def headers(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/headers."""
        mail = await self._mail(call)
        raw = await self._raw(call, mail)
        work = partial(read_raw_fields, raw)
        fields = await self._mail_bytes.work(work, len(raw), call.caller.account_id)
        return json_reply(responses.render_headers(mail, fields))

    async def raw(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/raw."""
        return Reply(200, await self._raw(call, await self._mail(call)), TEXT)

    async def part(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/part/{part}."""
        mail = await self._mail(call)
        summary = mail.message.summary
        found = await self._inbox.read.attachment(summary.account_id, summary.id, call.path["part"])
        return download_reply(found.data, found.content_type, found.filename)

    async def thumbnail(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/part/{part}/thumb."""
        reply = await self.part(call)
        if not reply.content_type.startswith("image/"):
            raise AttachmentNotFound(f"part {call.path['part']} is not a picture")
        return reply

    async def html_check(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/html-check."""
        message = (await self._mail(call)).message
        found = await self._inbox.check.of_message(message)
        if found.compatibility is None:
            raise RefusedAsProduct("the message has no HTML", BAD_REQUEST)
        return json_reply(responses.render_html_check(found.compatibility, message.content.html))

    async def link_check(self, call: Call[LinkCheck]) -> Reply:
        """GET /api/v1/message/{id}/link-check."""
        message = (await self._mail(call)).message
        checks = await self._inbox.check.of_message(message)
        urls = [link.url for link in checks.links][:100]
        found = await self._inbox.check_links.check(call.caller.account_id, checks, urls, "HEAD")
        follows = call.request.follow in ("true", "1")
        return json_reply(responses.render_links(found, follows))

    async def spam_check(self, call: Call[OneMessage]) -> Reply:
        """GET /api/v1/message/{id}/sa-check."""
        outcome = await self._spam.of_message((await self._mail(call)).message)
        return json_reply(responses.render_spam_check(outcome))

    async def mark(self, call: Call[ChosenMessages]) -> Reply:
        """PUT /api/v1/messages. Without a body it is an error, as with Mailpit."""
        if not call.body.strip():
            raise InvalidParameter("body", "a body is missing: send {} to mark all messages")
        await self._mark(call.caller, _chosen(call.request), is_read=call.request.read)
        return OK

    async def delete(self, call: Call[ChosenMessages]) -> Reply:
        """DELETE /api/v1/messages."""
        await self._delete(call.caller, _chosen(call.request))
        return OK if call.accept or call.body else MAILHOG_DONE

    async def delete_matches(self, call: Call[SearchMessages]) -> Reply:
        """DELETE /api/v1/search."""
        wanted = _require_search(call.request)
        if wanted == ANY:
            raise InvalidParameter("query", "Error: no term of the query has a value")
        await self._delete(call.caller, wanted)
        return OK

    async def send(self, call: Call[SendMessage]) -> Reply:
        """POST /api/v1/send."""
        caller = call.caller
        stamp = Stamp(call.received_at, self._random_bytes(16), self._domain)
        work = partial(mail_of, call.request, stamp)
        mail = await self._conversion.run(work, caller.account_id)
        session = Session(
            call.client_ip,
            "",
            is_extended=True,
            account_id=caller.account_id,
            user_name=caller.user_name,
        )
        (delivery_id,) = await self._submit.submit(caller, session, [mail])
        return json_reply({"ID": delivery_id})

    async def tags(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/tags."""
        return json_reply(list(await self._tags(call.caller)))

    async def set_tags(self, call: Call[SetTags]) -> Reply:
        """PUT /api/v1/tags."""
        caller, mails = call.caller, [DeliveryId(mail_id) for mail_id in call.request.ids]
        await self._keywords.replace(caller, mails, call.request.tags)
        if len(mails) > MAX_TOLD:
            self._sockets.tell_pruned(caller.account_id)
            return OK
        for mail in mails:
            with suppress(MessageNotFound):
                tags = (await self._inbox.mails.mail(caller, mail)).tags
                self._sockets.tell_changed(caller.account_id, mail, tags=tags)
        return OK

    async def rename_tag(self, call: Call[RenameTag]) -> Reply:
        """PUT /api/v1/tags/{tag}."""
        await self._keywords.rename(call.caller, call.path["tag"], call.request.name)
        self._sockets.tell_pruned(call.caller.account_id)
        return OK

    async def delete_tag(self, call: Call[NoParameters]) -> Reply:
        """DELETE /api/v1/tags/{tag}."""
        await self._keywords.remove(call.caller, call.path["tag"])
        self._sockets.tell_pruned(call.caller.account_id)
        return OK

    async def info(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/info."""
        caller = call.caller
        found = await self._inbox.mails.page(caller, ANY, 0, 0)
        overview = await self._inbox.read.overview(caller.account_id, caller.rights.tags)
        return json_reply(
            {
                "Version": responses.own_version(),
                "LatestVersion": responses.own_version(),
                "Database": "",
                "DatabaseSize": overview.state.byte_count,
                "Messages": found.inbox.total,
                "Unread": found.inbox.unread,
                "Tags": await self._tags(caller),
                "RuntimeStats": {
                    "Uptime": (call.received_at - self._began) // SECOND,
                    "Memory": responses.used_memory(),
                    "MessagesDeleted": self._sockets.deleted,
                    **self._received(),
                    "SMTPIgnored": 0,
                },
            }
        )

    async def web_ui(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/webui."""
        return json_reply(
            {
                "Label": "",
                "MessageRelay": {
                    "PreserveMessageIDs": self._inbox.release.is_on,
                    **dict.fromkeys(_RELAY, ""),
                    "Enabled": self._inbox.release.is_on,
                    "ReturnPath": self._inbox.release.sender,
                },
                "SpamAssassin": self._spam.is_on,
                "ChaosEnabled": self._chaos.is_on,
                "DuplicatesIgnored": False,
                "HideDeleteAllButton": False,
            }
        )

    async def release(self, call: Call[ReleaseTo]) -> Reply:
        """POST /api/v1/message/{id}/release."""
        require_release(self._inbox.release, FORBIDDEN)
        mail = await self._mail(call)
        await self._inbox.release.release(mail.message, call.request.to, call.caller.actor)
        return OK

    async def chaos(self, call: Call[NoParameters]) -> Reply:
        """GET /api/v1/chaos."""
        if not self._chaos.is_on:
            raise RefusedAsProduct(_NO_CHAOS, BAD_REQUEST)
        return json_reply(
            {name.title(): trigger for name, trigger in (await self._chaos.triggers()).items()}
        )

    async def set_chaos(self, call: Call[SetChaos]) -> Reply:
        """PUT /api/v1/chaos."""
        if self._chaos.is_on:
            asked = call.request
            await self._chaos.set({name: getattr(asked, name) for name in asked.__struct_fields__})
        return await self.chaos(Call(call.caller, call.received_at, NoParameters()))

    async def page(self, call: Call[OneMessage]) -> Reply:
        """GET /view/{id}: to the HTML, or to the text without HTML."""
        mail = await self._mail(call)
        ending = "html" if mail.message.content.html else "txt"
        return _redirect(f"{call.base}/view/{mail.id}.{ending}")

    async def html(self, call: Call[HtmlView]) -> Reply:
        """GET /view/{id}.html?remote=1. A page of another site cannot ask for remote pictures."""
        mail = await self._mail(call)
        if not mail.message.content.html:
            raise RefusedAsProduct("the message has no HTML", NOT_FOUND)
        is_own = call.headers.get("sec-fetch-site", "none") in OWN_SITES
        allows_remote = call.request.remote and is_own
        return await frame_reply(self._show, mail.message, allows_remote=allows_remote)

    async def text(self, call: Call[OneMessage]) -> Reply:
        """GET /view/{id}.txt."""
        mail = await self._mail(call)
        text = responses.text_of(mail, await self._details(call, mail))
        return Reply(200, text.encode("utf-8", "replace"), TEXT)

    async def events(self, call: Call[NoParameters]) -> Stream:
        """GET /api/events, a WebSocket."""
        return self._sockets.stream(call.caller, WebSocket(call.headers))

    async def home(self, call: Call[NoParameters]) -> Reply:
        """GET /: to the inbox of the project on the dashboard."""
        return _redirect(self._pages().page_url(call.caller.account_id, "/inbox"))

    async def ready(self, call: Call[NoParameters]) -> Reply:
        """GET /livez and /readyz: whether the store answers, which it has done for the caller."""
        return OK

    async def _list(
        self, call: Call[MailRange] | Call[SearchMessages], wanted: MessageFilter
    ) -> Reply:
        # With the limit 0, Mailpit lists all messages.
        most = read_number(call.request.limit, PAGE, 0) or MOST
        found = await self._mails.find(call.caller, wanted, call.request, most)
        tags = list(await self._tags(call.caller))
        return json_reply(responses.render_list(found, call.request.first, tags))

    async def _mail(
        self, call: Call[OneMessage] | Call[HtmlView] | Call[LinkCheck] | Call[ReleaseTo]
    ) -> Mail:
        if call.path["id"] != LATEST:
            return await self._inbox.mails.mail(call.caller, call.path["id"])

        wanted = read_search(call.request.query, call.request.tz)

        async def look() -> Mail | None:
            try:
                return await self._inbox.mails.newest(call.caller, wanted)
            except MessageNotFound:
                return None

        found = await self._hold.until(call.caller, look, bool)
        if found is None:
            raise MessageNotFound
        return found

    async def _raw(self, call: Call[OneMessage], mail: Mail) -> bytes:
        return await self._inbox.read.raw_message(call.caller.account_id, mail.message.summary.id)

    async def _mark(self, caller: Caller, wanted: MessageFilter, *, is_read: bool) -> None:
        """Mark messages, and tell it. Of all messages, Mailpit tells the numbers alone."""
        mails = await self._inbox.mails.mark(caller, wanted, is_read=is_read)
        told = [] if wanted == ANY else mails
        self._sockets.tell_marked(caller.account_id, told, is_read=is_read)

    async def _delete(self, caller: Caller, wanted: MessageFilter) -> None:
        with self._sockets.deleting(caller.account_id):
            mails = await self._inbox.mails.delete(caller, wanted)
        self._sockets.tell_deleted(caller.account_id, mails, is_all=wanted == ANY)

    async def _details(self, call: Call[OneMessage], mail: Mail) -> Details:
        raw = await self._raw(call, mail)
        work = partial(read_details, raw)
        found: Details = await self._mail_bytes.work(work, len(raw), call.caller.account_id)
        return found

    async def _tags(self, caller: Caller) -> dict[str, int]:
        """Return all tags in order, with the numbers of their messages."""
        overview = await self._inbox.read.overview(caller.account_id, caller.rights.tags)
        counts: dict[str, int] = await self._keywords.counts(caller)
        counts |= {tag.tag: tag.message_count for tag in overview.tags if tag.tag}
        return dict(sorted(counts.items(), key=lambda one: one[0].casefold()))


def _require_search(request: SearchMessages) -> MessageFilter:
    """Return the filter of a search.

    :raises InvalidParameter: there is none, or a term is invalid.
    """
    if not request.query.strip():
        raise InvalidParameter("query", "Error: no search query")
    return read_search(request.query, request.tz)


def _chosen(request: ChosenMessages) -> MessageFilter:
    if request.chosen and request.search:
        raise InvalidParameter("Search", "send either IDs or Search, not both")
    if request.chosen:
        return MessageFilter(mails=tuple(map(DeliveryId, request.chosen)))
    return read_search(request.search, request.tz)


def _redirect(url: str) -> Reply:
    return Reply(FOUND, b"", TEXT, {"Location": url})


def write_error(problem: Problem) -> Reply:
    """Return an error as Mailpit does: as a text."""
    return Reply(problem.status, problem.sentence.encode(), TEXT)


def write_json_error(problem: Problem) -> Reply:
    """Return the error of a mail that was not sent."""
    return json_reply({"Error": problem.sentence}, problem.status)


_API, _MESSAGES, _CHAOS = "/api/v1", "/api/v1/messages", "/api/v1/chaos"
_MESSAGE, _TAGS, _SEARCH = "/api/v1/message/<id>", "/api/v1/tags", "/api/v1/search"
_TAG, _VIEW = f"{_TAGS}/<tag>", "/view/<id>"
_LATEST = (
    "ids have another form; `latest` is held until a message arrives. It has `Read` as in earlier "
    "versions, which mailpit-api-client needs"
)
_SENT = "as it was sent, without the fields that Mailpit adds; they are in `headers`"
_OWN_FILTER = "with the SpamAssassin of mailcheck, see `[spamassassin]`"
_FIXED_TAGS = "the +tags of the recipients stay"
_NOTES = {
    f"GET {_MESSAGES}": "held while it is empty; at most 500 messages",
    f"DELETE {_MESSAGES}": (
        "without a body, all messages; an unknown field, an empty list of IDs, or a body that is "
        "not JSON is an error. Mailpit deletes everything"
    ),
    f"GET {_SEARCH}": (
        "held until a message matches; at most 500 messages; invalid dates and sizes are errors, "
        f"and so is `has:inline`: {NO_INLINE}"
    ),
    f"GET {_MESSAGE}/part/<part>/thumb": "the picture in its own size; 404 for other files",
    f"GET {_MESSAGE}/html-check": (
        "over the checks of mailcheck: only features without full support are listed"
    ),
    f"POST {_MESSAGE}/release": release_note(FORBIDDEN),
    f"GET {_TAGS}": "the +tags of the recipients, and the keywords of IMAP",
    f"PUT {_TAGS}": f"{_FIXED_TAGS}; invalid tags are an error",
    f"PUT {_TAG}": _FIXED_TAGS,
    f"DELETE {_TAG}": _FIXED_TAGS,
    f"PUT {_CHAOS}": (
        "for all daemons of a cluster, and for at most a day. The sender is rejected at RCPT; tags "
        "such as `fault.data-451` fail single mails"
    ),
    f"GET {_VIEW}": "leads to the HTML, or to the text without HTML",
    f"GET {_VIEW}.html": "sanitised, without scripts; remote pictures are shown with `remote=1` "
    "only; `embed` is ignored",
    "GET /api/events": (
        "a WebSocket. `update`, `delete` and `truncate` are sent by the daemon that the request "
        "reaches; other changes are `prune`"
    ),
    "GET /": "leads to the dashboard",
    "GET /search": "leads to the dashboard",
}
_ROUTES: Sequence[Route[Any]] = (
    *declare(
        READ,
        costs.FREE,
        ("GET", _MESSAGES, Mailpit.messages, MailRange),
        ("GET", _SEARCH, Mailpit.search, SearchMessages),
        ("GET", _TAGS, Mailpit.tags, NoParameters),
        ("GET", f"{_API}/info", Mailpit.info, NoParameters),
        ("GET", f"{_API}/webui", Mailpit.web_ui, NoParameters),
        ("GET", _CHAOS, Mailpit.chaos, NoParameters),
        ("GET", _VIEW, Mailpit.page, OneMessage),
        ("GET", "/api/events", Mailpit.events, NoParameters),
        ("GET", "/", Mailpit.home, NoParameters),
        ("GET", "/search", Mailpit.home, NoParameters),
        *(("GET", path, Mailpit.ready, NoParameters) for path in PROBES),
    ),
    *declare(
        WRITE,
        costs.FREE,
        ("PUT", _MESSAGES, Mailpit.mark, ChosenMessages),
        ("DELETE", _MESSAGES, Mailpit.delete, ChosenMessages),
        ("DELETE", _SEARCH, Mailpit.delete_matches, SearchMessages),
        ("PUT", _TAGS, Mailpit.set_tags, SetTags),
        ("PUT", _TAG, Mailpit.rename_tag, RenameTag),
        ("DELETE", _TAG, Mailpit.delete_tag, NoParameters),
    ),
    *declare(
        READ,
        costs.CONTENT,
        ("GET", f"{_MESSAGE}/headers", Mailpit.headers, OneMessage),
        ("GET", f"{_MESSAGE}/part/<part>", Mailpit.part, OneMessage),
        ("GET", f"{_MESSAGE}/part/<part>/thumb", Mailpit.thumbnail, OneMessage),
        ("GET", f"{_MESSAGE}/html-check", Mailpit.html_check, OneMessage),
        ("GET", f"{_VIEW}.html", Mailpit.html, HtmlView),
        ("GET", f"{_VIEW}.txt", Mailpit.text, OneMessage),
    ),
    Route("PUT", _CHAOS, Mailpit.set_chaos, SetChaos, costs.CHAOS, scopes=WRITE),
    Route("POST", f"{_MESSAGE}/release", Mailpit.release, ReleaseTo, costs.RELEASE, scopes=WRITE),
    Route(
        "GET", f"{_MESSAGE}/link-check", Mailpit.link_check, LinkCheck, costs.CONTENT, scopes=WRITE
    ),
    Route("GET", _MESSAGE, Mailpit.message, OneMessage, costs.CONTENT, scopes=READ, note=_LATEST),
    Route("GET", f"{_MESSAGE}/raw", Mailpit.raw, OneMessage, costs.FREE, scopes=READ, note=_SENT),
    Route(
        "GET",
        f"{_MESSAGE}/sa-check",
        Mailpit.spam_check,
        OneMessage,
        costs.FREE,
        scopes=READ,
        note=_OWN_FILTER,
    ),
    Route(
        "POST",
        f"{_API}/send",
        Mailpit.send,
        SendMessage,
        costs.POSTED_MAIL,
        scopes=WRITE,
        write_error=write_json_error,
    ),
)


MAILPIT = make_facade(
    "mailpit",
    "Mailpit",
    "",
    with_notes(_ROUTES, _NOTES),
    read_no_key,
    write_error=write_error,
    reads=(JSON, FORM, ANY_TYPE),
)
"""A body is JSON unless it is a form, whatever its type is, as for Mailpit itself."""
