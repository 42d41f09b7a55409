"""The page of domain checks: score, fixes, mail route and all records."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailcheck.api.domains.report import render_domain_report
from mailcheck.api.domains.reputation import render_reputation
from mailcheck.api.requests.fields import FLAG
from mailcheck.api.shapes import as_json
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe, StarttlsVerdict
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.receiver_reports import Offer
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.domains.compute_reputation import (
    ComputeReputation,
    Reputation,
)
from mailcheck.operations.domains.describe_domain import DescribeDomain, DomainReport
from mailcheck.operations.semaphores import CheckSlots
from mailcheck.web.dashboard.domains.view import (
    HOST_PROBLEMS,
    WORDS,
    DomainForm,
    NameRules,
    count_issues,
    displayed_gain,
    order_fixes,
    read_domain_form,
    score_level,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply

Step = tuple[str, str]
"""Level and label."""

LEVELS = ("bad", "warn", "unknown", "", "good")
"""Levels from worst to best. The worst step of a host determines its level."""


class RouteHost(Struct, frozen=True):
    """A mail host on the route. ``priority`` is ``None`` for an implicit MX."""

    exchange: str
    priority: int | None
    addresses: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def level(self) -> str:
        """The level of the worst step."""
        return min((level for level, _ in self.steps if level), key=LEVELS.index, default="")


class MailRoute(Struct, frozen=True):
    """The mail hosts in the order in which senders try them, and the MTA-STS policy."""

    hosts: tuple[RouteHost, ...]
    policy: Step


def describe_route(report: Mapping[str, Any], starttls: StarttlsVerdict) -> MailRoute:
    """Combine the mail hosts of a domain report with the results of their probes."""
    probes = {one.exchange: one for one in starttls.probes}
    pinned = {one["exchange"]: one for one in report["dane"]["hosts"] if one["records"]}
    hosts = tuple(
        RouteHost(
            one["exchange"],
            one["priority"],
            tuple(one["ip"]),
            _steps(one, probes.get(one["exchange"]), pinned.get(one["exchange"])),
        )
        for one in report["mx"]["records"]
    )
    if report["mx"]["implicitMx"]:
        own = report["domain"]
        hosts = (RouteHost(own, None, (), _encryption(probes.get(own))),)
    return MailRoute(hosts, _policy(report["mtaSts"]))


def _steps(
    host: Mapping[str, Any], probe: StarttlsProbe | None, pinned: Mapping[str, Any] | None
) -> tuple[Step, ...]:
    problem = host.get("problem")
    steps: list[Step] = []
    if problem is not None:
        level = "unknown" if problem == "undetermined" else "bad"
        steps.append((level, HOST_PROBLEMS.get(problem, problem)))
    if host["ip"]:
        steps += _encryption(probe)
    if pinned is not None:
        secure = {True: ("good", "DANE"), False: ("warn", "DANE, not signed")}
        steps.append(secure.get(pinned["secure"], ("unknown", "DANE, signature unknown")))
    return tuple(steps)


def _encryption(probe: StarttlsProbe | None) -> tuple[Step, ...]:
    if probe is None:
        return (("unknown", "TLS: not checked"),)
    if probe.outcome is ProbeOutcome.NOT_OFFERED:
        return (("bad", "no STARTTLS"),)
    if probe.outcome is not ProbeOutcome.ENCRYPTED:
        return (("unknown", f"TLS: {probe.outcome.value}"),)
    certificate = ("good", "certificate valid")
    if not probe.is_certificate_trusted:
        certificate = ("warn", "certificate not trusted")
    elif not probe.is_name_matching:
        certificate = ("warn", "certificate for another name")
    return (("good", probe.tls_version), certificate)


def _policy(found: Mapping[str, Any]) -> Step:
    policy = found["policy"]
    if found["presence"] == "undetermined":
        return "unknown", "could not be determined"
    if policy is None or not policy["valid"]:
        return "", "none" if found["record"] is None else "not valid"
    return "good" if policy["mode"] == "enforce" else "", f"mode {policy['mode']}"


class DomainPages(Struct, frozen=True):
    """The page of domain checks. It is displayed at once and loads the result afterwards."""

    _reputation: ComputeReputation
    _describe: DescribeDomain
    _offer: Offer
    _budget: CheckBudget
    _turns: CheckSlots
    _renderer: Renderer
    _rules: NameRules

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/domain", self.show)]

    async def show(self, visit: Visit) -> Reply:
        """GET /domain?domain=&selectors=&ips=&refresh=true&whole=true.

        ``whole`` waits for the result. Otherwise a script of the page requests it.
        """
        form = read_domain_form(visit.query)
        if not form.domain:
            return self._page(visit, form)
        try:
            query = form.read(self._rules)
        except InvalidParameter as problem:
            return self._page(visit, form, error=problem)
        is_refresh = visit.query.value("refresh", FLAG, False)
        if not visit.query.value("whole", FLAG, False):
            more = {"refresh": "true"} if is_refresh else {}
            whole = form.query(domain=form.typed, whole="true", **more)
            return self._page(visit, form, name=query.domain, whole=whole)
        await self._budget.take(visit.account.id)
        async with self._turns.held(visit.account.id):
            offered = await self._offer(visit.account.id)
            reputation, report = await run_all(
                self._reputation.compute(query, offered, is_refresh=is_refresh),
                self._describe.describe(query.domain, query.selectors, offered),
            )
            if reputation.is_cached and not _agree(reputation, report):
                # The cached score is outdated: the sections would contradict it.
                reputation = await self._reputation.compute(query, offered, is_refresh=True)
        return self._page(visit, form, name=query.domain, **view_check(reputation, report))

    def _page(self, visit: Visit, form: DomainForm, **values: Any) -> Reply:
        shown = {"name": "", "whole": "", "found": None, **values}
        return self._renderer.page(visit, "domain.html", form=form, words=WORDS, **shown)


def view_check(reputation: Reputation, report: DomainReport) -> dict[str, Any]:
    """Return the template values of a finished check."""
    score = reputation.score
    found, known = as_json(render_reputation(reputation)), as_json(render_domain_report(report))
    fixes = order_fixes(found["factors"])
    return {
        "found": found,
        "report": known,
        "fixes": fixes,
        "displayed_gain": displayed_gain,
        "gained": sum(map(displayed_gain, fixes)),
        "issues_below": count_issues(known),
        "route": describe_route(known, reputation.evidence.starttls),
        "is_gradable": score.is_gradable,
        "level": score_level(score.score, 100) if score.is_gradable else "unknown",
        "checked_at": reputation.checked_at,
    }


def _agree(reputation: Reputation, report: DomainReport) -> bool:
    """Return whether the score is based on the records that the report shows."""
    scored, shown = reputation.evidence, report.records
    names = ("spf", "dkim", "dmarc", "mx")
    return all(getattr(scored, name) == getattr(shown, name) for name in names)
