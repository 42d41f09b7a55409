"""Find and unpack the reports in a mail or a file; runs in a child process."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise

from msgspec import Struct

from mailcheck.checks.content.bodies import decode_entity
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.structure import Entity, scan_structure
from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.aggregate_xml import parse_aggregate_report
from mailcheck.checks.receiver_reports.limits import OF_STRANGERS, FileLimits
from mailcheck.checks.receiver_reports.tls import TlsReport, parse_tls_report
from mailcheck.core.errors import ReportRefused

Report = AggregateReport | TlsReport

_BEFORE_TEXT = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"
"""Octets before the first character: a byte order mark and whitespace."""

_DOMAIN_FIELD = "tls-report-domain"
_REPORT_NAME = re.compile(r"[^!]{1,255}!([^!]{1,255})![0-9]+![0-9]+")
"""RFC 8460 5.1: sender, domain, begin and end."""

_JSON, _HTML = b"{", (b"<html", b"<!doctype html", b"<body", b"<div", b"<p")


_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)


class RejectedDocument(Struct, frozen=True):
    """A document that is not a valid report, and the reason."""

    why: str


def read_report_files(data: bytes, name: str = "") -> list[Report | RejectedDocument]:
    """Read the reports of a file as `read_report_file` does, or of each mail in an mbox file.

    The number of mails is not limited, because the file is the caller's own.

    :raises ReportRefused: as for `read_report_file`.
    """
    mails = split_mailbox(data)
    if not mails:
        return read_report_file(data, name)
    found: list[Report | RejectedDocument] = []
    for number, mail in enumerate(mails, 1):
        try:
            found += read_report_mail(mail)
        except ReportRefused as refusal:
            found.append(RejectedDocument(f"mail {number}: {refusal}"))
    return found


def split_mailbox(data: bytes) -> list[bytes]:
    """Return the mails of an mbox file (RFC 4155), or an empty list for any other file."""
    if _FROM_LINE.match(data) is None:
        return []
    lines = [match.span() for match in _FROM_LINE.finditer(data)]
    pairs = pairwise([*lines, (len(data), 0)])
    return [_QUOTED_FROM.sub(rb"\1", data[begin:end]) for (_, begin), (end, _) in pairs]


def read_report_file(
    data: bytes, name: str = "", limits: FileLimits = OF_STRANGERS
) -> list[Report | RejectedDocument]:
    """Read the reports of a file: a packed or plain report, or a whole mail with reports.

    :param name: name of the file; that of a TLS report contains the domain.
    :raises ReportRefused: the file cannot be unpacked, or contains no report.
    """
    if looks_like_report(data):
        domain = _domain_in(name)
        return [_parse(document, domain) for document in Unpacker(limits).documents(data)]
    return read_report_mail(data, limits)


def read_report_mail(
    raw_message: bytes, limits: FileLimits = OF_STRANGERS
) -> list[Report | RejectedDocument]:
    """Read the reports of a mail, including documents that are not valid reports.

    :raises ReportRefused: the mail contains no report.
    """
    found: list[Report | RejectedDocument] = []
    unpacking = Unpacker(limits)
    mail = end_lines(raw_message)
    structure = scan_structure(mail)
    fields = [
        field.decode().strip() for field in structure.fields if field.name.lower() == _DOMAIN_FIELD
    ]
    for name, data in _enclosed(mail, structure.root):
        domain = fields[0] if fields else _domain_in(name)
        try:
            found += [_parse(document, domain) for document in unpacking.documents(data)]
        except ReportRefused as refusal:
            found.append(RejectedDocument(str(refusal)))
        if len(found) >= limits.documents:
            break
    if not found:
        raise ReportRefused("the mail contains no report: no zip, gzip, XML or JSON data")
    return found[: limits.documents]


def _domain_in(name: str) -> str:
    """Return the domain in the name of a report file, or an empty string."""
    found = _REPORT_NAME.match(name.rpartition("/")[2])
    return found[1] if found is not None else ""


def _parse(document: bytes, domain: str) -> Report | RejectedDocument:
    try:
        if document.lstrip(_BEFORE_TEXT).startswith(_JSON):
            return parse_tls_report(document, domain)
        return parse_aggregate_report(document)
    except ReportRefused as refusal:
        return RejectedDocument(str(refusal))


def _enclosed(raw_message: bytes, root: Entity) -> Iterator[tuple[str, bytes]]:
    """Yield each possible report with its name: packed data, XML and JSON."""
    for leaf in root.leaves():
        if leaf.content_type == "text/html":
            continue
        data = decode_entity(raw_message, leaf)
        start = data[:64].lstrip().lower()
        if looks_packed(data) or (looks_like_report(data) and not start.startswith(_HTML)):
            yield leaf.filename, data


# Unpacking zip and gzip. File name and media type are ignored: reporters use
# ``application/octet-stream``, ``text/xml`` and worse.

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"

MAX_LAYERS = 3
"""Maximum number of nested archives; some reporters put a ``.xml.gz`` into a zip."""

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_JUNK = b"\0 \t\r\n"
_USUAL = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Usual compression methods. Others that Python supports use more memory than they unpack."""

_EITHER_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

_CHUNK = 16_384
"""Octets passed to zlib at a time. zlib copies the data after a member, so each member costs its
own length and at most one such piece, even in a long file."""

_STEP = 262_144
"""Octets that zlib returns at a time."""

_ENTRY_OF_ZIP = b"PK\x01\x02"


