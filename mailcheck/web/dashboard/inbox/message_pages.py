"""Pages of a message: its content, authentication, attachments and actions."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.bodies import Attachment
from mailcheck.core.errors import (
    InvalidParameter,
    LimitExceeded,
    MessageNotFound,
    Overloaded,
    RelayRejected,
    RelayUnavailable,
    ReleaseOff,
)
from mailcheck.core.identifiers import MessageId
from mailcheck.core.messages import MessageSummary, StoredMessage
from mailcheck.core.projects import Role
from mailcheck.core.searches import PARAMETER as SEARCH_PARAMETER
from mailcheck.operations.inbox.check_message import AuthenticateMessage
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox, ShareMessage
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.message_view import (
    ResultRow,
    allows_remote_content,
    list_results,
    preview_reply,
    view_message,
)
from mailcheck.web.dashboard.inbox.pages import InboxList, undo_query
from mailcheck.web.dashboard.inbox.view import read_list_request, read_without_search
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.mail_frame import frame_reply
from mailcheck.web.site.replies import Reply, download_reply

BASE = "/inbox/messages/<message_id>"

_NOT_RELEASED = (
    InvalidParameter,
    LimitExceeded,
    Overloaded,
    RelayRejected,
    RelayUnavailable,
    ReleaseOff,
)
"""Why a mail was not released. The form shows it."""


class MessagePages(Struct, frozen=True):
    """The pages of a message for its owner."""

    _read: ReadInbox
    _inbox: InboxList
    _authenticate: AuthenticateMessage
    _show: ShowMessage
    _share: ShareMessage
    _delete: DeleteMessages
    _release: ReleaseMail
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", BASE, self.page, costs.MESSAGE),
            Page("GET", f"{BASE}/frame", self.frame, costs.PARTS),
            Page("GET", f"{BASE}/authentication", self.authentication, costs.MESSAGE),
            Page("GET", f"{BASE}/raw", self.raw, costs.FREE),
            Page("GET", f"{BASE}/attachments/<attachment_id>", self.attachment, costs.PARTS),
            Page("GET", f"{BASE}/attachments/<attachment_id>/preview", self.preview, costs.PARTS),
            Page("POST", f"{BASE}/share", self.renew_share, costs.FREE),
            Page("GET", f"{BASE}/release", self.release_form, costs.MESSAGE),
            Page("POST", f"{BASE}/release", self.release, costs.RELEASE),
            Page("POST", f"{BASE}/delete", self.delete, costs.FREE),
        ]

    async def page(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}?view=html|text|markup|headers|source&remote=true&pane=mail.

        The list is shown beside the message, with the filters of ``tag``, ``to``, ``q`` and
        ``page``. ``pane=mail`` returns the message alone, for a list that is shown already.
        The authentication results are then loaded separately, because they need DNS lookups.
        """
        # A HEAD request does not mark the message as read.
        is_opened = visit.request.method == b"GET"
        read = self._read.open_message if is_opened else self._read.message
        message = await read(visit.account.id, _message_id(visit))
        summary = message.summary
        is_pane = visit.query.text("pane") == "mail"
        if is_pane:
            listed = await self._neighbours(visit, summary)
        else:
            listed = await self._inbox.values(visit, summary)
        view = await view_message(self._show, message, visit, listed["request"])
        return self._renderer.page(
            visit,
            "mail_pane.html" if is_pane else "inbox.html",
            here=f"/inbox/messages/{summary.id}",
            authentication=None if is_pane else await self._authentication_rows(message),
            share_url=visit.urls.share_url(summary.id, summary.share_token),
            may_release=visit.role.includes(Role.EDITOR)
            and bool(await self._release.recipients(visit.account.id)),
            **{**listed, "status": 200},
            **view.values(),
        )

    async def _neighbours(self, visit: Visit, summary: MessageSummary) -> dict[str, Any]:
        """Return the request of the list without the message's page, and the neighbours."""
        try:
            request = read_list_request(visit.query, visit.asked_at)
        except InvalidParameter as failure:
            if failure.name != SEARCH_PARAMETER:
                raise
            return {"request": read_without_search(visit.query), "newer": None, "older": None}
        around = await self._inbox.around(visit, request, summary)
        request = replace(request, page=around.listed.page)
        return {"request": request, "newer": around.newer, "older": around.older}

    async def authentication(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/authentication: SPF, DKIM and DMARC of the message."""
        found = await self._authentication_rows(await self._load(visit))
        return self._renderer.page(visit, "authentication.html", authentication=found)

    async def frame(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/frame?remote=true."""
        message = await self._load(visit)
        return await frame_reply(self._show, message, allows_remote=allows_remote_content(visit))

    async def raw(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/raw: the exact bytes, as a download."""
        message_id = _message_id(visit)
        raw = await self._read.raw_message(visit.account.id, message_id)
        return download_reply(raw, "message/rfc822", f"{message_id}.eml")

    async def attachment(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/attachments/{attachmentId}: always a download."""
        attachment = await self._attachment(visit)
        return download_reply(attachment.data, attachment.content_type, attachment.filename)

    async def preview(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/attachments/{attachmentId}/preview: an image or text."""
        return preview_reply(await self._attachment(visit))

    async def renew_share(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/share: revoke the share link and create a new one."""
        message_id = _message_id(visit)
        await self._share.renew(visit.account.id, message_id)
        return redirect(visit, f"/inbox/messages/{message_id}", done="share-renewed")

    async def release_form(self, visit: Visit) -> Reply:
        """GET /inbox/messages/{id}/release: the form, with what receivers will reject."""
        message = await self._load(visit)
        warnings = await self._release.warnings(message)
        return await self._release_page(visit, message, released=None, to="", warnings=warnings)

    async def release(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/release: to, one or more addresses."""
        message, to = await self._load(visit), visit.form.text("to") or ""
        released = error = None
        try:
            recipients = to.replace(",", " ").split()
            released = await self._release.release(message, recipients, visit.actor)
        except _NOT_RELEASED as failure:
            error = failure
        warnings = await self._release.warnings(message) if released is None else released.warnings
        return await self._release_page(
            visit,
            message,
            error=error,
            released=released,
            to=to if error else "",
            warnings=warnings,
        )

    async def _release_page(self, visit: Visit, message: StoredMessage, **values: Any) -> Reply:
        return self._renderer.page(
            visit,
            "release_page.html",
            mail_subject=message.summary.header.subject,
            here=f"/inbox/messages/{_message_id(visit)}",
            offers=await self._release.recipients(visit.account.id),
            sender=self._release.sender,
            **values,
        )

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/delete."""
        deletion = await self._delete.some_with_undo(visit.account.id, [_message_id(visit)])
        if not deletion.count:
            raise MessageNotFound
        here = read_without_search(visit.query).here(**undo_query(deletion))
        return redirect(visit, f"/inbox{here}")

    async def _authentication_rows(self, message: StoredMessage) -> Sequence[ResultRow]:
        return list_results(await self._authenticate.of(message))

    async def _attachment(self, visit: Visit) -> Attachment:
        return await self._read.attachment(
            visit.account.id, _message_id(visit), visit.path["attachment_id"]
        )

    async def _load(self, visit: Visit) -> StoredMessage:
        return await self._read.message(visit.account.id, _message_id(visit))


def _message_id(visit: Visit) -> MessageId:
    return MessageId(visit.path["message_id"])
