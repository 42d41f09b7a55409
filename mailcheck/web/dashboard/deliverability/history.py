"""The earlier tests of a domain: a plot of their scores, and the comparison of two reports."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from mailcheck.api.deliverability.findings import points
from mailcheck.core.deliverability_tests import ListedTest
from mailcheck.core.errors import NoMailYet
from mailcheck.core.instants import MINUTE
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.web.dashboard.deliverability.report_view import (
    BEST,
    level_of,
    read_document,
    view_report,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

MAX_PLOTTED = 30
"""Maximum number of tests in a plot: the newest."""

HEIGHT, MARGIN = 96, 12
"""Height and vertical margin of the plot, in pixels."""

SIDE = 4.0
"""Margin of the plot at its sides, in percent of its width, which depends on the page."""

MAX_DATES = 4
"""Maximum number of dates below the plot."""


class PlottedTest(Struct, frozen=True):
    """A test in the plot: its score and level, x in percent of the width, and y in pixels."""

    listed: ListedTest
    x: float
    y: float
    score: float
    level: str


class History(Struct, frozen=True):
    """The tests of a domain, oldest first."""

    domain: str
    tests: tuple[PlottedTest, ...]
    height: int = HEIGHT

    @property
    def grid(self) -> list[tuple[int, float]]:
        """The scores that have a grid line, each with its y coordinate."""
        return [(score, _height_of(score)) for score in (0, BEST // 2, BEST)]

    @property
    def lines(self) -> list[tuple[PlottedTest, PlottedTest]]:
        """The ends of the lines between tests."""
        return list(pairwise(self.tests))

    @property
    def dates(self) -> list[PlottedTest]:
        """The tests whose dates are shown: the first, and at most three of later minutes."""
        last = len(self.tests) - 1
        shown = min(MAX_DATES, last + 1)
        picked = [self.tests[round(place * last / (shown - 1))] for place in range(shown)]
        dated: dict[int, PlottedTest] = {}
        for test in picked:
            received_at = test.listed.test.received_at
            assert received_at is not None, "only a test with a mail has a score"
            dated.setdefault(received_at // MINUTE, test)
        return list(dated.values())


class Comparison(Struct, frozen=True):
    """Differences between two reports.

    ``checks``, ``rules`` and ``replies`` contain those with different results, each with both
    results.
    """

    fixed: tuple[Any, ...]
    new: tuple[Any, ...]
    kept: tuple[Any, ...]
    checks: tuple[tuple[str, Any, Any], ...]
    rules: tuple[tuple[str, str, str, str], ...]
    replies: tuple[tuple[Any, Any], ...]


async def find_history(tests: ManageTests, visit: Visit, document: Any) -> History | None:
    """Return the tests of the domain of a report, or `None` if there are no others."""
    _, _, domain = str(document["email"]["from"] or "").rpartition("@")
    if not domain:
        return None
    found = await tests.of_domain(visit.account.id, domain, MAX_PLOTTED)
    return plot(domain, found) if len(found) > 1 else None


def plot(domain: str, found: Sequence[ListedTest]) -> History:
    """Plot the scores of tests, given newest first, from left to right in time."""
    scored = [(test, points(test.tenths)) for test in reversed(found) if test.tenths is not None]
    step = (100 - 2 * SIDE) / max(1, len(scored) - 1)
    return History(
        domain,
        tuple(
            PlottedTest(
                test,
                round(SIDE + place * step, 2),
                _height_of(score),
                score,
                level_of(score, is_content_only=test.is_content_only),
            )
            for place, (test, score) in enumerate(scored)
        ),
    )


def _height_of(score: float) -> float:
    return round(HEIGHT - MARGIN - score * (HEIGHT - 2 * MARGIN) / BEST, 1)


def compare(before: Any, after: Any) -> Comparison:
    """Compare two reports."""
    old = {deduction["id"]: deduction for deduction in before["deductions"]}
    now = {deduction["id"]: deduction for deduction in after["deductions"]}
    checks = tuple(
        (name, before["checks"][name], check)
        for name, check in after["checks"].items()
        if name in before["checks"] and _outcome(before["checks"][name]) != _outcome(check)
    )
    judged = {
        rule["id"]: rule
        for checklist in before["report"]["checklists"]
        for rule in checklist["rules"]
    }
    rules = tuple(
        (checklist["name"], rule["text"], judged[rule["id"]]["result"], rule["result"])
        for checklist in after["report"]["checklists"]
        for rule in checklist["rules"]
        if rule["id"] in judged and judged[rule["id"]]["result"] != rule["result"]
    )
    answered = {reply["receiver"]: reply for reply in before["report"].get("replies", ())}
    replies = tuple(
        (answered[reply["receiver"]], reply)
        for reply in after["report"].get("replies", ())
        if reply["receiver"] in answered and _answer(answered[reply["receiver"]]) != _answer(reply)
    )
    return Comparison(
        fixed=tuple(value for name, value in old.items() if name not in now),
        new=tuple(value for name, value in now.items() if name not in old),
        kept=tuple(value for name, value in now.items() if name in old),
        checks=checks,
        rules=rules,
        replies=replies,
    )


def _answer(reply: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a receiver answers, without the addresses and names in its text."""
    line = reply["reply"] or {}
    codes = (line.get("code"), line.get("enhanced"))
    return reply["action"], reply["determined"], codes, reply["explanation"]


def _outcome(check: Mapping[str, Any]) -> tuple[Any, ...]:
    return check["status"], check["determined"], check["deduction"], check["detail"]


class ComparisonPages(Struct, frozen=True):
    """The page that compares two reports."""

    _tests: ManageTests
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/tests/<test_id>/changes/<other_id>", self.show, costs.FREE)]

    async def show(self, visit: Visit) -> Reply:
        """GET /tests/{id}/changes/{other}: the changes from the older to the newer test."""
        account = visit.account.id
        both = [
            await self._tests.one(account, visit.path[name]) for name in ("test_id", "other_id")
        ]
        both.sort(key=lambda one: (one.test.received_at or one.test.created_at, one.test.id))
        reports = [result.report for result in both if result.report is not None]
        if len(reports) < 2:
            raise NoMailYet("a test without a report cannot be compared: choose completed tests")
        before, after = map(read_document, reports)
        return self._renderer.page(
            visit,
            "report_changes.html",
            sides=[
                {"test": result.test, **view_report(document)}
                for result, document in zip(both, (before, after), strict=True)
            ],
            changes=compare(before, after),
        )
