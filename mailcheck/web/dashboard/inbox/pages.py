"""The page of the inbox: the list of messages, and the actions on it."""

from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.requests.fields import CURSOR, TAG
from mailcheck.core.accounts import retention_of
from mailcheck.core.addresses import explain_bad_tag, join_subaddress
from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import EXAMPLES
from mailcheck.core.filters import PARAMETER as SEARCH_PARAMETER
from mailcheck.core.identifiers import MessageId
from mailcheck.core.instants import HOUR
from mailcheck.core.messages import ListedMessage
from mailcheck.operations.inbox.messages import (
    LOOKED_THROUGH,
    DeleteMessages,
    MessageList,
    ReadInbox,
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
from mailcheck.web.dashboard.visits import Page, Visit, local_path
from mailcheck.web.site.errors import status_of
from mailcheck.web.site.replies import Reply


class InboxFacts(Struct, frozen=True):
    """Facts about the inbox. ``mail_port`` is `None` without SMTP; ``retention`` is in ms."""

    domain: str
    mail_port: int | None
    retention: int


class InboxList(Struct, frozen=True):
    """Reads the list of messages and returns the values of its template."""

    _read: ReadInbox
    _facts: InboxFacts

    async def values(self, visit: Visit, opened: MessageId | None = None) -> dict[str, Any]:
        """Read the list for ``?tag=&to=&q=&limit=&page=&for=<tag of a new address>``.

        :param opened: the message beside the list; its neighbours are included.
        :returns: the template values, with the HTTP ``status`` of a page with the list only.
        """
        account = visit.account
        overview = await self._read.overview(account.id)
        search_problem, status = "", 200
        try:
            request = read_list_request(visit.query, visit.asked_at)
            messages = await self._read.page(
                account.id, request.wanted, request.limit, request.page
            )
        except InvalidParameter as failure:
            if failure.name != SEARCH_PARAMETER:
                raise
            search_problem, status = str(failure), status_of(failure)
            request = read_without_search(visit.query)
            messages = MessageList((), None, 0, overview.state.last_position)
        newer, older = _neighbours(messages.messages, opened)
        unread = 0
        if not request.written:  # counting is too expensive for a search
            unread = await self._read.count_unread(account.id, request.wanted)
        return {
            "status": status,
            "request": request,
            "opened": opened,
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
            "unread": unread,
            "has_more_unread": unread == LOOKED_THROUGH,
        }

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


def _neighbours(
    messages: tuple[ListedMessage, ...], opened: MessageId | None
) -> tuple[MessageId | None, MessageId | None]:
    """Return the messages before and after the opened one on this page of the list."""
    ids = [one.summary.id for one in messages]
    if opened not in ids:
        return None, None
    index = ids.index(opened)
    newer = ids[index - 1] if index else None
    return newer, ids[index + 1] if index + 1 < len(ids) else None


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
            Page("GET", "/inbox", self.show),
            Page("POST", "/inbox/sample", self.send_sample),
            Page("POST", "/inbox/read", self.mark_read),
            Page("POST", "/inbox/delete", self.delete),
            Page("POST", "/inbox/delete-selected", self.delete_selected),
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
        if tag:
            return redirect(visit, "/inbox", done="sample-sent", tag=tag)
        return redirect(visit, "/inbox", done="sample-sent")

    async def mark_read(self, visit: Visit) -> Reply:
        """POST /inbox/read: the filters of the list, and ``until``, its cursor.

        Messages that arrived later stay unread.
        """
        request = _shown(visit)
        await self._read.mark_all_read(visit.account.id, request.wanted)
        return redirect(visit, "/inbox", done="messages-read", **request.fields)

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbox/delete: the filters of the list, and ``until``, its cursor.

        Messages that arrived later are kept, since the user has not seen them in the list.
        """
        await self._delete.matching(visit.account.id, _shown(visit).wanted)
        return redirect(visit, "/inbox", done="messages-deleted")

    async def delete_selected(self, visit: Visit) -> Reply:
        """POST /inbox/delete-selected?<filters of the list>: id, repeatable."""
        ids = visit.form.texts("id", LARGEST_PAGE)
        await self._delete.some(visit.account.id, map(MessageId, ids))
        fields = read_without_search(visit.query).fields
        done = "message-deleted" if len(ids) == 1 else "messages-deleted"
        return redirect(visit, "/inbox", done=done, **fields)


def _shown(visit: Visit) -> ListRequest:
    """Return the request of the list in a form, limited to the messages that it showed."""
    request = read_list_request(visit.form, visit.asked_at)
    return replace(request, wanted=replace(request.wanted, up_to=visit.form.value("until", CURSOR)))
