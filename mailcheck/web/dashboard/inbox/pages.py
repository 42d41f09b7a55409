"""The page of the inbox: the list of messages, and the actions on it."""

from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.requests.fields import CURSOR, FLAG, INTEGER, TAG
from mailcheck.core.accounts import retention_of
from mailcheck.core.addresses import explain_bad_tag, join_subaddress
from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MessageId
from mailcheck.core.instants import HOUR, SECOND, Instant
from mailcheck.core.messages import UNDO_TIME, MessageSummary
from mailcheck.core.searches import EXAMPLES
from mailcheck.core.searches import PARAMETER as SEARCH_PARAMETER
from mailcheck.operations.inbox.messages import (
    LOOKED_THROUGH,
    DeleteMessages,
    Deletion,
    MessageList,
    ReadInbox,
    Surroundings,
)
from mailcheck.operations.inbox.send_sample import SendSample
from mailcheck.web.dashboard.inbox.view import (
    LARGEST_PAGE,
    SEARCH_OFFERS,
    SHORTCUTS,
    SHOWN_TAGS,
    ListRequest,
    list_tags,
    read_list_request,
    read_without_search,
    write_range,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit, local_path, prefers_html
from mailcheck.web.site import costs
from mailcheck.web.site.failures import status_of
from mailcheck.web.site.replies import Reply, json_reply

LATEST = 1 << 53
"""Largest time, in milliseconds, and largest number that a form may contain."""


class InboxFacts(Struct, frozen=True):
    """Facts about the inbox. ``mail_port`` is `None` without SMTP; ``retention`` is in ms."""

    domain: str
    mail_port: int | None
    retention: int


class InboxList(Struct, frozen=True):
    """Reads the list of messages and returns the values of its template."""

    _read: ReadInbox
    _facts: InboxFacts

    async def values(self, visit: Visit, opened: MessageSummary | None = None) -> dict[str, Any]:
        """Read the list for ``?tag=&to=&q=&limit=&page=&for=<tag of a new address>``.

        A page number beyond the end shows the last page.

        :param opened: the message beside the list. Its neighbours are included, and the page is
            the one that has it.
        :returns: the template values, with the HTTP ``status`` of a page with the list only.
        """
        account = visit.account
        overview = await self._read.overview(account.id)
        search_problem, status = "", 200
        newer = older = None
        try:
            request = read_list_request(visit.query, visit.asked_at)
            if opened is None:
                messages = await self._read.page_or_last(
                    account.id, request.wanted, request.limit, request.page
                )
            else:
                around = await self.around(visit, request, opened)
                messages, newer, older = around.listed, around.newer, around.older
        except InvalidParameter as failure:
            if failure.name != SEARCH_PARAMETER:
                raise
            search_problem = str(failure).removeprefix(f"{SEARCH_PARAMETER}: ")
            status = status_of(failure)
            request = read_without_search(visit.query)
            messages = MessageList((), None, 0, overview.state.last_position)
        request = replace(request, page=messages.page)
        unread = 0
        if not request.written:  # counting is too expensive for a search
            unread = await self._read.count_unread(account.id, request.wanted)
        return {
            "status": status,
            "request": request,
            "opened": None if opened is None else opened.id,
            "newer": newer,
            "older": older,
            "search_problem": search_problem,
            "search_examples": EXAMPLES,
            "search_offers": SEARCH_OFFERS,
            "range": write_range(request, messages),
            "messages": messages,
            "cursor": format_cursor(messages.cursor),
            "tags": list_tags(overview, request.wanted),
            "shown_tags": SHOWN_TAGS,
            "listed_tags": len(overview.tags),
            "tag_total": overview.tag_total,
            "shortcuts": SHORTCUTS,
            **self._address(visit, request),
            **_selection(visit, messages),
            "unread": unread,
            "has_more_unread": unread == LOOKED_THROUGH,
        }

    async def around(
        self, visit: Visit, request: ListRequest, opened: MessageSummary
    ) -> Surroundings:
        """Return the page of a list that has a message, with the message's neighbours."""
        return await self._read.page_around(
            visit.account.id, request.wanted, request.limit, opened.position
        )

    def _address(self, visit: Visit, request: ListRequest) -> dict[str, Any]:
        """Return the inbox address with the requested tag, and the mail server."""
        mailbox, domain = visit.account.mailbox_name, self._facts.domain
        tag = visit.query.text("for") or request.wanted.tag or ""
        problem = explain_bad_tag(tag)
        mail_server = None  # SMTP is disabled
        if self._facts.mail_port is not None:
            host = urlsplit(visit.urls.public_url).hostname or "localhost"
            mail_server = f"{f'[{host}]' if ':' in host else host}:{self._facts.mail_port}"
        retention = retention_of(visit.account.retention_hours, self._facts.retention)
        return {
            "mailbox": mailbox,
            "domain": domain,
            "tag": tag,
            "tag_problem": problem,
            "address": join_subaddress(mailbox, "" if problem else tag, domain),
            "mail_server": mail_server,
            "retention_hours": f"{retention / HOUR:g}",
        }


def _selection(visit: Visit, messages: MessageList) -> dict[str, Any]:
    """Return whether all messages are selected, and the deletion that can be undone."""
    deleted_at = visit.query.value("undo", INTEGER, 0, 0, LATEST)
    can_undo = deleted_at > visit.asked_at - UNDO_TIME
    return {
        "is_all_selected": bool(messages.messages) and visit.query.value("all", FLAG, False),
        "deleted_at": deleted_at if can_undo else None,
        "deleted_count": visit.query.value("deleted", INTEGER, 0, 0, LATEST),
        "undo_seconds": UNDO_TIME // SECOND,
    }


class InboxPages(Struct, frozen=True):
    """The list of messages, and the actions on all or some of them."""

    _inbox: InboxList
    _read: ReadInbox
    _delete: DeleteMessages
    _sample: SendSample
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/inbox", self.show, costs.FREE),
            Page("POST", "/inbox/sample", self.send_sample, costs.MAIL),
            Page("POST", "/inbox/read", self.mark_read, costs.FREE),
            Page("POST", "/inbox/delete", self.delete, costs.FREE),
            Page("POST", "/inbox/undo", self.undo, costs.FREE),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /inbox?tag=&to=&q=&limit=&page=&for=<tag of an address>."""
        return self._renderer.page(
            visit, "inbox.html", message=None, **await self._inbox.values(visit)
        )

    async def send_sample(self, visit: Visit) -> Reply:
        """POST /inbox/sample: tag, next. ``next`` is the path of another page to return to."""
        tag = visit.form.value("tag", TAG) or ""
        await self._sample.send(visit.account, tag)
        if visit.form.text("next"):
            return redirect(visit, local_path(visit.form.text("next")), done="sample-sent")
        more = {"tag": tag} if tag else {}
        return redirect(visit, "/inbox", done="sample-sent", **more)

    async def mark_read(self, visit: Visit) -> Reply:
        """POST /inbox/read: ``id``, repeatable; or ``all`` or no id, the filters and ``until``.

        Messages that arrived after the list was shown stay unread.
        """
        request, ids = _shown(visit), _selected(visit)
        if ids:
            await self._read.mark_read(visit.account.id, ids)
        else:
            await self._read.mark_all(visit.account.id, request.wanted)
        return redirect(visit, f"/inbox{request.here(done='messages-read')}")

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbox/delete: ``id``, repeatable; or ``all``, the filters and ``until``.

        Messages that arrived after the list was shown are kept. For `UNDO_TIME` the deletion can
        be undone.
        """
        request, ids, account = _shown(visit), _selected(visit), visit.account
        if ids:
            deletion = await self._delete.some_with_undo(account.id, ids)
        elif _are_all_selected(visit):
            deletion = await self._delete.matching_with_undo(account.id, request.wanted)
        else:
            return redirect(visit, f"/inbox{request.here(done='nothing-selected')}")
        if not prefers_html(visit.request):
            return json_reply({"deletedAt": deletion.deleted_at, "count": deletion.count})
        return redirect(visit, f"/inbox{request.here(**undo_query(deletion))}")

    async def undo(self, visit: Visit) -> Reply:
        """POST /inbox/undo: ``deleted``, the time of the deletion, and the filters of the list."""
        deleted_at = visit.form.value("deleted", INTEGER, 0, 0, LATEST)
        count = await self._delete.undo(visit.account.id, Instant(deleted_at))
        done = "deletion-undone" if count else "undo-too-late"
        if not prefers_html(visit.request):
            return json_reply({"count": count})
        return redirect(visit, f"/inbox{read_without_search(visit.form).here(done=done)}")


def undo_query(deletion: Deletion) -> dict[str, int]:
    """Return the query parameters with which the inbox offers to undo a deletion."""
    return {"undo": deletion.deleted_at, "deleted": deletion.count}


def _selected(visit: Visit) -> tuple[MessageId, ...]:
    """Return the selected messages in a form, or none if all of the list are selected."""
    if _are_all_selected(visit):
        return ()
    return tuple(map(MessageId, visit.form.texts("id", LARGEST_PAGE)))


def _are_all_selected(visit: Visit) -> bool:
    """Return whether all messages of the list are selected; an empty value selects none."""
    return visit.form.text("all") == "true"


def _shown(visit: Visit) -> ListRequest:
    """Return the request of the list in a form, limited to the messages that it showed."""
    request = read_list_request(visit.form, visit.asked_at)
    return replace(request, wanted=replace(request.wanted, up_to=visit.form.value("until", CURSOR)))
