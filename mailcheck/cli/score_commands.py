"""``mailcheck score FILE``: the score of a mail in a file, without a daemon."""

import argparse
import json
import os
from dataclasses import replace
from typing import Any

from twisted.internet.defer import maybeDeferred

from mailcheck.assembly.checks import ChecksAssembly, open_resolvers
from mailcheck.assembly.probes import Probes
from mailcheck.assembly.scoring import ScoringAssembly, scoring_settings
from mailcheck.assembly.workers import direct_analysis_worker
from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.cli.check_progress import Progress
from mailcheck.cli.check_texts import Painter
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.on_reactor import on_reactor
from mailcheck.cli.score_envelope import MailOfFile, read_mail_of_file, read_records
from mailcheck.cli.score_texts import Shape, describe_report
from mailcheck.cluster.local import LocalRateCounters
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import instant_of
from mailcheck.wire.deliverability.report import render_report
from mailcheck.wire.shapes import as_json

FAIL_UNDER = 8.0
"""A score below it is a problem: something that receivers ask for is missing."""

_NO_FILTER = (FilterProblem.OFF.value, FilterProblem.NOT_INSTALLED.value)

EXIT_STATUSES = (
    "Exit status: 0 fine, 1 the score is below --fail-under, 2 usage, 3 something could not be"
    " determined."
)


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck score``."""
    parser.epilog = EXIT_STATUSES
    parser.add_argument("file", metavar="FILE", help="the mail as it was received; - reads stdin")
    parser.add_argument("--ip", help="the address that the mail came from")
    parser.add_argument("--helo", help="the name with which the sending server greeted")
    parser.add_argument("--mail-from", help='the envelope sender; "<>" for none')
    parser.add_argument(
        "--from-headers",
        action="store_true",
        help="read what is not given from the topmost Return-Path and Received of the file",
    )
    parser.add_argument(
        "--no-tls", action="store_true", help="the mail came without encryption, which was offered"
    )
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar='"NAME TYPE VALUE"',
        help="judge as if this DNS record were published; may be repeated",
    )
    add_report_options(parser)
    parser.set_defaults(command=_score)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a report is printed and judged."""
    parser.add_argument("--json", action="store_true", help="print JSON, as the API does")
    parser.add_argument(
        "--fail-under",
        type=float,
        default=FAIL_UNDER,
        metavar="SCORE",
        help=f"what counts as a problem ({FAIL_UNDER:g})",
    )


def _score(options: argparse.Namespace, console: Console) -> int:
    try:
        found, report = _run(options, console)
    except InvalidParameter as problem:
        console.remark(f"mailcheck: {problem}")
        return EXIT_USAGE
    if found.assumed:
        words = ", ".join(f"{name} {value or '<>'}" for name, value in found.assumed.items())
        console.remark(f"read from the file's own header, not verified: {words}")
    shape = as_json(render_report(report))
    if options.json:
        assumed = {**shape, "assumed": dict(found.assumed)}
        console.say(json.dumps(assumed, indent=2, ensure_ascii=False))
    else:
        for line in describe_report(shape, Painter(is_coloured=console.is_coloured)):
            console.say(line)
    return judge_report(shape, options.fail_under)


def judge_report(report: Shape, fail_under: float) -> int:
    """Give the exit status of a report.

    A content filter that is not there is the usual case on a developer's machine.
    """
    if report["score"] < fail_under:
        return EXIT_PROBLEM
    unknown = set(report["undetermined"])
    if report["checks"]["spamassassin"]["problem"] in _NO_FILTER:
        unknown.discard("spamassassin")
    return EXIT_UNDETERMINED if unknown else EXIT_FINE


def _run(options: argparse.Namespace, console: Console) -> tuple[MailOfFile, DeliverabilityReport]:
    """Score it."""

    async def work(reactor: Any) -> tuple[MailOfFile, DeliverabilityReport]:
        progress = Progress(reactor, console.errors)
        resolvers = open_resolvers(console.config, reactor, os.urandom, progress.watch)
        outside = Probes(console.config, reactor, resolvers.plain)
        checks = ChecksAssembly(
            console.config, reactor, os.urandom, resolvers, outside, LocalRateCounters()
        )
        # Whether there was TLS is not known of a file: said, or not judged.
        settings = replace(scoring_settings(console.config), offers_tls=lambda _: options.no_tls)
        scoring = ScoringAssembly(
            console.config, settings, reactor, direct_analysis_worker(), lambda: checks
        )
        scoring.filter.service.startService()
        try:
            records = read_records(options.record)
            found = read_mail_of_file(options, instant_of(reactor.seconds()))
            return found, await scoring.score(found.mail, records)
        finally:
            progress.end()
            await maybeDeferred(scoring.filter.service.stopService)
            await resolvers.close()

    return on_reactor(work)
