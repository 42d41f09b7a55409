"""Reports that are built to fill memory, to block a process, or to report impossible values."""

import gzip
import io
import zipfile
import zlib

import pytest

from mailcheck.checks.receiver_reports.limits import (
    MAX_DOCUMENTS,
    MAX_EVIDENCE,
    MAX_MEMBERS,
    MAX_NESTING,
    MAX_PROBLEMS,
    MAX_ROWS,
    MAX_TEXT,
    MAX_UNPACKED,
)
from mailcheck.checks.receiver_reports.reading import (
    RejectedDocument,
    read_report_file,
    read_report_mail,
)
from mailcheck.core.errors import ReportRefused
from tests.corpus.report_files import document, gzipped, report_mail, zipped
from tests.table import rows

pytestmark = pytest.mark.attack

GOOD = document("google.xml")
TLS = document("google.json")


def refusal(data: bytes) -> str:
    """Read a rejected file, and return the reason."""
    try:
        (found,) = read_report_file(data)
    except ReportRefused as refused:
        return str(refused)
    assert isinstance(found, RejectedDocument)
    return found.why


def changed(old: str, new: str) -> bytes:
    """Return the good report with one text replaced."""
    assert old.encode() in GOOD
    return GOOD.replace(old.encode(), new.encode(), 1)


def with_more_attachments(mail: bytes, count: int) -> bytes:
    """Return a mail with its attachment ``count`` times more."""
    boundary = b"--" + mail.split(b'boundary="')[1].split(b'"')[0]
    part = mail.split(boundary)[2]
    return mail.replace(boundary + b"--", (boundary + part) * count + boundary + b"--")


