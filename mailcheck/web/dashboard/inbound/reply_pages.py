"""The page of a message for answers: replies, ready-made mails, and sending it again."""

from msgspec import Struct

from mailcheck.core.errors import ExpectedFailure, InboundRouteNotFound
from mailcheck.core.identifiers import MessageId
from mailcheck.core.inbound import READY_MAILS, InboundVerdict, MailProgram, Place
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbound.all_operations import InboundOperations
from mailcheck.operations.inbound.quoting import reply_subject
from mailcheck.operations.inbound.send_mail import Letter
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.web.dashboard.inbound.forms import (
    FAULT_TEXTS,
    MailForm,
    read_files,
    read_mail_form,
    split_addresses,
)
from mailcheck.web.dashboard.inbound.route_pages import read_ready, redirect_to_mail
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

BASE = "/inbox/messages/<message_id>"


class ReplyPages(Struct, frozen=True):
    """The page to answer a message of the application."""

    _inbound: InboundOperations
    _read: ReadInbox
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", f"{BASE}/reply", self.show, costs.MESSAGE),
            *with_form(
                self.show,
                Page("POST", f"{BASE}/reply", self.reply, costs.INBOUND_MAIL, takes_files=True),
            ),
            Page("POST", f"{BASE}/ready", self.send_ready, costs.INBOUND_MAIL),
            Page("POST", f"{BASE}/again", self.send_again, costs.INBOUND_MAIL),
        ]

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /inbox/messages/{id}/reply. A failure of the form is shown on the same page."""
        message = await self._load(visit)
        summary = message.summary
        routes = await self._inbound.routes.of_account(visit.account.id)
        form = MailForm(subject=reply_subject(summary.header.subject))
        if failure is not None:
            form = read_mail_form(visit.form)
        return self._renderer.page(
            visit,
            "inbound_reply.html",
            error=failure,
            form=form,
            routes=routes,
            summary=summary,
            here=f"/inbox/messages/{summary.id}",
            programs=list(MailProgram),
            places=list(Place),
            verdicts=[verdict.value for verdict in InboundVerdict],
            fault_texts=FAULT_TEXTS,
            ready_mails={name: facts for name, facts in READY_MAILS.items() if facts.refers},
        )

    async def reply(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/reply: route_id and the fields of the answer, with files."""
        message_id, form = (await self._load(visit)).summary.id, read_mail_form(visit.form)
        program, place = form.quoting
        letter = Letter(
            author=form.author,
            to=split_addresses(form.to),
            subject=form.subject,
            text=form.text,
            files=read_files(visit),
            message_id=message_id,
            program=program,
            place=place,
            verdicts=form.verdicts,
            fault=form.fault or None,
        )
        return await self._send(visit, form.route_id, letter)

    async def send_ready(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/ready: route_id, ready."""
        letter = Letter(ready=read_ready(visit), message_id=_message_id(visit))
        return await self._send(visit, visit.form.text("route_id") or "", letter)

    async def send_again(self, visit: Visit) -> Reply:
        """POST /inbox/messages/{id}/again: route_id. The message itself is sent."""
        letter = Letter(message_id=_message_id(visit))
        return await self._send(visit, visit.form.text("route_id") or "", letter)

    async def _send(self, visit: Visit, route_id: str, letter: Letter) -> Reply:
        if not route_id:
            raise InboundRouteNotFound("choose a route")
        sent = await self._inbound.send.send(visit.account.id, route_id, letter)
        return redirect_to_mail(visit, route_id, sent)

    async def _load(self, visit: Visit) -> StoredMessage:
        return await self._read.message(visit.account.id, _message_id(visit))


def _message_id(visit: Visit) -> MessageId:
    return MessageId(visit.path["message_id"])
