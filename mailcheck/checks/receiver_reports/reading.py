"""The reports in a mail or a file: what a child process does with what somebody has sent."""

from collections.abc import Iterator

from msgspec import Struct

from mailcheck.checks.content.bodies import decode_entity
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.checks.receiver_reports.aggregate import AggregateReport, parse_aggregate_report
from mailcheck.checks.receiver_reports.limits import MAX_DOCUMENTS
from mailcheck.checks.receiver_reports.tls import TlsReport, parse_tls_report
from mailcheck.checks.receiver_reports.unpacking import (
    Unpacking,
    looks_like_report,
    looks_packed,
)
from mailcheck.core.errors import ReportRefused

Report = AggregateReport | TlsReport

_JSON, _HTML = b"{", (b"<html", b"<!doctype html", b"<body", b"<div", b"<p")


class Refused(Struct, frozen=True):
    """A document that is no report, and why."""

    why: str


def read_report_file(data: bytes) -> list[Report | Refused]:
    """Read the reports of a file: as a reporter packs them, or the whole mail that brought them.

    :raises ReportRefused: it can't be unpacked, or there is nothing in it like a report.
    """
    if looks_like_report(data):
        return [_parse(document) for document in Unpacking().documents(data)]
    return read_report_mail(data)


def read_report_mail(raw_message: bytes) -> list[Report | Refused]:
    """Read the reports of a mail, one that has none among them included.

    :raises ReportRefused: there is nothing in the mail like a report.
    """
    found: list[Report | Refused] = []
    unpacking = Unpacking()
    for data in _enclosed(end_lines(raw_message)):
        try:
            found += [_parse(document) for document in unpacking.documents(data)]
        except ReportRefused as refusal:
            found.append(Refused(str(refusal)))
        if len(found) >= MAX_DOCUMENTS:
            break
    if not found:
        raise ReportRefused("the mail holds no report: neither zip, gzip, XML nor JSON")
    return found[:MAX_DOCUMENTS]


def _parse(document: bytes) -> Report | Refused:
    try:
        if document.lstrip().startswith(_JSON):
            return parse_tls_report(document)
        return parse_aggregate_report(document)
    except ReportRefused as refusal:
        return Refused(str(refusal))


def _enclosed(raw_message: bytes) -> Iterator[bytes]:
    """Give what may be a report: a text that begins like one, and whatever is packed."""
    for leaf in _leaves(scan_structure(raw_message).root):
        if leaf.content_type == "text/html":
            continue
        data = decode_entity(raw_message, leaf)
        start = data[:64].lstrip().lower()
        if looks_packed(data) or (looks_like_report(data) and not start.startswith(_HTML)):
            yield data


def _leaves(entity: Entity) -> Iterator[Entity]:
    if not entity.parts:
        yield entity
    for part in entity.parts:
        yield from _leaves(part)
