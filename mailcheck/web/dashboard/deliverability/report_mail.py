"""The mail of a test, displayed beside its report like a message of the inbox."""

from typing import Any

from msgspec import Struct

from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.deliverability.manage_tests import MailOfTest
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.dashboard.inbox.message_view import (
    allows_remote_content,
    view_message,
)
from mailcheck.web.dashboard.visits import Visit
from mailcheck.web.site.mail_frame import frame_reply
from mailcheck.web.site.replies import Reply


class ReportMail(Struct, frozen=True):
    """Shows the mails of tests to everybody who may see the test."""

    _mail: MailOfTest
    _show: ShowMessage

    async def values(self, visit: Visit, result: DeliverabilityResult) -> dict[str, Any]:
        """Return the template values of the mail.

        ``view`` is `None` if there is no report yet, or if the mail cannot be shown now.
        """
        if result.report is None:
            return {"view": None}
        try:
            message = await self._mail.of(result)
            view = await view_message(self._show, message, visit)
        except ExpectedFailure:
            return {"view": None}
        return view.values() | {
            "view_query": lambda name, **more: view.view_query(name, **more) + "#mail"
        }

    async def message(self, result: DeliverabilityResult) -> StoredMessage:
        """Return the mail.

        :raises MessageNotFound: the test has no mail.
        """
        return await self._mail.of(result)

    async def frame(self, visit: Visit, result: DeliverabilityResult) -> Reply:
        """Return the document with the HTML of the mail, for a frame.

        :raises MessageNotFound: the test has no mail.
        """
        message = await self._mail.of(result)
        return await frame_reply(self._show, message, allows_remote=allows_remote_content(visit))

    async def document(self, result: DeliverabilityResult) -> tuple[str, str]:
        """Return the HTML document and the text of the mail, to include them in a file.

        The document is empty if the mail has no HTML. It loads no remote content.

        :raises MessageNotFound: the test has no mail.
        """
        message = await self._mail.of(result)
        if not message.content.html:
            return "", message.content.text
        reply = await frame_reply(self._show, message, allows_remote=False)
        return reply.body.decode("utf-8"), message.content.text
