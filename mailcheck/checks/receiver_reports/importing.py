"""Read the files of an import, a few at a time; runs in a child process.

The files stay in the child while they are read, so that the daemon never holds what is in them.
"""

import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.message import Message
from io import BytesIO
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.deliverability.identities import header_of, read_identities
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.receiver_reports.counting import (
    claimed_reporter,
    fill_feedback,
    fill_report,
    row_of_feedback,
    rows_of,
)
from mailcheck.checks.receiver_reports.feedback import NoReport, read_feedback_mail
from mailcheck.checks.receiver_reports.limits import (
    MAX_IMPORTED,
    MAX_IMPORTED_FILES,
    OF_IMPORTS,
)
from mailcheck.checks.receiver_reports.reading import (
    GZIP,
    MAX_LAYERS,
    ZIP,
    RejectedDocument,
    Report,
    Unpacker,
    count_entries,
    files_of,
    looks_like_report,
    read_entry,
    read_report_file,
    read_report_mail,
    split_mailbox,
    zip_errors,
)
from mailcheck.core.domains.receiver_reports import (
    MAX_AHEAD,
    SUMS_KEPT,
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
    ReportWay,
    day_of,
)
from mailcheck.core.errors import ReportRefused, WorkerDied
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant

PIECE_ROWS, PIECE_FILES = 2_000, 500
"""Numbers of rows and files after which a piece ends. Its rows are stored in one transaction, so
incoming mail waits only briefly."""

MAX_OPEN = 4
"""Maximum number of imports whose files the child holds. The one that was opened first is closed
to make room, and opened again by its import."""

NO_REPORT = (
    "it contains no report: no XML, JSON, gzip or zip data with a DMARC or TLS report, and no "
    "failure report"
)

_FROM = b"From "

_FEEDBACK = b"message/feedback-report"

FORM = "multipart/form-data"
"""Media type of an import of several files (RFC 7578)."""


class ReportFile(Struct, frozen=True):
    """A file to import: a report, a mail, a mailbox, an archive, or a form with such files.

    ``media_type`` is only needed for a form. It has the boundary.
    """

    name: str
    data: bytes
    media_type: str = ""


class ImportFacts(Struct, frozen=True):
    """What the child must know: whose import it is, how the files came, and the time.

    ``keeps_mail``: whether personal data of the mails in reports about one mail is stored.
    """

    account_id: AccountId
    way: ReportWay
    now: Instant
    keeps_mail: bool


class ReadReport(Struct, frozen=True):
    """A report in a file, or why there is none.

    ``rows`` are its rows in MessagePack, and ``domains`` its domains.
    """

    name: str
    report: ReceiverReport | None = None
    rows: bytes = b""
    domains: tuple[str, ...] = ()
    why: str = ""


class ImportPiece(Struct, frozen=True):
    """The reports of the next files. ``files`` is the number of these files."""

    files: int
    reports: list[ReadReport]
    is_last: bool


class _File(Struct, frozen=True):
    """A single file or mail, or why it cannot be read.

    ``octets`` were unpacked in vain.
    """

    name: str
    data: bytes
    why: str = ""
    octets: int = 0


_OPEN: dict[str, Iterator[tuple[int, list[ReadReport]]]] = {}
"""The imports whose files this process holds."""

_encode_rows = msgspec.msgpack.Encoder().encode


def open_import(key: str, files: Sequence[ReportFile], facts: ImportFacts, skip: int = 0) -> None:
    """Begin to read the files of an import. The first ``skip`` single files are left out."""
    while len(_OPEN) >= MAX_OPEN:
        del _OPEN[next(iter(_OPEN))]
    _OPEN[key] = _read_files(islice(_single_files(files), skip, None), facts)


