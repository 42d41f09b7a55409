"""Pages of routes: create, show, change and delete them, and send mails to applications."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.inbound import (
    LONGEST_PATTERN,
    LONGEST_SECRET,
    MOST_SPEED,
    READY_MAILS,
    InboundFault,
    InboundFormat,
    InboundMailId,
    InboundRoute,
    InboundVerdict,
    ReadyMail,
)
from mailcheck.core.webhooks import LONGEST_URL
from mailcheck.operations.inbound.all_operations import InboundOperations
from mailcheck.operations.inbound.send_mail import AUTHOR, Letter, SentMail, default_recipient
from mailcheck.store.inbound_store import InboundFilter
from mailcheck.web.dashboard.inbound.forms import (
    FAULT_TEXTS,
    MailForm,
    RouteForm,
    form_of,
    read_changes,
    read_files,
    read_format,
    read_mail_form,
    read_route_form,
    split_addresses,
)
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import CONFIRMED_EDITORS, Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

LIST_PATH = "/inbound"
"""Path of the page that lists the routes."""

ROUTES_PATH = f"{LIST_PATH}/routes"

SHOWN_MAILS = 50
"""Number of mails on the page of a route."""

SHOWN_ATTEMPTS = 40
"""Number of attempts on the page of a mail. Providers make at most 32."""

STATE_LEVELS: Mapping[str, str] = {
    "waiting": "",
    "retrying": "warn",
    "delivered": "good",
    "failed": "bad",
    "stopped": "bad",
}
"""The level of the badge of each state."""


class InboundFormatText(Struct, frozen=True):
    """The name of a format, how the application verifies its requests, and its faults."""

    title: str
    authentication: str
    faults: Collection[InboundFault]


FormatTexts = Callable[[], Mapping[InboundFormat, InboundFormatText]]
"""Returns the texts of all formats. They are loaded when they are first used."""

FindKey = Callable[[InboundRoute], str]
"""Returns the public key with which the application verifies requests, or an empty text."""


class RoutePages(Struct, frozen=True):
    """The pages of an account's routes.

    :param domain: the domain of the inbox addresses.
    """

    _inbound: InboundOperations
    _texts: FormatTexts
    _find_key: FindKey
    _domain: str
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = f"{ROUTES_PATH}/<route_id>"
        return [
            Page("GET", LIST_PATH, self.show, costs.FREE),
            *with_form(
                self.show, Page("POST", LIST_PATH, self.create, costs.ROUTE, CONFIRMED_EDITORS)
            ),
            Page("GET", one, self.route, costs.FREE),
            *with_form(
                self.route, Page("POST", one, self.change, costs.AUDITED, CONFIRMED_EDITORS)
            ),
            Page("POST", f"{one}/delete", self.delete, costs.AUDITED),
            Page("POST", f"{one}/ready", self.send_ready, costs.INBOUND_MAIL),
            Page("GET", f"{one}/write", self.write_form, costs.FREE),
            *with_form(
                self.write_form,
                Page("POST", f"{one}/write", self.write, costs.INBOUND_MAIL, takes_files=True),
            ),
            Page("GET", f"{one}/mails/<mail_id>", self.mail, costs.FREE),
            Page("POST", f"{one}/mails/<mail_id>/again", self.send_again, costs.INBOUND_MAIL),
        ]

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /inbound. A failure of the form is shown on the same page."""
        account_id = visit.account.id
        routes = await self._inbound.routes.of_account(account_id)
        last = {}
        for route in routes:
            wanted = InboundFilter(route_id=route.id)
            last[route.id] = await self._inbound.read.deliveries(account_id, wanted, 1)
        return self._page(
            visit,
            "inbound.html",
            error=failure,
            form=(
                read_route_form(visit.form) if failure else RouteForm(to=f"support@{self._domain}")
            ),
            routes=routes,
            last=last,
        )

    async def create(self, visit: Visit) -> Reply:
        """POST /inbound: to, format, url and further settings. The response shows the secret."""
        form = read_route_form(visit.form)
        kind, account_id = read_format(form.format), visit.account.id
        route = await self._inbound.routes.create(account_id, kind, form.settings, visit.actor)
        return self._shown_once(visit, route)

    async def route(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /inbound/routes/{id}: its mails, and what can be sent to the application."""
        route = await self._route(visit)
        wanted = InboundFilter(route_id=route.id)
        return self._page(
            visit,
            "inbound_route.html",
            error=failure,
            form=read_changes(visit.form, route) if failure else form_of(route),
            route=route,
            key=self._find_key(route),
            deliveries=await self._inbound.read.deliveries(route.account_id, wanted, SHOWN_MAILS),
            ready_mails=READY_MAILS,
        )

    async def change(self, visit: Visit) -> Reply:
        """POST /inbound/routes/{id}: the settings. Empty secrets stay as they are."""
        route = await self._route(visit)
        changes = read_changes(visit.form, route).changes
        await self._inbound.routes.change(route.account_id, route.id, changes, visit.actor)
        return redirect(visit, f"{ROUTES_PATH}/{route.id}", done="route-changed")

    async def delete(self, visit: Visit) -> Reply:
        """POST /inbound/routes/{id}/delete."""
        await self._inbound.routes.delete(visit.account.id, visit.path["route_id"], visit.actor)
        return redirect(visit, LIST_PATH, done="route-deleted")

    async def send_ready(self, visit: Visit) -> Reply:
        """POST /inbound/routes/{id}/ready: name of a ready-made mail, and message to refer to."""
        name = read_ready(visit)
        return await self._send(visit, Letter(ready=name))

    async def write_form(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /inbound/routes/{id}/write?from=&to=: the form for a mail to the application."""
        route = await self._route(visit)
        form = MailForm(
            author=visit.query.text("from") or AUTHOR,
            to=visit.query.text("to") or default_recipient(route.to),
        )
        if failure is not None:
            form = read_mail_form(visit.form)
        return self._page(
            visit,
            "inbound_write.html",
            error=failure,
            form=form,
            route=route,
            verdicts=[verdict.value for verdict in InboundVerdict],
        )

    async def write(self, visit: Visit) -> Reply:
        """POST /inbound/routes/{id}/write: the fields of a mail, with files."""
        form = read_mail_form(visit.form)
        letter = Letter(
            author=form.author,
            to=split_addresses(form.to),
            cc=split_addresses(form.cc),
            bcc=split_addresses(form.bcc),
            subject=form.subject,
            text=form.text,
            files=read_files(visit),
            verdicts=form.verdicts,
            fault=form.fault or None,
        )
        return await self._send(visit, letter)

    async def mail(self, visit: Visit) -> Reply:
        """GET /inbound/routes/{id}/mails/{mail_id}: all attempts with headers and answers."""
        route = await self._route(visit)
        mail = await self._inbound.read.describe_mail(route.account_id, visit.path["mail_id"])
        wanted = InboundFilter(route_id=route.id, mail_id=mail.id)
        page = await self._inbound.read.attempts(route.account_id, wanted, SHOWN_ATTEMPTS)
        return self._page(
            visit, "inbound_mail.html", route=route, mail=mail, page=page, read_answer=_read_answer
        )

    async def send_again(self, visit: Visit) -> Reply:
        """POST /inbound/routes/{id}/mails/{mail_id}/again."""
        return await self._send(visit, Letter(mail_id=InboundMailId(visit.path["mail_id"])))

    async def _send(self, visit: Visit, letter: Letter) -> Reply:
        route_id = visit.path["route_id"]
        sent = await self._inbound.send.send(visit.account.id, route_id, letter)
        return redirect_to_mail(visit, route_id, sent)

    async def _route(self, visit: Visit) -> InboundRoute:
        return await self._inbound.routes.show(visit.account.id, visit.path["route_id"])

    def _shown_once(self, visit: Visit, route: InboundRoute) -> Reply:
        return self._page(visit, "inbound_secret.html", route=route, key=self._find_key(route))

    def _page(self, visit: Visit, template: str, **values: Any) -> Reply:
        return self._renderer.page(
            visit,
            template,
            format_texts=self._texts(),
            fault_texts=FAULT_TEXTS,
            levels=STATE_LEVELS,
            longest_url=LONGEST_URL,
            longest_pattern=LONGEST_PATTERN,
            longest_secret=LONGEST_SECRET,
            most_speed=MOST_SPEED,
            **values,
        )


def read_ready(visit: Visit) -> ReadyMail:
    """Return the ready-made mail that a form names.

    :raises InvalidParameter: there is no such mail.
    """
    given = visit.form.text("ready") or ""
    if given not in READY_MAILS:
        raise InvalidParameter("ready", f"choose one of the ready-made mails; got {given[:40]!r}")
    return ReadyMail(given)


def redirect_to_mail(visit: Visit, route_id: str, sent: SentMail) -> Reply:
    """Lead to the page of a mail that was sent, which shows its attempts."""
    path = f"{ROUTES_PATH}/{route_id}/mails/{sent.mail_id}"
    return redirect(visit, path, done="inbound-sent")


def _read_answer(answer: bytes) -> str:
    return answer.decode("utf-8", "replace")
