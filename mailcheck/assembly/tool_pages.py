"""Builds the pages of the tools: domain checks, blocklists, deliverability tests."""

from collections.abc import Callable
from typing import Any

from mailcheck.assembly.dashboard import check_budget
from mailcheck.assembly.deployment import mail_server
from mailcheck.assembly.rest_and_mcp import BuiltOperations
from mailcheck.config.options import Config
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.operations.doctor import Doctor
from mailcheck.operations.ports import Now
from mailcheck.web.dashboard.accounts.doctor_pages import DoctorPages
from mailcheck.web.dashboard.deliverability.live import DeliverabilityLivePages
from mailcheck.web.dashboard.deliverability.pages import DeliverabilityPages
from mailcheck.web.dashboard.deliverability.preflight import PreflightPages
from mailcheck.web.dashboard.deliverability.report_pages import ReportPages
from mailcheck.web.dashboard.domains.blocklist_pages import BlocklistPages
from mailcheck.web.dashboard.domains.pages import DomainPages
from mailcheck.web.dashboard.domains.view import NameRules
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page


def tool_pages(
    config: Config, built: BuiltOperations, meter: RequestMeter, now: Now, reactor: Any
) -> Callable[[Renderer], list[Page]]:
    """Give what makes the pages, once there is a renderer.

    They are to come before the pages of shared messages (`ReportPages.pages`).
    """
    budget = check_budget(config, meter)
    rules = NameRules(config.dns.allow_special_use, config.network.allow_private)
    checks, operations = built.checks, built.tests.operations
    domain = config.inbox.domain

    def doctor() -> Doctor:
        # Imported here: it is no part of the start, and seldom asked for.
        from mailcheck.assembly.doctor import DoctorAssembly
        from mailcheck.assembly.probes import Probes

        return DoctorAssembly(
            config, reactor, checks, Probes(config, reactor, checks.resolvers.plain)
        ).doctor

    def make(renderer: Renderer) -> list[Page]:
        deliverability = DeliverabilityPages(
            operations, budget, renderer, domain, mail_server(config)
        )
        return [
            *DomainPages(checks.reputation, checks.domain, budget, renderer, rules).pages(),
            *BlocklistPages(checks.blocklists, budget, renderer, rules).pages(),
            *deliverability.pages(),
            *DoctorPages(doctor, renderer).pages(),
            *DeliverabilityLivePages(operations.wait, now).pages(),
            *PreflightPages(operations.find, built.preflight, budget, renderer).pages(),
            *ReportPages(operations.share, renderer, domain).pages(),
        ]

    return make