def read_piece(key: str, most: int = PIECE_FILES) -> ImportPiece:
    """Read the next files of an import, at most ``most``.

    :raises WorkerDied: this process does not have the files, so the import must be opened again.
    """
    reading = _OPEN.get(key)
    if reading is None:
        raise WorkerDied("the process that reads imports was restarted")
    files, rows, found = 0, 0, list[ReadReport]()
    for row_count, reports in reading:
        files, rows = files + 1, rows + row_count
        found += reports
        if files >= most or rows >= PIECE_ROWS:
            return ImportPiece(files, found, is_last=False)
    del _OPEN[key]
    return ImportPiece(files, found, is_last=True)


def close_import(key: str) -> None:
    """Forget the files of an import."""
    _OPEN.pop(key, None)


def _single_files(files: Sequence[ReportFile]) -> Iterator[_File]:
    room = MAX_IMPORTED
    for number, file in enumerate(_all_files(files)):
        room -= len(file.data) + file.octets
        if number >= MAX_IMPORTED_FILES or room < 0:
            most = f"{MAX_IMPORTED_FILES} files, or {MAX_IMPORTED // 2**20} MB unpacked"
            yield _File(file.name, b"", f"the import has over {most}: send it in parts")
            return
        yield file


def _all_files(files: Sequence[ReportFile]) -> Iterator[_File]:
    for file in files:
        if file.media_type.partition(";")[0].strip().lower() == FORM:
            for name, data in _split_form(file):
                yield from _unpack(name, data)
        else:
            yield from _unpack(file.name, file.data)


