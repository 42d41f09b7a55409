"""The inbox: its address, its messages, and a sample mail for who has none yet."""

from msgspec.structs import replace

from mailcheck.core.identifiers import MessageId
from mailcheck.operations.inbox.delete_messages import DeleteMessages
from mailcheck.operations.inbox.read_inbox import ReadInbox
from mailcheck.operations.inbox.send_sample import SendSample
from mailcheck.web.dashboard.inbox.listing import InboxList
from mailcheck.web.dashboard.inbox.view import (
    LARGEST_PAGE,
    ListRequest,
    read_list_request,
    read_unsearched,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply


class InboxPages:
    """The list of messages and what is done with all of them."""

    def __init__(
        self,
        inbox: InboxList,
        read: ReadInbox,
        delete: DeleteMessages,
        sample: SendSample,
        renderer: Renderer,
    ) -> None:
        self._inbox = inbox
        self._read = read
        self._delete = delete
        self._sample = sample
        self._renderer = renderer

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
        """POST /inbox/sample: tag."""
        tag = visit.form.tag() or ""
        await self._sample.send(visit.account, tag)
        if tag:
            return redirect(visit, "/inbox", done="sample-sent", tag=tag)
        return redirect(visit, "/inbox", done="sample-sent")

    async def mark_read(self, visit: Visit) -> Reply:
        """POST /inbox/read: what the list is filtered by, and ``until`` when it was read.

        Mail that has come since stays unread.
        """
        request = _shown(visit)
        await self._read.mark_all_read(visit.account.id, request.wanted)
        return redirect(visit, "/inbox", done="messages-read", **request.fields)

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbox/delete: what the list is filtered by, and ``until`` when it was read.

        Mail that has come since is not meant: nobody has seen it in the list.
        """
        await self._delete.matching(visit.account.id, _shown(visit).wanted)
        return redirect(visit, "/inbox", done="messages-deleted")

    async def delete_selected(self, visit: Visit) -> Reply:
        """POST /inbox/delete-selected?<the list>: id, repeated."""
        ids = visit.form.texts("id", LARGEST_PAGE)
        await self._delete.some(visit.account.id, map(MessageId, ids))
        fields = read_unsearched(visit.query).fields
        done = "message-deleted" if len(ids) == 1 else "messages-deleted"
        return redirect(visit, "/inbox", done=done, **fields)


def _shown(visit: Visit) -> ListRequest:
    """Read which mail the list had when its form was made: what came since is not meant."""
    request = read_list_request(visit.form, visit.asked_at)
    return replace(request, wanted=replace(request.wanted, up_to=visit.form.cursor("until")))
