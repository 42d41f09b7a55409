"""The inbox: its address, its messages, and a sample mail for who has none yet."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from mailcheck.core.addresses import explain_bad_tag, join_subaddress
from mailcheck.core.cursors import format_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import HOUR
from mailcheck.core.search import EXAMPLES
from mailcheck.core.search import PARAMETER as SEARCH_PARAMETER
from mailcheck.operations.inbox.delete_messages import DeleteMessages
from mailcheck.operations.inbox.read_inbox import MessageList, ReadInbox
from mailcheck.operations.inbox.send_sample import SendSample
from mailcheck.web.dashboard.inbox.view import (
    SHOWN_TAGS,
    list_tags,
    read_list_request,
    read_unsearched,
    write_range,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.errors import status_of
from mailcheck.web.site.replies import Reply


@dataclass(frozen=True, slots=True)
class InboxFacts:
    """``mail_port`` is where mail comes in, if it does; ``retention`` in milliseconds."""

    domain: str
    mail_port: int | None
    retention: int


class InboxPages:
    """The list of messages and what is done with all of them."""

    def __init__(
        self,
        read: ReadInbox,
        delete: DeleteMessages,
        sample: SendSample,
        renderer: Renderer,
        facts: InboxFacts,
    ) -> None:
        self._read = read
        self._delete = delete
        self._sample = sample
        self._renderer = renderer
        self._facts = facts

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/inbox", self.show),
            Page("POST", "/inbox/sample", self.send_sample),
            Page("POST", "/inbox/delete", self.delete),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /inbox?tag=&q=&limit=&page=&for=<tag of an address>."""
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
            request = read_unsearched(visit.query)
            messages = MessageList((), None, 0, overview.state.last_position)
        tag = visit.query.text("for") or request.wanted.tag or ""
        problem = explain_bad_tag(tag)
        return self._renderer.page(
            visit,
            "inbox.html",
            status=status,
            request=request,
            search_problem=search_problem,
            search_examples=EXAMPLES,
            range=write_range(request, messages),
            messages=messages,
            cursor=format_cursor(messages.cursor),
            tags=list_tags(overview, request.wanted),
            shown_tags=SHOWN_TAGS,
            mailbox=account.mailbox_name,
            domain=self._facts.domain,
            tag=tag,
            tag_problem=problem,
            address=join_subaddress(
                account.mailbox_name, "" if problem else tag, self._facts.domain
            ),
            mail_server=self._mail_server(visit),
            retention_hours=f"{self._facts.retention / HOUR:g}",
        )

    async def send_sample(self, visit: Visit) -> Reply:
        """POST /inbox/sample: tag."""
        tag = visit.form.tag() or ""
        await self._sample.send(visit.account, tag)
        if tag:
            return redirect(visit, "/inbox", done="sample-sent", tag=tag)
        return redirect(visit, "/inbox", done="sample-sent")

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbox/delete: what the list is filtered by."""
        wanted = read_list_request(visit.form, visit.asked_at).wanted
        await self._delete.matching(visit.account.id, wanted)
        return redirect(visit, "/inbox", done="messages-deleted")

    def _mail_server(self, visit: Visit) -> str | None:
        """Give where to send mail, as this visitor reaches it; nothing where none is received."""
        if self._facts.mail_port is None:
            return None
        host = urlsplit(visit.urls.public_url).hostname or "localhost"
        return f"{f'[{host}]' if ':' in host else host}:{self._facts.mail_port}"
