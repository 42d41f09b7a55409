"""How a mail in a file came in, as the command line says it: nothing is guessed unasked."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mailcheck.checks.deliverability.trace_fields import OwnTrace, read_own_trace
from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.messages import Session
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.operations.deliverability.proposed_records import check_records, parse_record

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class MailOfFile:
    """The mail, and what of its envelope was read from its own header, by option."""

    mail: ReceivedMail
    assumed: Mapping[str, str]


def read_mail_of_file(options: argparse.Namespace, now: Instant) -> MailOfFile:
    """Read the file and put the envelope to it.

    :raises InvalidParameter: an option is missing or can't be what it is.
    :raises OSError: the file can't be read.
    """
    raw_message = _read(options.file)
    trace = read_own_trace(raw_message) if options.from_headers else OwnTrace()
    client_ip = options.ip if options.ip is not None else trace.client_ip
    sender = options.mail_from if options.mail_from is not None else trace.envelope_sender
    helo_name = options.helo if options.helo is not None else trace.helo_name
    if client_ip is None:
        raise _missing("--ip", "the address that the mail came from", options)
    if sender is None:
        raise _missing("--mail-from", 'the envelope sender ("<>" for none)', options)
    if parse_ip_address(client_ip) is None:
        raise InvalidParameter("--ip", f"--ip {client_ip[:60]!r} is not an IP address")
    session = Session(client_ip, helo_name or "", is_extended=True)
    envelope_sender = sender.strip().removeprefix("<").removesuffix(">")
    mail = ReceivedMail(session, envelope_sender, trace.received_at or now, raw_message)
    return MailOfFile(mail, _assumptions(options, trace))


def read_records(texts: list[str]) -> tuple[RecordToPublish, ...]:
    """Read ``--record "name TYPE value"``, given any number of times.

    :raises InvalidParameter: names the record that can't be read.
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


def _read(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    return Path(path).read_bytes()


def _missing(option: str, what: str, options: argparse.Namespace) -> InvalidParameter:
    if options.from_headers:
        problem = f"the file's topmost trace fields don't tell {what}; give {option}"
    else:
        problem = f"{option} is missing: {what}; --from-headers reads it from the file's header"
    return InvalidParameter(option, problem)


def _assumptions(options: argparse.Namespace, trace: OwnTrace) -> dict[str, str]:
    found = {
        "ip": (options.ip, trace.client_ip),
        "helo": (options.helo, trace.helo_name),
        "mail-from": (options.mail_from, trace.envelope_sender),
    }
    assumed = {
        name: read for name, (given, read) in found.items() if given is None and read is not None
    }
    if trace.received_at is not None:
        assumed["received-at"] = format_instant(trace.received_at)
    return assumed
