"""``mailcheck mx|blacklist|reputation|domain``: the checks alone, without a daemon."""

import argparse
import json
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from mailcheck.assembly.checks import ChecksAssembly, open_resolvers
from mailcheck.assembly.probes import Probes
from mailcheck.cli.check_progress import Progress
from mailcheck.cli.check_texts import (
    Painter,
    describe_blocklists,
    describe_domain,
    describe_mx,
    describe_reputation,
)
from mailcheck.cli.check_verdicts import (
    FAIL_ON,
    judge_blocklists,
    judge_domain,
    judge_mx,
    judge_reputation,
)
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_USAGE
from mailcheck.cli.on_reactor import on_reactor
from mailcheck.cluster.local import LocalRateCounters
from mailcheck.core.domain_names import (
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.wire.domains.blocklists import render_blocklist_check, render_no_answer
from mailcheck.wire.domains.mx import render_mx_check, render_mx_undetermined
from mailcheck.wire.domains.report import render_domain_report
from mailcheck.wire.domains.reputation import render_reputation, render_ungradable
from mailcheck.wire.json_values import JsonObject
from mailcheck.wire.shapes import as_json

Lines = list[str]


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found: for scripts, for people, and as an exit status."""

    shape: JsonObject
    describe: Callable[[Painter], Lines]
    status: int


Check = Callable[[argparse.Namespace, ChecksAssembly, bool, bool], Coroutine[Any, Any, Result]]


def add_mx(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck mx``."""
    _add_check(parser, _mx, "a domain")


def add_blacklist(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck blacklist``."""
    _add_check(parser, _blacklist, "a domain or an IP address")


def add_reputation(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck reputation``."""
    _add_check(parser, _reputation, "a domain")
    _add_selectors(parser)
    parser.add_argument("--ip", action="append", default=[], help="a sending host; may be repeated")


def add_domain(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck domain``."""
    _add_check(parser, _domain, "a domain")
    _add_selectors(parser)


def _add_check(parser: argparse.ArgumentParser, check: Check, name: str) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", help=name)
    parser.add_argument("--json", action="store_true", help="print JSON, as the API does")
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="what counts as a problem (error); warning counts errors as well",
    )
    parser.set_defaults(command=_command(check))


def _add_selectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--selector", action="append", default=[], help="a DKIM selector; may be repeated"
    )


_EPILOG = "Exit status: 0 fine, 1 problem, 2 usage, 3 could not be determined."


def _command(check: Check) -> Callable[[argparse.Namespace, Console], int]:
    def run(options: argparse.Namespace, console: Console) -> int:
        try:
            result = _run_checks(options, console, check)
        except InvalidParameter as problem:
            console.remark(f"mailcheck: {problem}")
            return EXIT_USAGE
        if options.json:
            console.say(json.dumps(result.shape, indent=2, ensure_ascii=False))
        else:
            painter = Painter(is_coloured=console.is_coloured)
            for line in result.describe(painter):
                console.say(line)
        return result.status

    return run


def _run_checks(options: argparse.Namespace, console: Console, check: Check) -> Result:
    """Run a check."""

    async def work(reactor: Any) -> Result:
        progress = Progress(reactor, console.errors)
        resolvers = open_resolvers(console.config, reactor, os.urandom, progress.watch)
        outside = Probes(console.config, reactor, resolvers.plain)
        try:
            outside.open()
            checks = ChecksAssembly(
                console.config, reactor, os.urandom, resolvers, outside, LocalRateCounters()
            )
            allowed = console.config.dns.allow_special_use, console.config.network.allow_private
            return await check(options, checks, *allowed)
        finally:
            progress.end()
            outside.stop()
            await resolvers.close()

    return on_reactor(work)


async def _mx(
    options: argparse.Namespace, checks: ChecksAssembly, special: bool, private: bool
) -> Result:
    check = await checks.mx.check(
        parse_domain(options.name, name="NAME", allow_special_use=special)
    )
    render = render_mx_undetermined if check.undetermined else render_mx_check
    return Result(
        as_json(render(check)),
        lambda painter: describe_mx(check, painter),
        judge_mx(check, options.fail_on),
    )


async def _blacklist(
    options: argparse.Namespace, checks: ChecksAssembly, special: bool, private: bool
) -> Result:
    query = parse_blocklist_query(
        options.name, name="NAME", allow_special_use=special, allow_private=private
    )
    check = await checks.blocklists.check(query)
    render = render_no_answer if check.has_no_answer else render_blocklist_check
    return Result(
        as_json(render(check)),
        lambda painter: describe_blocklists(check, painter),
        judge_blocklists(check, options.fail_on),
    )


async def _reputation(
    options: argparse.Namespace, checks: ChecksAssembly, special: bool, private: bool
) -> Result:
    query = ReputationQuery(
        parse_domain(options.name, name="NAME", allow_special_use=special),
        tuple(parse_selector(text, name="--selector") for text in options.selector),
        tuple(parse_host_address(text, name="--ip", allow_private=private) for text in options.ip),
    )
    found = await checks.reputation.compute(query)
    render = render_reputation if found.score.is_gradable else render_ungradable
    return Result(
        as_json(render(found)),
        lambda painter: describe_reputation(found, painter),
        judge_reputation(found, options.fail_on),
    )


async def _domain(
    options: argparse.Namespace, checks: ChecksAssembly, special: bool, private: bool
) -> Result:
    report = await checks.domain.describe(
        parse_domain(options.name, name="NAME", allow_special_use=special),
        tuple(parse_selector(text, name="--selector") for text in options.selector),
    )
    return Result(
        as_json(render_domain_report(report)),
        lambda painter: describe_domain(report, painter),
        judge_domain(report, options.fail_on),
    )
