"""``mailcheck mx|blocklist|reputation|domain``: the checks, without a daemon."""

import argparse
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from mailcheck.api.domains.blocklists import render_blocklist_check, render_no_answer
from mailcheck.api.domains.mx import render_mx_check, render_mx_undetermined
from mailcheck.api.domains.report import render_domain_report
from mailcheck.api.domains.reputation import render_reputation, render_ungradable
from mailcheck.api.shapes import JsonObject, as_json
from mailcheck.assembly.checks import Checks, build_checks
from mailcheck.assembly.probes import open_command
from mailcheck.checks.bimi.record import DEFAULT_SELECTOR
from mailcheck.checks.dnsbl.listings import describe_listings
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.scoring.blacklists import judge_blacklists
from mailcheck.checks.scoring.outcomes import Status
from mailcheck.cli.access.reactor_commands import CountedLookups, set_async_command
from mailcheck.cli.commands import Console, Line
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.texts.check_texts import (
    describe_blocklists,
    describe_domain,
    describe_mx,
    describe_reputation,
)
from mailcheck.config.options import Config
from mailcheck.core.domains.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.check_mx import MxCheck
from mailcheck.operations.domains.compute_reputation import Reputation, ReputationQuery
from mailcheck.operations.domains.describe_domain import DomainReport

FAIL_ON = ("error", "warning", "never")
"""Values of ``--fail-on``. With ``never``, undetermined results still have their exit status."""

_PROBLEMS = {
    "error": (Severity.ERROR,),
    "warning": (Severity.ERROR, Severity.WARNING),
    "never": (),
}

OPTIONAL = ("dane", "dnssec")
"""Mechanisms that need a validating resolver, so they are often undetermined."""


def judge_mx(check: MxCheck, fail_on: str) -> int:
    """Return the exit status of an MX check."""
    return _judge(check.findings, fail_on, is_unknown=bool(check.undetermined))


def judge_blocklists(check: BlocklistCheck, fail_on: str) -> int:
    """Return the exit status of a blocklist check.

    Some blocklists often do not answer. The check is undetermined only if its score would be.
    """
    is_known = judge_blacklists(check.listings).award.is_determined
    return _judge(describe_listings(check.listings), fail_on, is_unknown=not is_known)


def judge_reputation(found: Reputation, fail_on: str) -> int:
    """Return the exit status of a score. A failed factor is an error."""
    if not found.score.is_gradable:
        return EXIT_UNDETERMINED
    known = [factor.status for factor in found.score.factors if factor.is_determined]
    bad = {"error": {Status.FAIL}, "warning": {Status.FAIL, Status.WARN}, "never": set()}
    if bad[fail_on] & set(known):
        return EXIT_PROBLEM
    return EXIT_UNDETERMINED if found.score.undetermined else EXIT_FINE


def judge_domain(report: DomainReport, fail_on: str) -> int:
    """Return the exit status of a domain report."""
    findings = [finding for found in report.findings.values() for finding in found]
    unknown = [
        finding
        for name, found in report.findings.items()
        for finding in found
        if name not in OPTIONAL and finding.severity is Severity.UNDETERMINED
    ]
    return _judge(findings, fail_on, is_unknown=bool(unknown))


def _judge(findings: Iterable[Finding], fail_on: str, *, is_unknown: bool) -> int:
    if any(finding.severity in _PROBLEMS[fail_on] for finding in findings):
        return EXIT_PROBLEM
    return EXIT_UNDETERMINED if is_unknown else EXIT_FINE


class Result(Struct, frozen=True):
    """The result of a check: as JSON, as text and as an exit status."""

    shape: JsonObject
    describe: Callable[[], list[Line]]
    status: int


Check = Callable[[argparse.Namespace, Checks, Config], Coroutine[Any, Any, Result]]


