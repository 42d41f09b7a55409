"""Pages of shared messages: HTML for people and JSON for programs, without sign-in."""

from msgspec import Struct

from mailcheck.api.inbox.messages import render_message
from mailcheck.checks.content.bodies import Attachment
from mailcheck.operations.concurrency import PacedQueue
from mailcheck.operations.inbox.check_message import AuthenticateMessage
from mailcheck.operations.inbox.messages import ShareMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.message_view import (
    allows_remote_content,
    list_results,
    preview_reply,
    view_message,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import ANYONE, SAME_FOR_ALL, Page, Visit, prefers_html
from mailcheck.web.site import costs
from mailcheck.web.site.mail_frame import frame_reply
from mailcheck.web.site.replies import Reply, download_reply, large_json_reply

BASE = "/share/<token>"

UNLISTED = {"X-Robots-Tag": "noindex, nofollow", "Vary": "Accept"}


class SharePages(Struct, frozen=True):
    """The pages behind a message's share link. Each request checks that the link is valid."""

    _share: ShareMessage
    _authenticate: AuthenticateMessage
    _show: ShowMessage
    _renderer: Renderer
    _turns: PacedQueue

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", BASE, self.page, costs.MESSAGE, ANYONE),
            Page("GET", f"{BASE}/frame", self.frame, costs.PARTS, ANYONE),
            Page(
                "GET", f"{BASE}/attachments/<attachment_id>", self.attachment, costs.PARTS, ANYONE
            ),
            Page(
                "GET",
                f"{BASE}/attachments/<attachment_id>/preview",
                self.preview,
                costs.PARTS,
                ANYONE,
            ),
            Page(
                "GET",
                "/attachments/<token>/<attachment_id>",
                self.linked,
                costs.PARTS,
                SAME_FOR_ALL,
            ),
        ]

    async def page(self, visit: Visit) -> Reply:
        """GET /share/{token}?view=html|text|headers&remote=true."""
        message = await self._share.open(visit.path["token"])
        authentication = await self._authenticate.of(message)
        if not prefers_html(visit.request):
            shape = render_message(message, visit.urls, authentication)
            return await large_json_reply(shape, self._turns, headers=UNLISTED)
        view = await view_message(self._show, message, visit)
        return self._renderer.page(
            visit,
            "share.html",
            headers=UNLISTED,
            here=f"/share/{visit.path['token']}",
            own=visit.own_address(
                message.summary.account_id, f"/inbox/messages/{message.summary.id}"
            ),
            authentication=list_results(authentication),
            **view.values(),
        )

    async def frame(self, visit: Visit) -> Reply:
        """GET /share/{token}/frame?remote=true."""
        message = await self._share.open(visit.path["token"])
        return await frame_reply(self._show, message, allows_remote=allows_remote_content(visit))

    async def attachment(self, visit: Visit) -> Reply:
        """GET /share/{token}/attachments/{attachmentId}: always a download."""
        attachment = await self._attachment(visit)
        return download_reply(attachment.data, attachment.content_type, attachment.filename)

    async def preview(self, visit: Visit) -> Reply:
        """GET /share/{token}/attachments/{attachmentId}/preview: an image or text."""
        return preview_reply(await self._attachment(visit))

    async def linked(self, visit: Visit) -> Reply:
        """GET /attachments/{token}/{attachmentId}: a download that ends soon."""
        attachment_id = visit.path["attachment_id"]
        message = await self._share.open_attachment(visit.path["token"], attachment_id)
        found = await self._show.attachment(message, attachment_id)
        return download_reply(found.data, found.content_type, found.filename)

    async def _attachment(self, visit: Visit) -> Attachment:
        message = await self._share.open(visit.path["token"])
        return await self._show.attachment(message, visit.path["attachment_id"])