def gzip_bomb(size: int) -> bytes:
    """Return ``size`` blanks, compressed in pieces to a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b" " * 2**20
    return b"".join(packer.compress(piece) for _ in range(size // 2**20)) + packer.flush()


@pytest.mark.untraced
def test_bombs_are_not_unpacked() -> None:
    """A file that unpacks to more than 10 MB is rejected in each format, without unpacking it."""
    assert MAX_UNPACKED == 10 * 2**20
    bomb = gzip_bomb(100 * 2**20)
    assert len(bomb) < 150_000
    too_large = "it is over 10 MB unpacked"
    assert refusal(bomb) == too_large
    assert refusal(gzipped(bomb)) == too_large
    assert refusal(zipped(bomb, "a.xml.gz")) == too_large
    assert refusal(zipped(b" " * (MAX_UNPACKED + 1))) == too_large
    assert refusal(b"<" + b" " * MAX_UNPACKED) == too_large
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.xml", b" " * (MAX_UNPACKED // 2))
    assert refusal(many.getvalue()) == too_large
    # Members share the limit: each of them alone would be small enough.
    assert refusal(gzip_bomb(6 * 2**20) * 2) == too_large


def zip_of_folders(number: int) -> bytes:
    """Return a zip file with ``number`` folders and no report."""
    crowd = io.BytesIO()
    with zipfile.ZipFile(crowd, "w") as archive:
        for one in range(number):
            archive.writestr(f"{one}/", b"")
    return crowd.getvalue()


EMPTY_MEMBER = gzip.compress(b"", mtime=0)
PIECES = "its archives have over 1000 members"


@rows(
    EMPTY_MEMBER * (8 * 2**20 // len(EMPTY_MEMBER)),
    zipped(EMPTY_MEMBER * MAX_MEMBERS, "a.gz"),
    gzipped(EMPTY_MEMBER * MAX_MEMBERS),
    b"".join(gzip.compress(b" ", 0, mtime=0) for _ in range(MAX_MEMBERS)) + gzipped(GOOD),
    zip_of_folders(MAX_MEMBERS + 1),
)
def test_crowds_of_pieces_are_not_unpacked(crowd: bytes) -> None:
    """At most 1,000 members and entries are unpacked, however they are nested."""
    assert MAX_MEMBERS == 1_000
    assert refusal(crowd) == PIECES


def test_a_mail_shares_its_room_for_pieces() -> None:
    """The attachments of one mail share the limit of 1,000 members."""
    mail = report_mail(EMPTY_MEMBER * (MAX_MEMBERS // 2), "application/gzip", "r.xml.gz")
    found = read_report_mail(with_more_attachments(mail, 2))
    assert [isinstance(one, RejectedDocument) and one.why == PIECES for one in found] == [
        False,
        False,
        True,
    ]


def test_a_report_in_many_members_is_read() -> None:
    """A report that a parallel packer wrote in hundreds of members is read completely."""
    members = [gzip.compress(GOOD[n : n + 4]) for n in range(0, len(GOOD), 4)]
    assert 400 < len(members) <= MAX_MEMBERS
    (found,) = read_report_file(b"".join(members))
    assert not isinstance(found, RejectedDocument)


def test_packing_that_lies_is_refused() -> None:
    """The reason names a truncated, damaged, encrypted, empty, crowded or nested file."""
    good = gzipped(GOOD)
    assert refusal(good[:-12]) == "the gzip file ends too early"
    assert refusal(good[:20] + b"\xff" * 30 + good[50:]) == "the gzip file is damaged"
    assert refusal(zipped(GOOD)[:-30]) == "the zip file is damaged"
    archive = bytearray(zipped(GOOD))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        archive[archive.index(signature) + offset] |= 1
    assert "encrypted" in refusal(bytes(archive))
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        rare = bytearray(zipped(GOOD, method=method))
        assert "an unusual compression" in refusal(bytes(rare))
        rare[len(rare) // 3] ^= 0xFF
        assert "an unusual compression" in refusal(bytes(rare))
    crowd = io.BytesIO()
    with zipfile.ZipFile(crowd, "w") as files:
        for number in range(MAX_DOCUMENTS + 1):
            files.writestr(f"{number}.xml", b"")
    assert "over 10 files" in refusal(crowd.getvalue())
    nested = GOOD
    for _ in range(4):
        nested = gzip.compress(nested)
    assert "more than" in refusal(nested)


ENTITIES = [
    '<!DOCTYPE f [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
    '<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE f SYSTEM "http://127.0.0.1/x.dtd">',
    "<!DOCTYPE feedback>",
]


@rows(*ENTITIES)
def test_entities_are_never_read(declaration: str) -> None:
    """A document type is rejected before its content is read, even if the XML is broken."""
    assert "entities" in refusal(changed("<feedback>", declaration + "<feedback>"))
    assert "entities" in refusal(changed("<feedback>", "<a>&" + declaration + "<feedback>"))
    assert "entities" in refusal(changed("<feedback>", declaration + "<feedback>")[:-20])


@pytest.mark.untraced
def test_nesting_and_rows_are_limited() -> None:
    """Nested elements and rows have limits, in XML and in JSON."""
    deep = "<a>" * 100_000
    assert f"deeper than {MAX_NESTING}" in refusal(changed("<record>", deep))
    many = "<record/>" * (MAX_ROWS + 1)
    assert f"over {MAX_ROWS} rows" in refusal(changed("<record>", many + "<record>"))
    assert "over 1500000 elements" in refusal(changed("<record>", "<a/>" * 1_500_001 + "<record>"))
    assert "nested too deeply" in refusal(b'{"policies":' + b"[" * 200_000)
    policies = b'"policies":[' + b"1," * MAX_ROWS
    assert "over 30000 policies" in refusal(TLS.replace(b'"policies":[', policies))


def test_long_texts_and_much_evidence_are_cut() -> None:
    """Texts, signatures and reasons of a report are cut to a maximum."""
    (report,) = read_report_file(changed("google.com", "x" * 1_000_000))
    assert not isinstance(report, RejectedDocument)
    assert len(report.organisation) == MAX_TEXT
    signature = "<dkim><domain>a.example</domain><result>pass</result></dkim>"
    reason = "<reason><type>other</type></reason>"
    many = changed("<dkim>\n        <domain>", signature * 1_000 + "<dkim>\n        <domain>")
    many = many.replace(b"</policy_evaluated>", reason.encode() * 1_000 + b"</policy_evaluated>")
    (report,) = read_report_file(many)
    for row in getattr(report, "rows", ()):
        assert len(row.signatures) <= MAX_EVIDENCE
        assert len(row.reasons) <= MAX_EVIDENCE


def test_controls_are_no_text() -> None:
    """Characters that control a terminal or the reading direction are removed."""
    (report,) = read_report_file(changed("google.com", "goo&#9;\u202egle&#x85;.com"))
    assert getattr(report, "organisation", "") == "goo  gle .com"


def test_many_bad_rows_are_said_once() -> None:
    """Thousands of bad rows cause some problems and one with their number."""
    (report,) = read_report_file(changed("<record>", "<record/>" * 5_000 + "<record>"))
    assert not isinstance(report, RejectedDocument)
    assert len(report.problems) == MAX_PROBLEMS + 1
    assert report.problems[-1] == "5000 rows are left out in total"


@rows("", "a b", "[192.0.2.1]", "x" * 70, "192.0.2.1", ".")
def test_a_domain_that_is_none_is_refused(domain: str) -> None:
    """A report about an invalid domain is rejected."""
    text = changed("<domain>example.org</domain>", f"<domain>{domain}</domain>")
    assert refusal(text) == "it does not name its domain"


@rows(
    b"<?xml version='1.0' encoding='klingon'?><feedback/>",
    b"<?xml version='1.0' encoding='utf-7'?><feedback/>",
    b"<html></html>",
    b"<feedback>",
    b"<feedback></feedback>",
    b"<feedback>\x00</feedback>",
    b"\xff\xfe<\x00f\x00",
    b"\xef\xbb\xbf",
    b"{",
    b"{}",
    b'{"policies": 5, "date-range": []}',
    b"<",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"",
    b"no report",
)
def test_what_is_no_report_is_refused(data: bytes) -> None:
    """Any other file is rejected with a reason, and never causes an internal error."""
    assert refusal(data)


def test_a_mail_of_many_bombs_is_cut_short() -> None:
    """Only as many attachments of a mail are read as a mail may have reports."""
    mail = report_mail(gzip_bomb(20 * 2**20), "application/gzip", "r.xml.gz")
    found = read_report_mail(with_more_attachments(mail, 200))
    assert len(found) == MAX_DOCUMENTS
    assert all(isinstance(one, RejectedDocument) for one in found)