def _split_form(form: ReportFile) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a form with their names (RFC 7578 4)."""
    header = Message()
    header["Content-Type"] = form.media_type
    boundary = header.get_boundary() or ""
    if not boundary:
        raise ReportRefused("Content-Type has no boundary")
    start, data = b"--" + boundary.encode("ascii", "replace"), b"\r\n" + form.data
    _require_few(data.count(start))
    place = data.find(b"\r\n" + start)
    while place >= 0:
        begin = place + 2 + len(start)
        place = data.find(b"\r\n" + start, begin)
        fields, _, content = data[begin : place if place >= 0 else None].partition(b"\r\n\r\n")
        part = Message()
        for line in fields.split(b"\r\n"):
            field, _, value = line.decode("utf-8", "replace").partition(":")
            if value:
                part[field.strip()] = value.strip()
        name = part.get_filename("")
        if name and content and place >= 0:
            yield name, content


def _unpack(name: str, data: bytes, layers: int = MAX_LAYERS) -> Iterator[_File]:
    """Yield the files of archives and the mails of mailboxes.

    A file that can only be read as a whole, such as an archive in a mail, is yielded as it is.
    """
    unpacker = Unpacker(OF_IMPORTS)
    try:
        if data.startswith(ZIP) and layers:
            yield from _unzip(name, data, layers)
        elif data.startswith(GZIP) and layers:
            yield from _unpack(name, unpacker.gunzip(data), layers - 1)
        elif mails := _split_few(data):
            for number, mail in enumerate(mails, 1):
                yield _File(name if len(mails) == 1 else f"{name} mail {number}", mail)
        else:
            yield _File(name, data)
    except ReportRefused as refusal:
        yield _File(name, b"", str(refusal), len(data) + unpacker.taken)


def _split_few(data: bytes) -> list[bytes]:
    """Return the mails of a mailbox as `split_mailbox` does, if they are few enough."""
    if data.startswith(_FROM):
        _require_few(data.count(b"\n" + _FROM))
    return split_mailbox(data)


def _require_few(number: int) -> None:
    """Require that a file contains few files, before they take memory.

    :raises ReportRefused: it has too many.
    """
    if number > MAX_IMPORTED_FILES:
        raise ReportRefused(f"it has over {MAX_IMPORTED_FILES} files: send it in parts")


def _unzip(name: str, data: bytes, layers: int) -> Iterator[_File]:
    _require_few(count_entries(data))
    with zip_errors():
        archive = zipfile.ZipFile(BytesIO(data))
    with archive:
        files = files_of(archive)
        if not files:
            raise ReportRefused("the zip file is empty")
        for entry in files:
            inner = name if len(files) == 1 else f"{name}/{entry.filename}"
            try:
                with zip_errors():
                    unpacked = read_entry(archive, entry, OF_IMPORTS.unpacked + 1)
            except ReportRefused as refusal:
                octets = min(entry.file_size, OF_IMPORTS.unpacked)  # before the damage was found
                yield _File(inner, b"", str(refusal), octets)
                continue
            yield from _unpack(inner, unpacked, layers - 1)


def _read_files(
    files: Iterator[_File], facts: ImportFacts
) -> Iterator[tuple[int, list[ReadReport]]]:
    """Yield the reports of each file, and the number of their rows."""
    for file in files:
        try:
            found = _read_file(file, facts)
        except ReportRefused as refusal:
            found = [ReadReport(file.name, why=str(refusal))]
        except MemoryError:
            found = [ReadReport(file.name, why="reading it takes too much memory")]
        reports = [outcome.report for outcome in found if outcome.report is not None]
        yield sum(report.row_count for report in reports), found


def _read_file(file: _File, facts: ImportFacts) -> list[ReadReport]:
    if file.why or not file.data:
        raise ReportRefused(file.why or "it is empty")
    if looks_like_report(file.data):
        documents = read_report_file(file.data, file.name, OF_IMPORTS)
    elif _FEEDBACK in file.data.lower():  # the reported mail may contain reports of others
        return [_read_feedback(file, facts)]
    else:
        try:
            documents = read_report_mail(file.data, OF_IMPORTS)
        except ReportRefused:
            return [_read_feedback(file, facts)]
    return [_stored(file.name, document, facts) for document in documents]


def _stored(name: str, document: Report | RejectedDocument, facts: ImportFacts) -> ReadReport:
    if isinstance(document, RejectedDocument):
        return ReadReport(name, why=document.why)
    _require_period(document.begins_at, document.ends_at, facts)
    kept = fill_report(_kept(document.ends_at, facts), document, claimed_reporter(document))
    rows = list(rows_of(kept, document))
    kept = replace(kept, row_count=len(rows))
    return ReadReport(name, kept, _encode_rows(rows), document.domains)


def _read_feedback(file: _File, facts: ImportFacts) -> ReadReport:
    try:
        report = read_feedback_mail(file.data, facts.keeps_mail)
    except NoReport:
        raise ReportRefused(NO_REPORT) from None
    happened_at = report.feedback.arrived_at or facts.now
    _require_period(happened_at, happened_at, facts)
    authors = read_identities(header_of(file.data)).author_domains
    domain, reporter = registrable_domain(report.domains[0]), authors[0] if authors else ""
    kept = fill_feedback(_kept(happened_at, facts), report, domain, reporter, happened_at)
    kept = replace(kept, row_count=1)
    row = row_of_feedback(kept, report.feedback, happened_at)
    return ReadReport(file.name, kept, _encode_rows([row]), (domain,))


def _require_period(begins_at: Instant, ends_at: Instant, facts: ImportFacts) -> None:
    """Require that a report is not older than its sums are kept, and not about the future.

    An older report could be counted again, since it is known only as long as it is listed.

    :raises ReportRefused: it is.
    """
    if ends_at > facts.now + MAX_AHEAD:
        raise ReportRefused("it ends in the future")
    if day_of(begins_at) <= facts.now - SUMS_KEPT:
        day = datetime.fromtimestamp(begins_at / SECOND, UTC).date()
        raise ReportRefused(f"it is about {day}: the sums of a day are kept for twenty years")


def _kept(ends_at: Instant, facts: ImportFacts) -> ReceiverReport:
    """Return a report without content. Its kind and its id are set later.

    It is sorted by the end of its period, and kept as long as its sums.
    """
    return ReceiverReport(
        ReportId(""),
        facts.account_id,
        ReportKind.DMARC,
        ReportState.COUNTED,
        min(ends_at, facts.now),
        way=facts.way,
    )