def looks_packed(data: bytes) -> bool:
    """Return whether data begins like a zip or gzip file."""
    return data.startswith((GZIP, ZIP))


def looks_like_report(data: bytes) -> bool:
    """Return whether data may be a report: packed, XML, or a JSON object."""
    start = data[:256].lstrip(_JUNK)
    return looks_packed(data) or start.startswith((b"<", b"{", *_BYTE_ORDER_MARKS))


class Unpacker:
    """Unpacks the files of one mail, or one file, within limits.

    Files, layers and members share the limits of octets and members.
    """

    def __init__(self, limits: FileLimits = OF_STRANGERS) -> None:
        self._limits = limits
        self._room = limits.unpacked
        self._members = limits.members

    @property
    def taken(self) -> int:
        """The number of octets that were unpacked, also of files that exceed a limit."""
        return self._limits.unpacked - self._room

    def documents(self, data: bytes) -> list[bytes]:
        """Return the unpacked documents; data that is not packed is returned unchanged.

        :raises ReportRefused: the data cannot be unpacked, or exceeds a limit.
        """
        return list(self._unpack(data, MAX_LAYERS))

    def _unpack(self, data: bytes, layers: int) -> Iterator[bytes]:
        if not looks_packed(data):
            if len(data) > self._limits.unpacked:
                raise self._too_large()
            stripped = data.strip(_JUNK) if data[:2] not in _BYTE_ORDER_MARKS else data
            yield from _split(stripped, self._limits.documents)
            return
        if not layers:
            raise ReportRefused(f"it has more than {MAX_LAYERS} nested archives")
        for inner in self._unzip(data) if data.startswith(ZIP) else (self.gunzip(data),):
            yield from self._unpack(inner, layers - 1)

    def gunzip(self, data: bytes) -> bytes:
        """Unpack all members of a gzip file (RFC 1952 2.2); data after them is ignored.

        :raises ReportRefused: the file is damaged, or exceeds a limit.
        """
        pieces: list[bytes] = []
        position = 0
        while data.startswith(GZIP, position):
            self._count_members(1)
            member = zlib.decompressobj(_EITHER_GZIP_OR_ZLIB)
            while not member.eof:
                chunk = member.unconsumed_tail
                if not chunk:
                    chunk = data[position : position + _CHUNK]
                    position += len(chunk)
                if not chunk:
                    raise ReportRefused("the gzip file ends too early")
                # In small steps, so that what is unpacked before the damage is counted.
                try:
                    pieces.append(self._take(member.decompress(chunk, min(self._room + 1, _STEP))))
                except zlib.error:
                    raise ReportRefused("the gzip file is damaged") from None
            position -= len(member.unused_data)
        return b"".join(pieces)

    def _count_members(self, number: int) -> None:
        self._members -= number
        if self._members < 0:
            raise ReportRefused(f"its archives have over {self._limits.members} members")

    def _unzip(self, data: bytes) -> Iterator[bytes]:
        # zipfile creates an object for each entry before the entries can be counted.
        self._count_members(count_entries(data))
        with zip_errors(), zipfile.ZipFile(BytesIO(data)) as archive:
            files = files_of(archive)
            if not files:
                raise ReportRefused("the zip file is empty")
            if len(files) > self._limits.documents:
                raise ReportRefused(f"the zip file has over {self._limits.documents} files")
            for member in files:
                yield self._take(read_entry(archive, member, self._room + 1))

    def _take(self, unpacked: bytes) -> bytes:
        if len(unpacked) > self._room:
            self._room = 0  # of a mail with many zip bombs only one is unpacked
            raise self._too_large()
        self._room -= len(unpacked)
        return unpacked

    def _too_large(self) -> ReportRefused:
        return ReportRefused(f"it is over {self._limits.unpacked // 2**20} MB unpacked")


def count_entries(data: bytes) -> int:
    """Return at least the number of entries of a zip file, without reading them."""
    return data.count(_ENTRY_OF_ZIP)


def files_of(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the entries of a zip file that may be reports."""
    return [packed for packed in archive.infolist() if not _is_not_a_report(packed.filename)]


def read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """Return the first ``most`` octets of a file in a zip file; see `zip_errors`.

    :raises ReportRefused: its compression method is unusual.
    """
    if entry.compress_type not in _USUAL:
        raise _unsupported()
    with archive.open(entry) as file:
        return file.read(most)


@contextmanager
def zip_errors() -> Iterator[None]:
    """Turn the errors of a damaged zip file into refusals. A context manager.

    :raises ReportRefused: the file is damaged, encrypted, or uses an unusual method.
    """
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, IndexError):
        raise ReportRefused("the zip file is damaged") from None
    except (NotImplementedError, RuntimeError):
        raise _unsupported() from None


_END = b"</feedback>"
_BETWEEN = re.compile(rb"(?<=</feedback>)\s*(?=<\?xml|<feedback)")


def _split(document: bytes, most: int) -> list[bytes]:
    """Return the DMARC reports of a document that contains several in sequence.

    :raises ReportRefused: there are more than ``most``.
    """
    if document.count(_END) < 2:
        return [document]
    reports = _BETWEEN.split(document, most)
    if len(reports) > most:
        raise ReportRefused(f"it contains over {most} reports")
    return reports


def _is_not_a_report(name: str) -> bool:
    """Return whether an archive member is not a report: a folder, or a file added by macOS."""
    return name.endswith("/") or name.startswith("__MACOSX/")


def _unsupported() -> ReportRefused:
    return ReportRefused("the zip file is encrypted, or uses an unusual compression method")