def add_mx(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck mx``."""
    _add_check(parser, _mx, "a domain")


def add_blocklist(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck blocklist``."""
    _add_check(parser, _blocklist, "a domain or an IP address")


def add_reputation(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck reputation``."""
    _add_check(parser, _reputation, "a domain")
    _add_selectors(parser)
    parser.add_argument("--ip", action="append", default=[], help="a sending host; may be repeated")


def add_domain(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck domain``."""
    _add_check(parser, _domain, "a domain")
    _add_selectors(parser)
    parser.add_argument(
        "--bimi-selector",
        default=DEFAULT_SELECTOR,
        metavar="SELECTOR",
        help="selector of the logo, as in the field BIMI-Selector of a mail (default)",
    )


def _add_check(parser: argparse.ArgumentParser, check: Check, name: str) -> None:
    parser.epilog = "Exit status: 0 fine, 1 problem, 2 usage error, 3 undetermined."
    parser.add_argument("name", metavar="NAME", help=name)
    parser.add_argument("--json", action="store_true", help="print JSON, as the API does")
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="severity that counts as a problem (error); warning includes errors",
    )

    async def work(options: argparse.Namespace, console: Console, reactor: Any) -> int:
        lookups = CountedLookups()
        console.progress.text = lookups.describe
        runtime = open_command(console.config, reactor, lookups.watch)
        try:
            runtime.probes.open()
            result = await check(options, build_checks(runtime), console.config)
        except InvalidParameter as problem:
            console.print_note(f"mailcheck: {problem}")
            return EXIT_USAGE
        finally:
            await runtime.close()
        if options.json:
            console.print_json(result.shape)
        else:
            console.print_lines(result.describe())
        return result.status

    set_async_command(parser, work)


def _add_selectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--selector", action="append", default=[], help="a DKIM selector; may be repeated"
    )


async def _mx(options: argparse.Namespace, checks: Checks, config: Config) -> Result:
    check = await checks.mx.check(
        parse_domain(options.name, name="NAME", allow_special_use=config.dns.allow_special_use)
    )
    render = render_mx_undetermined if check.undetermined else render_mx_check
    return Result(
        as_json(render(check)), lambda: describe_mx(check), judge_mx(check, options.fail_on)
    )


async def _blocklist(options: argparse.Namespace, checks: Checks, config: Config) -> Result:
    query = parse_blocklist_query(
        options.name,
        name="NAME",
        allow_special_use=config.dns.allow_special_use,
        allow_private=config.network.allow_private,
    )
    async with checks.with_tested_lists():
        check = await checks.blocklists.check(query)
    render = render_no_answer if check.has_no_answer else render_blocklist_check
    return Result(
        as_json(render(check)),
        lambda: describe_blocklists(check),
        judge_blocklists(check, options.fail_on),
    )


async def _reputation(options: argparse.Namespace, checks: Checks, config: Config) -> Result:
    query = ReputationQuery(
        parse_domain(options.name, name="NAME", allow_special_use=config.dns.allow_special_use),
        tuple(parse_selector(text, name="--selector") for text in options.selector),
        tuple(
            parse_host_address(text, name="--ip", allow_private=config.network.allow_private)
            for text in options.ip
        ),
    )
    async with checks.with_tested_lists():
        found = await checks.reputation.compute(query)
    render = render_reputation if found.score.is_gradable else render_ungradable
    return Result(
        as_json(render(found)),
        lambda: describe_reputation(found),
        judge_reputation(found, options.fail_on),
    )


async def _domain(options: argparse.Namespace, checks: Checks, config: Config) -> Result:
    report = await checks.domain.describe(
        parse_domain(options.name, name="NAME", allow_special_use=config.dns.allow_special_use),
        tuple(parse_selector(text, name="--selector") for text in options.selector),
        logo_selector=parse_selector(options.bimi_selector, name="--bimi-selector"),
    )
    return Result(
        as_json(render_domain_report(report)),
        lambda: describe_domain(report),
        judge_domain(report, options.fail_on),
    )
