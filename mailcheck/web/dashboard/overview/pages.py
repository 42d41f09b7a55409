"""The overview of an account, and the places that the command palette finds."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.findings import points
from mailcheck.api.deliverability.tests import address_of
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.deliverability_tests import ListedTest
from mailcheck.core.filters import MessageFilter
from mailcheck.core.messages import ListedMessage
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.domains.show_domains import DomainList, ShowDomains
from mailcheck.operations.domains.watches.manage_heartbeats import ManageHeartbeats
from mailcheck.operations.domains.watches.manage_watches import ManageWatches
from mailcheck.operations.inbox.messages import LOOKED_THROUGH, ReadInbox
from mailcheck.web.dashboard.charts import draw_trend
from mailcheck.web.dashboard.deliverability.report_view import BEST, level_of
from mailcheck.web.dashboard.domains.frame import path_of, view_domain
from mailcheck.web.dashboard.domains.view import ALERT_LEVELS
from mailcheck.web.dashboard.rendering import Renderer, format_count, format_number
from mailcheck.web.dashboard.snippets import KEY_PLACEHOLDER, write_first_mail, write_snippets
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply, json_reply

EXAMPLE_TAG = "signup"

MOST_PLACES = 100
"""Maximum number of domains, and of tests, that the command palette finds."""

MORE_PLACES = {
    "Received reports": "/reports",
    "Traffic of your mail server": "/traffic",
    "Digest by mail": "/digest",
    "Heartbeats": "/heartbeats",
    "Activity": "/account/activity",
    "Projects": "/projects",
}
"""Pages that are not in the menu, with their paths."""

OPERATOR_PLACES = {
    "All accounts": "/account/people",
    "Activity of all accounts": "/account/people/activity",
    "Setup of this server": "/account/doctor",
}
"""Pages that only the operator sees, with their paths."""

RECENT = 5
"""Number of messages, and of tests, on the overview."""

PLOTTED = 20
"""Number of tests in the trend of the scores: the newest."""

SHOWN_DOMAINS = 6
"""Number of domains on the overview: the worst."""

SHOWN_ALERTS = 5
"""Number of alerts on the overview: the newest that are open and not acknowledged."""

FIRST_MAILS = 3
"""Number of received mails after which the first steps are folded."""


FIRST_SNIPPETS = ("curl", "python", "pytest", "javascript", "playwright")
"""Snippets of the first steps, by name. The page Connect has all."""


class ServerNames(Struct, frozen=True):
    """Names of the servers that programs connect to: the mail domain, and host:port of SMTP.

    ``submission_server`` is empty if it is not known.
    """

    domain: str
    mail_server: str
    submission_server: str


class StatusPart(Struct, frozen=True):
    """A part of the status line: its level, its icon, its text, and the page it leads to."""

    level: str
    icon: str
    text: str
    path: str


class OverviewPages(Struct, frozen=True):
    """The page at the root of the dashboard."""

    _inbox: ReadInbox
    _tests: ManageTests
    _domains: ShowDomains
    _watches: ManageWatches
    _heartbeats: ManageHeartbeats
    _servers: ServerNames
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        return [
            Page("GET", "/", self.show, costs.FREE),
            Page("GET", "/places", self.places, costs.FREE),
        ]

    async def places(self, visit: Visit) -> Reply:
        """GET /places: the pages, domains and tests that the command palette finds, as JSON."""
        account_id = visit.account.id
        domains = (await self._domains.page(account_id, MOST_PLACES)).domains
        tests = (await self._tests.page(account_id, MOST_PLACES, 1)).entries
        places = [
            *MORE_PLACES.items(),
            *(OPERATOR_PLACES.items() if visit.visitor.is_operator else ()),
            *((f"Domain {domain.name}", path_of(domain.name)) for domain in domains),
            *((f"Test {_name_of(test)}", f"/tests/{test.test.id}") for test in tests),
        ]
        return json_reply([{"title": title, "href": visit.link(p)} for title, p in places])

    async def show(self, visit: Visit) -> Reply:
        """GET /, in a project: its overview."""
        account = visit.account
        servers = self._servers
        tagged = join_subaddress(account.mailbox_name, EXAMPLE_TAG, servers.domain)
        everything = MessageFilter()
        state = await self._inbox.state(account.id)
        recent = await self._inbox.page(account.id, everything, RECENT, 1)
        unread = await self._inbox.count_unread(account.id, everything)
        tests = (await self._tests.page(account.id, PLOTTED, 1)).entries
        domains = await self._domains.page(account.id, SHOWN_DOMAINS)
        alerts = [
            alert
            for alert in (
                *await self._heartbeats.open_alerts(account.id),
                *await self._watches.open_alerts(account.id),
            )
            if alert.acknowledged_at is None
        ]
        return self._renderer.page(
            visit,
            "overview.html",
            address=join_subaddress(account.mailbox_name, "", servers.domain),
            tagged=tagged,
            first_mail=write_first_mail(servers.mail_server, tagged),
            servers=servers,
            snippets=[
                snippet
                for snippet in write_snippets(visit.urls, KEY_PLACEHOLDER, "")
                if snippet.name in FIRST_SNIPPETS
            ],
            placeholder=KEY_PLACEHOLDER,
            is_new=state.last_position <= FIRST_MAILS,
            has_mail=bool(recent.messages),
            has_read=unread < state.message_count,
            recent=recent,
            newest_coded=_newest_coded(recent.messages),
            status_line=write_status(domains, unread, tests, len(alerts)),
            **self._view_tests(tests),
            cards=[
                view_domain(domain, visit.asked_at) for domain in domains.domains[:SHOWN_DOMAINS]
            ],
            domain_total=domains.total,
            alerts=alerts[:SHOWN_ALERTS],
            alert_total=len(alerts),
            alert_levels=ALERT_LEVELS,
        )

    def _view_tests(self, tests: Sequence[ListedTest]) -> dict[str, Any]:
        shown = tests[:RECENT]
        scores = [points(test.tenths) for test in reversed(tests) if test.tenths is not None]
        return {
            "tests": shown,
            "test_addresses": {
                test.test.id: address_of(test.test, self._servers.domain) for test in shown
            },
            "test_levels": {
                test.test.id: level_of(points(test.tenths), is_content_only=test.is_content_only)
                for test in shown
                if test.tenths is not None
            },
            "newest_report": _newest_report(tests),
            "test_trend": draw_trend(scores, BEST),
            "plotted": len(scores),
            "best": BEST,
        }


def write_status(
    domains: DomainList, unread: int, tests: Iterable[ListedTest], alerts: int
) -> list[StatusPart]:
    """Return the status line, the most important part first."""
    parts = []
    if alerts:
        parts.append(StatusPart("bad", "bell", format_count(alerts, "open alert"), "#alerts"))
    if domains.failing:
        verb = "needs" if domains.failing == 1 else "need"
        text = f"{format_count(domains.failing, 'domain')} {verb} attention"
        parts.append(StatusPart("bad", "triangle-alert", text, "#domains"))
    elif domains.total:
        verb = "is" if domains.total == 1 else "are"
        text = f"{format_count(domains.total, 'domain')} {verb} fine"
        parts.append(StatusPart("good", "check", text, "#domains"))
    text = "No unread mails"
    if unread:
        more = "+" if unread == LOOKED_THROUGH else ""
        text = f"{format_number(unread)}{more} unread {'mail' if unread == 1 else 'mails'}"
    parts.append(StatusPart("", "mail", text, "/inbox"))
    newest = _newest_report(tests)
    if newest is not None and newest.tenths is not None:
        score = points(newest.tenths)
        level = level_of(score, is_content_only=newest.is_content_only)
        path = f"/tests/{newest.test.id}"
        parts.append(StatusPart(level, "gauge", f"Last test {score} of {BEST}", path))
    return parts


def _name_of(one: ListedTest) -> str:
    """Return the subject of the mail of a test, or its id."""
    return (one.header.subject if one.header else "") or one.test.id


def _newest_report(tests: Iterable[ListedTest]) -> ListedTest | None:
    return next((test for test in tests if test.tenths is not None), None)


def _newest_coded(messages: Iterable[ListedMessage]) -> ListedMessage | None:
    return next((message for message in messages if message.extracted.codes), None)
