"""``mailcheck score FILE``: score a mail in a file, without a daemon."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import maybeDeferred

from mailcheck.api.deliverability.report import render_report
from mailcheck.api.inbox.checks import render_html_checks, render_pressed
from mailcheck.api.shapes import as_json
from mailcheck.assembly.checks import CheckRuntime, build_checks
from mailcheck.assembly.probes import open_command
from mailcheck.assembly.scoring import build_filters, build_scoring, scoring_settings
from mailcheck.assembly.workers import direct_analysis_worker
from mailcheck.checks.deliverability.content_filter import ABSENT
from mailcheck.checks.deliverability.trace_fields import OwnTrace, read_own_trace
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.press_unsubscribe import PressVerdict, judge_press, not_offered
from mailcheck.checks.quality.receiver_replies import Action, load_profiles
from mailcheck.cli.access.reactor_commands import CountedLookups, set_async_command
from mailcheck.cli.commands import Console, read_input
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.parser import decimal_number
from mailcheck.cli.texts.score_texts import (
    Shape,
    describe_checks,
    describe_pressed,
    describe_report,
)
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.daemon.wall_clock import time_of_day
from mailcheck.operations.deliverability.preflight import check_records, parse_record
from mailcheck.operations.worker_calls import check_raw_mail


class MailOfFile(Struct, frozen=True):
    """A mail, and the parts of its envelope that were read from its header, by option."""

    mail: ReceivedMail
    assumed: Mapping[str, str]


def read_mail_of_file(options: argparse.Namespace, now: Instant) -> MailOfFile:
    """Read the file, and determine the envelope of its mail.

    :raises InvalidParameter: an option is missing or invalid, or the file cannot be read.
    """
    try:
        raw_message = read_input(options.file)
    except OSError as error:
        problem = f"{options.file} cannot be read: {error.strerror}"
        raise InvalidParameter("FILE", problem) from None
    trace = read_own_trace(raw_message) if options.from_headers else OwnTrace()
    given = {"ip": options.ip, "helo": options.helo, "mail-from": options.mail_from}
    read = {"ip": trace.client_ip, "helo": trace.helo_name, "mail-from": trace.envelope_sender}
    assumed = {
        name: value for name, value in read.items() if given[name] is None and value is not None
    }
    facts = {**given, **assumed}
    client_ip, sender = facts["ip"], facts["mail-from"]
    if client_ip is None:
        raise _missing("--ip", "the sending IP address", options)
    if sender is None:
        raise _missing("--mail-from", 'the envelope sender ("<>" for none)', options)
    if parse_ip_address(client_ip) is None:
        raise InvalidParameter("--ip", f"--ip {client_ip[:60]!r} is not an IP address")
    session = Session(client_ip, facts["helo"] or "", is_extended=True)
    envelope_sender = sender.strip().removeprefix("<").removesuffix(">")
    mail = ReceivedMail(session, envelope_sender, trace.received_at or now, raw_message)
    if trace.received_at is not None:
        assumed["received-at"] = format_instant(trace.received_at)
    return MailOfFile(mail, assumed)


def read_records(texts: list[str]) -> tuple[RecordToPublish, ...]:
    """Parse ``--record "name TYPE value"`` options.

    :raises InvalidParameter: names the invalid record.
    """
    records = []
    for number, text in enumerate(texts, 1):
        words = text.split(None, 2)
        parameter = f"--record {number}"
        if len(words) < 3:
            raise InvalidParameter(
                parameter, f'{parameter} is not "name TYPE value", like "example.com TXT v=spf1 mx"'
            )
        records.append(parse_record(*words, parameter=parameter))
    if records:
        check_records(records, parameter="--record")
    return tuple(records)


def _missing(option: str, what: str, options: argparse.Namespace) -> InvalidParameter:
    if options.from_headers:
        problem = f"the topmost trace fields of the file do not contain {what}; set {option}"
    else:
        problem = f"{option} is missing: {what}; --from-headers reads it from the file's header"
    return InvalidParameter(option, problem)


FAIL_UNDER = 8.0
"""Score below which the result is a problem, since a requirement of receivers is missed."""

_NO_FILTER = tuple(problem.value for problem in ABSENT)

EXIT_STATUSES = (
    "Exit status: 0 fine, 1 the score is below --fail-under, a receiver of --as does what"
    " --fail-on names or worse, or a pressed unsubscribe was refused, 2 usage error,"
    " 3 undetermined."
)


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck score``."""
    parser.epilog = EXIT_STATUSES
    parser.add_argument("file", metavar="FILE", help="the mail as it was received; - reads stdin")
    parser.add_argument("--ip", help="the sending IP address")
    parser.add_argument("--helo", help="the HELO name of the sending server")
    parser.add_argument("--mail-from", help='the envelope sender; "<>" for none')
    parser.add_argument(
        "--from-headers",
        action="store_true",
        help="read missing options from the topmost Return-Path and Received fields of the file",
    )
    parser.add_argument(
        "--no-tls", action="store_true", help="the mail was not encrypted although TLS was offered"
    )
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar='"NAME TYPE VALUE"',
        help="evaluate as if this DNS record were published; may be repeated",
    )
    parser.add_argument(
        "--html",
        action="store_true",
        help="also list which mail programs do not support the HTML, and accessibility problems",
    )
    parser.add_argument(
        "--press-unsubscribe",
        action="store_true",
        help="send the one-click unsubscribe request of the mail, which unsubscribes its recipient",
    )
    add_report_options(parser)
    set_async_command(parser, _score)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for printing and judging a report."""
    parser.add_argument("--json", action="store_true", help="print JSON, as the API does")
    parser.add_argument(
        "--fail-under",
        type=decimal_number(0, 10),
        metavar="SCORE",
        help=f"score below which the exit status is 1 (default: {FAIL_UNDER:g}, none with --as)",
    )
    parser.add_argument(
        "--as",
        action="append",
        default=[],
        choices=[profile.id for profile in load_profiles()],
        dest="receivers",
        help="judge the mail by the reply of this receiver; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        choices=[choice.value for choice in (Action.SPAM, Action.DEFER, Action.REJECT)],
        default=Action.REJECT.value,
        help="with --as: the mildest action for which the exit status is 1 (default: reject)",
    )


async def _score(options: argparse.Namespace, console: Console, reactor: Any) -> int:
    lookups = CountedLookups()
    console.progress.text = lookups.describe
    runtime = open_command(console.config, reactor, lookups.watch)
    checks = build_checks(runtime)
    # A file does not tell whether TLS was used, so that is only judged with --no-tls.
    settings = replace(scoring_settings(console.config), offers_tls=lambda _: options.no_tls)
    worker = direct_analysis_worker()
    filters = build_filters(console.config, reactor, worker)
    scoring = build_scoring(runtime, checks, worker, filters, settings)
    filters.service.startService()
    try:
        records = read_records(options.record)
        found = read_mail_of_file(options, time_of_day())
        async with checks.with_tested_lists():
            report = await scoring.score(found.mail, records)
        pressed = None
        if options.press_unsubscribe:
            pressed = await _press_unsubscribe(runtime, found.mail.raw_message)
    except InvalidParameter as problem:
        console.print_note(f"mailcheck: {problem}")
        return EXIT_USAGE
    finally:
        await maybeDeferred(filters.service.stopService)
        await runtime.resolvers.close()
    internet = runtime.resolvers.internet
    if internet is not None and internet.is_closed:
        closed = make_finding("doctor.resolver.closed")
        console.print_note(f"{closed.meaning} {closed.fix}")
    if found.assumed:
        words = ", ".join(f"{name} {value or '<>'}" for name, value in found.assumed.items())
        console.print_note(f"read from the file's own header, not verified: {words}")
    shape = as_json(render_report(report))
    html = None
    if options.html:  # in this process, which has no other work left
        html = as_json(render_html_checks(check_raw_mail(found.mail.raw_message)))
    if options.json:
        more = {} if html is None else {"html": html}
        if pressed is not None:
            more["pressedUnsubscribe"] = pressed
        console.print_json({**shape, "assumed": dict(found.assumed), **more})
    else:
        console.print_lines(describe_report(shape))
        console.print_lines(describe_checks(html) if html is not None else ())
        console.print_lines(describe_pressed(pressed) if pressed is not None else ())
    status = judge_report(shape, options.fail_under, options.receivers, options.fail_on)
    is_refused = pressed is not None and pressed["verdict"] == PressVerdict.REFUSED.value
    return EXIT_PROBLEM if is_refused else status


async def _press_unsubscribe(runtime: CheckRuntime, raw_message: bytes) -> Shape:
    offer = check_raw_mail(raw_message).one_click
    if offer.url:
        pressed = judge_press(await runtime.probes.press_unsubscribe(offer.url))
    else:
        pressed = not_offered(offer)
    found: Shape = as_json(render_pressed(pressed))
    return found


def judge_report(
    report: Shape,
    fail_under: float | None = None,
    receivers: Sequence[str] = (),
    fail_on: str = Action.REJECT.value,
) -> int:
    """Return the exit status of a report, by its score or by the replies of some receivers.

    The score counts if there are no receivers, or if ``fail_under`` is given.

    A missing content filter does not count, since developers seldom have one.
    """
    if fail_under is None and not receivers:
        fail_under = FAIL_UNDER
    if fail_under is not None and report["score"] < fail_under:
        return EXIT_PROBLEM
    if receivers:
        return _judge_replies(report["report"].get("replies", ()), receivers, Action(fail_on))
    unknown = set(report["undetermined"])
    if report["checks"]["spamassassin"]["problem"] in _NO_FILTER:
        unknown.discard("spamassassin")
    return EXIT_UNDETERMINED if unknown else EXIT_FINE


def _judge_replies(replies: Sequence[Shape], wanted: Sequence[str], fail_on: Action) -> int:
    """Return the exit status of the replies of receivers.

    The status is undetermined if a missing answer decides, or if the report has no such reply
    because an earlier version wrote it.
    """
    found = [reply for reply in replies if reply["receiver"] in wanted]
    known = [verdict for verdict in found if verdict["determined"]]
    if any(Action(verdict["action"]).severity >= fail_on.severity for verdict in known):
        return EXIT_PROBLEM
    return EXIT_FINE if len(known) == len(set(wanted)) else EXIT_UNDETERMINED
