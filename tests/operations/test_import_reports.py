"""Importing reports that an account already has."""

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail

from mailcheck.assembly.workers import Workers
from mailcheck.checks.receiver_reports import importing, limits
from mailcheck.checks.receiver_reports.importing import (
    FORM,
    MAX_OPEN,
    ImportFacts,
    ReportFile,
    open_import,
    read_piece,
)
from mailcheck.checks.receiver_reports.limits import MAX_IMPORTED_FILES
from mailcheck.core.domains.receiver_reports import REPORTS_KEPT, ReportWay
from mailcheck.core.errors import ReportRefused, WorkerDied, WorkTooSlow
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.daemon.retention import ReportRetention
from mailcheck.operations.reports.import_reports import (
    MAX_IMPORTS,
    UNREADABLE,
    ImportedFile,
    ImportOutcome,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.corpus.feedback_mails import feedback_file
from tests.corpus.report_files import FOLDER, document, gzipped, report_mail, zipped
from tests.fakes.report_senders import DOMAIN, RECEIVERS, reports_zone, signed_report
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.reporting import address, reporting_house, send

NEW, KNOWN, REJECTED = ImportOutcome


@pytest.fixture
def house() -> House:
    """A house that accepts reports."""
    return reporting_house(reports_zone())


def bring(
    house: House, *files: ReportFile, way: ReportWay = ReportWay.UPLOADED
) -> Sequence[ImportedFile]:
    """Import files for the first account."""
    importing = house.assembly.reports.operations.importing
    found: Sequence[ImportedFile] = run(importing.import_reports(house.account.id, files, way))
    return found


def outcomes(found: Sequence[ImportedFile]) -> list[tuple[str, ImportOutcome]]:
    """Return the names and outcomes of imported files."""
    return [(one.name, one.outcome) for one in found]


def zip_of(files: dict[str, bytes]) -> bytes:
    """Return an archive of files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


GOOGLE = document("google.xml")
MAIL = report_mail(gzipped(GOOGLE), "application/gzip", "r.xml.gz")
MBOX = b"".join(
    b"From x@y.example Fri Nov 20 03:00:00 2026\n" + mail.replace(b"\r\n", b"\n") + b"\n"
    for mail in (MAIL, report_mail(document("google.json"), "application/json", "t.json"))
)
FAILURE = feedback_file("rfc9991.eml").replace(b"19 Jul 2022", b"19 Nov 2026")
FORM_BODY = b"".join(
    b'--b0\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n' % one
    for one in ((b"a.xml", GOOGLE), (b"b.zip", zipped(document("yahoo.xml"))))
)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (ReportFile("a.xml", GOOGLE), ["a.xml"]),
        (ReportFile("a.xml.gz", gzipped(GOOGLE)), ["a.xml.gz"]),
        (ReportFile("a.zip", zipped(GOOGLE)), ["a.zip"]),
        (ReportFile("a.zip", zipped(gzipped(GOOGLE))), ["a.zip"]),
        (ReportFile("a.json", document("google.json")), ["a.json"]),
        (ReportFile("a.eml", MAIL), ["a.eml"]),
        (ReportFile("a.mbox", MBOX), ["a.mbox mail 1", "a.mbox mail 2"]),
        (ReportFile("a.mbox.gz", gzipped(MBOX)), ["a.mbox.gz mail 1", "a.mbox.gz mail 2"]),
        (ReportFile("ruf.eml", FAILURE), ["ruf.eml"]),
        (
            ReportFile("all.zip", zip_of({"x/a.xml": GOOGLE, "b.eml": MBOX.split(b"\n", 1)[1]})),
            ["all.zip/x/a.xml", "all.zip/b.eml"],
        ),
        (ReportFile("", FORM_BODY + b"--b0--\r\n", f"{FORM}; boundary=b0"), ["a.xml", "b.zip"]),
    ],
    ids=lambda one: one.name if isinstance(one, ReportFile) else "",
)
def test_every_form_of_a_report(house: House, file: ReportFile, names: list[str]) -> None:
    """A report is imported in every form, once; a second import changes nothing."""
    first = bring(house, file)
    assert [one.name for one in first] == names
    assert {one.reason for one in first} == {""}
    assert first[0].outcome is NEW
    assert first[0].report is not None
    assert "." in first[0].report.reporter
    before = house.get("/reports").json
    assert {one.outcome for one in bring(house, file)} == {KNOWN}
    assert house.get("/reports").json == before


def test_the_reports_of_the_corpus(house: House) -> None:
    """Each report of the corpus is imported with all of its rows."""
    names = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".xml", ".json"))
    found = bring(house, *(ReportFile(name, document(name)) for name in names))
    assert outcomes(found) == [(name, NEW) for name in names]
    assert all(one.report is not None and one.report.row_count for one in found)


def test_what_cannot_be_imported(house: House) -> None:
    """A file that is no report says why, and does not keep others from being imported."""
    files = {
        "notes.txt": (b"hello", "it contains no report: no XML"),
        "page.xml": (b"<html></html>", 'it is XML but not a DMARC report: it begins with "html"'),
        "bad.gz": (b"\x1f\x8bno gzip", "the gzip file is damaged"),
        "bad.zip": (b"PK\x03\x04no zip", "the zip file is damaged"),
        "empty.zip": (zip_of({}) or b"", "it contains no report"),
        "old.eml": (feedback_file("rfc5965.eml"), "it is about 2005-03-08"),
    }
    given = [ReportFile(name, data) for name, (data, _) in files.items()]
    found = bring(house, *given, ReportFile("good.xml", GOOGLE))
    assert outcomes(found) == [*((name, REJECTED) for name in files), ("good.xml", NEW)]
    for one in found[:-1]:
        assert one.reason.startswith(files[one.name][1])


@rows(
    ReportFile("many.mbox", b"From x\n\n" * (MAX_IMPORTED_FILES + 2)),
    ReportFile("many.zip", b"PK\x03\x04" + b"PK\x01\x02" * (MAX_IMPORTED_FILES + 1)),
)
def test_too_many_files(house: House, file: ReportFile) -> None:
    """A file with too many files is rejected before they are unpacked."""
    (found,) = bring(house, file)
    assert found.reason == f"it has over {MAX_IMPORTED_FILES} files: send it in parts"


@pytest.mark.parametrize("is_packed_twice", [True, False], ids=["gzip", "zip"])
def test_damaged_files_count(
    house: House, monkeypatch: pytest.MonkeyPatch, is_packed_twice: bool
) -> None:
    """What is unpacked before a file turns out to be damaged counts: it takes as long."""
    monkeypatch.setattr(importing, "MAX_IMPORTED", 3 * limits.MAX_UNPACKED)
    if is_packed_twice:
        begun = gzipped(bytes(limits.MAX_UNPACKED))[:-8]
        data = zip_of({f"{number}.gz": begun + bytes([number]) * 8 for number in range(5)})
    else:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(5):
                archive.writestr(f"{number}.xml", bytes(limits.MAX_UNPACKED))
        crc = zlib.crc32(bytes(limits.MAX_UNPACKED)).to_bytes(4, "little")
        data = packed.getvalue().replace(crc, bytes(4))
    found = bring(house, ReportFile("a.zip", data))
    assert len(found) < 5
    assert "is damaged" in found[0].reason
    assert found[-1].reason.endswith("send it in parts")


def test_a_form_with_too_many_fields(house: House) -> None:
    """A form with too many fields is an error."""
    body = b"--b\r\n" * (MAX_IMPORTED_FILES + 1)
    with pytest.raises(ReportRefused, match="send it in parts"):
        bring(house, ReportFile("", body, f"{FORM}; boundary=b"))


def test_old_reports_become_sums(house: House) -> None:
    """A report of years ago is counted by day, and stays known when its rows are gone."""
    begin = (house.assembly.runtime.now() - 3 * REPORTS_KEPT) // SECOND
    aged = GOOGLE.replace(b"1795046400", b"%d" % begin).replace(b"1795132799", b"%d" % (begin + 1))
    assert [one.outcome for one in bring(house, ReportFile("old.xml", aged))] == [NEW]
    retention = ReportRetention(house.assembly.reports.store, house.assembly.runtime.now)
    run(retention.sweep())
    assert [one.outcome for one in bring(house, ReportFile("old.xml", aged))] == [KNOWN]
    run(retention.sweep())
    found = house.get(f"/reports/dmarc?domain={DOMAIN}").json
    (month,) = found["earlier"]
    assert (month["messages"], found["messages"]) == (123, 0)


def test_a_report_in_two_ways_counts_once(house: House) -> None:
    """A report that was received is known to an import, and the other way round."""
    google, yahoo = (signed_report(name, address(house)) for name in ("google.xml", "yahoo.xml"))
    send(house, google)
    (known,) = bring(house, ReportFile("g.xml", GOOGLE))
    assert known.outcome is KNOWN
    (new,) = bring(house, ReportFile("y.xml", document("yahoo.xml")), way=ReportWay.FETCHED)
    assert new.outcome is NEW
    messages = house.get(f"/reports/dmarc?domain={DOMAIN}").json["messages"]
    send(house, yahoo)
    states = sorted(one["state"] for one in house.get("/reports").json["reports"])
    assert states == ["counted", "counted", "repeated"]
    assert {one["proven"] for one in house.get("/reports").json["domains"]} == {True}
    assert house.get(f"/reports/dmarc?domain={DOMAIN}").json["messages"] == messages


def test_an_import_needs_no_request_in_dns(house: House) -> None:
    """The reports count although the domain sends them to another address."""
    files = [
        ReportFile(name, document(name).replace(b"example.org", b"elsewhere.example"))
        for name in RECEIVERS
    ]
    assert {one.outcome for one in bring(house, *files)} == {NEW}
    assert house.get("/reports/dmarc?domain=elsewhere.example").json["messages"] == 268


class _DyingWorker(DirectWorker):
    """A child process that ends while it reads one file, and forgets its imports."""

    def __init__(self, poison: int, failure: type[WorkerDied]) -> None:
        self.reading = 0
        self._poison = poison
        self._failure = failure

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Run a call, or end."""
        if isinstance(call, partial) and call.func is open_import:
            self.reading = call.args[3]
        if isinstance(call, partial) and call.func is read_piece:
            last = self.reading + call.args[1] - 1
            if self.reading <= self._poison <= last:
                return fail(self._failure("the process has died"))
            self.reading = last + 1
        return super().run(call, owner)


@rows(WorkerDied, WorkTooSlow)
def test_a_file_that_ends_the_process(failure: type[WorkerDied]) -> None:
    """One file that ends the child process is rejected, and all others are imported."""
    worker = _DyingWorker(2, failure)
    workers = Workers(DirectWorker(), DirectWorker(), DirectWorker(), imports=worker)
    house = House(config_in_memory(), workers, zone=reports_zone())
    found = bring(house, *(ReportFile(name, document(name)) for name in list(RECEIVERS)[:5]))
    assert [one.outcome for one in found] == [NEW, NEW, REJECTED, NEW, NEW]
    assert (found[2].name, found[2].reason) == ("file 3", UNREADABLE)


class _SlowWorker(DirectWorker):
    """A child process that is busy for as long as a test wants."""

    def __init__(self) -> None:
        self.waiting: list[Deferred[None]] = []

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Run a call later."""
        turn: Deferred[None] = Deferred()
        self.waiting.append(turn)
        return turn.addCallback(lambda _: super(_SlowWorker, self).run(call, owner))


def test_an_import_waits_for_minutes() -> None:
    """An import begins when one of the two before it has ended, though they take minutes."""
    worker = _SlowWorker()
    workers = Workers(DirectWorker(), DirectWorker(), DirectWorker(), imports=worker)
    house = House(config_in_memory(), workers, zone=reports_zone())
    imports = house.assembly.reports.operations.importing
    begun = [
        Deferred.fromCoroutine(imports.import_reports(account.id, [], ReportWay.UPLOADED))
        for account in (house.account, house.add_account("bob"), house.add_account("cid"))
    ]
    house.clock.advance(299.0)
    assert len(worker.waiting) == MAX_IMPORTS
    for turn in worker.waiting:  # which grows
        turn.callback(None)
    assert [one.result for one in begun] == [[], [], []]


def test_the_child_holds_few_imports() -> None:
    """The child process forgets the oldest import to make room, which must be opened again."""
    facts = ImportFacts(AccountId("ann"), ReportWay.UPLOADED, Instant(1_795_200_000_000), False)
    for number in range(MAX_OPEN + 1):
        open_import(f"test {number}", [ReportFile("a", GOOGLE)], facts)
    with pytest.raises(WorkerDied):
        read_piece("test 0")
    for number in range(1, MAX_OPEN + 1):
        assert read_piece(f"test {number}").is_last
