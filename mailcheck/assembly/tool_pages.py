"""Builds the pages of the tools: domain checks, blocklists, deliverability tests."""

from collections.abc import Callable
from typing import Any

from mailcheck.assembly.dashboard import check_budget
from mailcheck.assembly.deployment import mail_server
from mailcheck.assembly.rest_and_mcp import BuiltOperations
from mailcheck.cluster.local import LocalCluster
from mailcheck.config.options import Config
from mailcheck.operations.accounts.authenticate import CheckBudget, RequestMeter
from mailcheck.operations.doctor import Doctor
from mailcheck.web.dashboard.accounts.doctor_pages import DoctorPages
from mailcheck.web.dashboard.deliverability.history import ComparisonPages
from mailcheck.web.dashboard.deliverability.live import DeliverabilityLivePages
from mailcheck.web.dashboard.deliverability.mail_of_report import MailOfReport
from mailcheck.web.dashboard.deliverability.pages import DeliverabilityPages
from mailcheck.web.dashboard.deliverability.preflight import PreflightPages
from mailcheck.web.dashboard.deliverability.report_pages import ReportFiles, ReportPages
from mailcheck.web.dashboard.domains.blocklist_pages import BlocklistPages
from mailcheck.web.dashboard.domains.pages import DomainPages
from mailcheck.web.dashboard.domains.reports_pages import ReportsPages
from mailcheck.web.dashboard.domains.view import NameRules
from mailcheck.web.dashboard.domains.watch_pages import WatchPages
from mailcheck.web.dashboard.inbox.checks_pages import CheckPages
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page


def tool_pages(
    config: Config,
    built: BuiltOperations,
    mail: MailOfReport,
    meter: RequestMeter,
    reactor: Any,
) -> Callable[[Renderer], list[Page]]:
    """Give what makes the pages, once there is a renderer.

    They are to come before the pages of shared messages (`ReportPages.pages`).
    """
    budget = check_budget(config, meter)
    checks = built.checks

    def doctor() -> Doctor:
        # Imported here: it is no part of the start, and seldom asked for.
        from mailcheck.assembly.doctor import DoctorAssembly
        from mailcheck.assembly.probes import Probes

        # With a memory of its own: it looks at how things are now.
        time_and_chance, plain = built.time_and_chance, checks.resolvers.plain
        probes = Probes(config, reactor, time_and_chance, plain, LocalCluster(reactor))
        return DoctorAssembly(config, reactor, checks, probes).doctor

    def make(renderer: Renderer) -> list[Page]:
        return [
            *_pages_of_domains(config, built, budget, renderer),
            *_pages_of_tests(config, built, mail, budget, renderer),
            *DoctorPages(doctor, renderer).pages(),
            *CheckPages(built.inbox, built.tests.operations.manage, renderer).pages(),
            *DeliverabilityLivePages(
                built.tests.operations.wait, built.scoring.progress, reactor
            ).pages(),
        ]

    return make


def _pages_of_domains(
    config: Config, built: BuiltOperations, budget: CheckBudget, renderer: Renderer
) -> list[Page]:
    rules = NameRules(config.dns.allow_special_use, config.network.allow_private)
    checks = built.checks
    return [
        *DomainPages(
            checks.reputation,
            checks.domain,
            built.reports.show.to_offer,
            budget,
            checks.turns,
            renderer,
            rules,
        ).pages(),
        *BlocklistPages(checks.blocklists, budget, checks.turns, renderer, rules).pages(),
        *WatchPages(built.watches.keep, budget, checks.turns, renderer).pages(),
        *ReportsPages(built.reports, budget, checks.turns, renderer).pages(),
    ]


def _pages_of_tests(
    config: Config,
    built: BuiltOperations,
    mail: MailOfReport,
    budget: CheckBudget,
    renderer: Renderer,
) -> list[Page]:
    operations, domain = built.tests.operations, config.inbox.domain
    deliverability = DeliverabilityPages(
        operations, built.scoring.progress, mail, budget, renderer, domain, mail_server(config)
    )
    return [
        *deliverability.pages(),
        *PreflightPages(operations.manage, built.preflight, budget, renderer).pages(),
        *ComparisonPages(operations.manage, renderer).pages(),
        *ReportFiles(operations.manage, mail, renderer, domain).pages(),
        *ReportPages(operations.manage, mail, built.inbox.check, renderer, domain).pages(),
    ]
