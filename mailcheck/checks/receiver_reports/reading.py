"""The reports in a mail or a file: what a child process does with what somebody has sent."""

import re
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

_MARKS = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"
"""Octets before the first character: a byte order mark and blanks."""

_DOMAIN_FIELD = "tls-report-domain"
_REPORT_NAME = re.compile(r"[^!]{1,255}!([^!]{1,255})![0-9]+![0-9]+")
"""RFC 8460 5.1: sender, domain, begin and end."""

_JSON, _HTML = b"{", (b"<html", b"<!doctype html", b"<body", b"<div", b"<p")


class Refused(Struct, frozen=True):
    """A document that is no report, and why."""

    why: str


def read_report_files(data: bytes, name: str = "") -> list[Report | Refused]:
    """Read the reports of a file as `read_report_file` does, or of each mail of a mailbox (mbox).

    Nothing bounds the number of mails but the length of the file: it is the caller's own.

    :raises ReportRefused: as for `read_report_file`.
    """
    mails = split_mailbox(data)
    if not mails:
        return read_report_file(data, name)
    found: list[Report | Refused] = []
    for number, mail in enumerate(mails, 1):
        try:
            found += read_report_mail(mail)
        except ReportRefused as refusal:
            found.append(Refused(f"mail {number}: {refusal}"))
    return found


def split_mailbox(data: bytes) -> list[bytes]:
    """Return the mails of an mbox file (RFC 4155); empty for any other file."""
    if _FROM_LINE.match(data) is None:
        return []
    starts = [match.end() for match in _FROM_LINE.finditer(data)]
    ends = [match.start() for match in _FROM_LINE.finditer(data)][1:]
    pieces = (data[begin:end] for begin, end in zip(starts, [*ends, len(data)], strict=True))
    return [_QUOTED_FROM.sub(rb"\1", piece) for piece in pieces]


_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)


def read_report_file(data: bytes, name: str = "") -> list[Report | Refused]:
    """Read the reports of a file: as a reporter packs them, or the whole mail that brought them.

    :param name: of the file; that of a TLS report has the domain in it.
    :raises ReportRefused: it can't be unpacked, or there is nothing in it like a report.
    """
    if looks_like_report(data):
        domain = _domain_in(name)
        return [_parse(document, domain) for document in Unpacking().documents(data)]
    return read_report_mail(data)


def read_report_mail(raw_message: bytes) -> list[Report | Refused]:
    """Read the reports of a mail, one that has none among them included.

    :raises ReportRefused: there is nothing in the mail like a report.
    """
    found: list[Report | Refused] = []
    unpacking = Unpacking()
    mail = end_lines(raw_message)
    structure = scan_structure(mail)
    said = [one.decode().strip() for one in structure.fields if one.name.lower() == _DOMAIN_FIELD]
    for name, data in _enclosed(mail, structure.root):
        domain = said[0] if said else _domain_in(name)
        try:
            found += [_parse(document, domain) for document in unpacking.documents(data)]
        except ReportRefused as refusal:
            found.append(Refused(str(refusal)))
        if len(found) >= MAX_DOCUMENTS:
            break
    if not found:
        raise ReportRefused("the mail holds no report: neither zip, gzip, XML nor JSON")
    return found[:MAX_DOCUMENTS]


def _domain_in(name: str) -> str:
    """Return the domain that the name of a report's file has in it, or an empty string."""
    found = _REPORT_NAME.match(name.rpartition("/")[2])
    return found[1] if found is not None else ""


def _parse(document: bytes, domain: str) -> Report | Refused:
    try:
        if document.lstrip(_MARKS).startswith(_JSON):
            return parse_tls_report(document, domain)
        return parse_aggregate_report(document)
    except ReportRefused as refusal:
        return Refused(str(refusal))


def _enclosed(raw_message: bytes, root: Entity) -> Iterator[tuple[str, bytes]]:
    """Yield each possible report with its name: data that begins like a report, and packed data."""
    for leaf in _leaves(root):
        if leaf.content_type == "text/html":
            continue
        data = decode_entity(raw_message, leaf)
        start = data[:64].lstrip().lower()
        if looks_packed(data) or (looks_like_report(data) and not start.startswith(_HTML)):
            yield leaf.filename, data


def _leaves(entity: Entity) -> Iterator[Entity]:
    if not entity.parts:
        yield entity
    for part in entity.parts:
        yield from _leaves(part)
