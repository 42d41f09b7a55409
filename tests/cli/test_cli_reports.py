"""``mailcheck dmarc`` and ``mailcheck tls-report``: output and exit status."""

import json
import zipfile
from pathlib import Path

import pytest
import pytest_twisted

from mailcheck.api.domains.report_overviews import DmarcFiles, TlsFiles
from mailcheck.cli import report_files
from tests.cli.command_line import run_command, run_work
from tests.cli.house_commands import commands_at
from tests.corpus.report_files import FOLDER, document, gzipped, report_mail, zipped
from tests.fakes.dmarc_year import DOMAIN, Year, year_zone
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import reports_zone, signed_letter, signed_report
from tests.servers.name_server import running_name_server
from tests.web.checking import checking_house
from tests.web.reporting import address, count_days, reporting_house, send

NAMES = ("google.xml", "yahoo.xml", "gmx.xml")
FILES = [str(FOLDER / name) for name in NAMES]


def test_dmarc_reports_are_read_without_a_daemon(tmp_path: Path) -> None:
    """Several files, also mails, have one summary of senders, failures and advice."""
    mail = tmp_path / "mail.eml"
    mail.write_bytes(report_mail(gzipped(document("yahoo.xml")), "application/gzip", "r.xml.gz"))
    found = run_command("dmarc", "--offline", FILES[0], str(mail), FILES[2])
    assert found.status == 1
    assert found.lines[:4] == [
        "example.org  2026-11-19 to 2026-11-19  policy none",
        "  207 messages, 151 pass; reported by google.com, GMX, Yahoo",
        "  151 yours, 53 unknown, 3 forwarded, 0 forged",
        "  p=reject would stop 53 of them",
    ]
    assert "  newsmill.example  41 of 41 fail" in found.lines
    assert found.errors == ""


def test_dmarc_as_json() -> None:
    """``--json`` prints the same as one object of the published shape."""
    found = run_command("dmarc", "--json", "--offline", *FILES)
    shape = json.loads(found.output)
    assert set(shape) == set(DmarcFiles.__struct_encode_fields__)
    (domain,) = shape["domains"]
    assert (domain["messages"], domain["failing"], domain["stoppedByReject"]) == (207, 56, 53)
    assert domain["mail"] == {"yours": 151, "unknown": 53, "forwarded": 3, "forged": 0}
    assert [one["messages"] for one in shape["reports"]] == [123, 41, 43]
    assert domain["senders"][0]["cause"] == "own-spf"


@pytest_twisted.ensureDeferred
async def test_dns_names_who_sends() -> None:
    """Addresses are shown with their names, and the suggested SPF record is proven."""
    zone = MemoryZone(
        {
            "example.org": {"TXT": ["v=spf1 -all"]},
            "newsmill.example": {"TXT": ["v=spf1 ip4:198.51.100.0/24 -all"]},
            "out.newsmill.example": {"A": ["198.51.100.7"]},
            "7.100.51.198.in-addr.arpa": {"PTR": ["out.newsmill.example."]},
        }
    )
    with running_name_server(zone) as server:
        asking = {"MAILCHECK_DNS_RESOLVERS": f'["{server.host}:{server.port}"]'}
        found = await run_work(asking, "dmarc", *FILES)
    assert (found.status, found.errors) == (1, "")
    assert "    from 198.51.100.7 out.newsmill.example" in found.lines
    assert "    example.org  TXT  v=spf1 include:newsmill.example -all" in found.lines


def test_a_report_without_failures() -> None:
    """If all mail passes, the exit status is 0."""
    assert run_command("dmarc", "--offline", str(FOLDER / "seznam.xml")).status == 0


@pytest.mark.parametrize("command", ["dmarc", "tls-report"])
def test_what_is_no_report(command: str, tmp_path: Path) -> None:
    """Each unreadable file is named with the reason, and the others are read."""
    bad = tmp_path / "bad"
    bad.write_text("nothing")
    wrong = "google.json" if command == "dmarc" else "google.xml"
    options = ["--offline"] if command == "dmarc" else []
    right = "google.xml" if command == "dmarc" else "google.json"
    missing = str(tmp_path / "none")
    files = [str(bad), missing, str(FOLDER / wrong), str(FOLDER / right)]
    found = run_command(command, *options, *files)
    assert found.status == 2
    assert found.errors.splitlines()[0] == (
        f"mailcheck: {bad}: the mail contains no report: no zip, gzip, XML or JSON data"
    )
    assert f"{missing}: it cannot be read: No such file or directory" in found.errors
    assert "report; read it with mailcheck" in found.errors
    assert found.output


def test_tls_reports_are_read_without_a_daemon() -> None:
    """The output says which TLS sessions failed, why, and what to do."""
    found = run_command("tls-report", str(FOLDER / "google.json"))
    assert found.status == 1
    assert found.lines[:3] == [
        "Google Inc.  2026-11-19",
        "  example.org (sts): 40 encrypted, 2 failed",
        "    2 certificate-expired mx.example.org",
    ]
    assert "Renew the certificate" in found.lines[3]
    shape = json.loads(run_command("tls-report", "--json", str(FOLDER / "google.json")).output)
    assert set(shape) == set(TlsFiles.__struct_encode_fields__)
    assert run_command("tls-report", str(FOLDER / "microsoft.json")).status == 0


def test_reports_of_an_account_are_listed_and_deleted(tmp_path: Path) -> None:
    """Each report is a line with its id; reports are deleted by id, by reporter or by day."""
    house = reporting_house(reports_zone())
    for name in ("google.xml", "yahoo.xml", "gmx.xml"):
        send(house, signed_report(name, address(house)))
    with commands_at(house, tmp_path, "reports") as call:
        listed = call("list")
        assert [line.split()[1:5] for line in sorted(listed.lines, key=lambda x: x.split()[4])] == [
            ["2026-11-19", "dmarc", "counted", name]
            for name in ("dmarc.yahoo.com", "google.com", "sicher.gmx.net")
        ]
        assert json.loads(call("list", "--json", "--limit", "1").output)["total"] == 3
        assert call("list", "--kind", "complaint").lines == []
        send(house, signed_letter(), "complaints")
        letter = call("list", "--kind", "complaint").lines
        assert "0 messages, 0 fail" in letter[0]
        assert letter[1:] == [
            "    Feedback Loop <loop@google.com>: Confirm your address",
            "    Your code is 482913. Confirm",
            "    https://google.com/confirm?t=7f3a",
        ]
        assert call("delete", letter[0].split()[0]).status == 0
        one = next(line for line in listed.lines if "google.com" in line).split()[0]
        assert call("delete", one).status == 0
        assert call("delete", one).status == 1
        for wrong in ((), (one, "--day", "2026-11-19")):
            assert call("delete", *wrong).status == 2
        assert "must be a date" in call("delete", "--day", "today").errors
        assert call("delete", "--reporter", "dmarc.yahoo.com").errors == "deleted: 1\n"
        gone = call("delete", "--day", "2026-11-19", "--json")
        assert json.loads(gone.output) == {"success": True, "deleted": 1}
        assert call("list").lines == []


def test_reports_are_imported_from_files(tmp_path: Path) -> None:
    """Folders, Maildirs, mailboxes and archives are imported; rejected files have a line each."""
    house = reporting_house(reports_zone())
    folder = tmp_path / "reports"
    google, yahoo = document("google.xml"), document("yahoo.xml")
    mail = report_mail(gzipped(google), "application/gzip", "r.xml.gz")
    files = {
        "a.xml": google,
        ".hidden": b"hidden",
        "notes.txt": b"hello",
        "year/b.zip": zipped(yahoo),
        "Maildir/cur/1:2,S": mail,
        "Maildir/.Reports/cur/2": report_mail(document("gmx.xml"), "text/xml", "r.xml"),
        "Maildir/.Reports/new/3": mail,
        "Maildir/new/4": mail,
        "Maildir/tmp/5": b"incomplete",
        "Maildir/dovecot.index": b"index",
        "mails.mbox": b"From x\n" + mail + b"\nFrom y\n" + mail,
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with commands_at(house, tmp_path, "reports") as reports:
        first = reports("import", str(folder))
        assert first.status == 1
        (rejected,) = first.lines
        assert rejected.startswith(f"{folder}/notes.txt: it contains no report")
        assert first.errors == "3 new, 5 known, 1 rejected\n"
        again = json.loads(
            reports("import", "--json", str(folder / "a.xml"), str(folder / "year")).output
        )
        assert (again["new"], again["known"], again["rejected"]) == (0, 2, 0)
        assert [one["file"] for one in again["files"]] == [
            str(folder / "a.xml"),
            str(folder / "year" / "b.zip"),
        ]
        listed = reports("list")
        assert {line.rsplit(None, 1)[1] for line in listed.lines} == {"uploaded"}
        absent = reports("import", str(folder / "absent"))
        assert (absent.status, "does not exist" in absent.errors) == (2, True)


@pytest.mark.parametrize("is_zip", [False, True])
def test_large_files_are_sent_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_zip: bool
) -> None:
    """A mailbox or archive that is larger than a part is split into its mails or files."""
    monkeypatch.setattr(report_files, "PART", 3_000)
    path, mails = (
        tmp_path / "all",
        [b"From x\nSubject: %d\n\n%s\n\n" % (n, b"x" * 900) for n in range(9)],
    )
    if is_zip:
        with zipfile.ZipFile(path, "w") as archive:
            for number, mail in enumerate(mails):
                archive.writestr(f"{number}.eml", mail)
    else:
        path.write_bytes(b"".join(mails))
    parts = list(report_files.make_parts(report_files.find_files([str(path)])))
    assert [len(part) for part in parts] == [3, 3, 3]
    assert [file.data for part in parts for file in part] == mails
    ending = "all/8.eml" if is_zip else "all mail 9"
    assert parts[-1][-1].name.endswith(ending)


def test_the_plan_of_a_domain(tmp_path: Path) -> None:
    """`mailcheck dmarc plan` stores decisions, prints the steps, and ends in the safe record."""
    zone = year_zone()
    house, year = checking_house(zone), Year(zone)
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", f"v=DMARC1; p=none; rua=mailto:{address(house)}")
    with commands_at(house, tmp_path, "dmarc", "plan", DOMAIN) as plan:
        nothing = plan()
        assert nothing.status == 3
        assert "There are no reports about the last 30 days." in nothing.output
        assert nothing.lines[-1] == "  Could not be determined."
        count_days(house, year, 20)
        first = plan()
        assert first.status == 1
        assert first.lines[0] == "example.org  policy none, next quarantine"
        assert "  1. Decide about Mailchimp: 1000 messages" in first.lines
        assert "     mailcheck dmarc plan example.org --not-mine others" in first.lines
        assert first.lines[-1] == "  Not safe yet: 5 steps are missing."
        others = ("improvmx", "bad.example", "others", "hoster.example")
        decided = [word for one in others for word in ("--not-mine", one)]
        second = plan("--mine", "mailchimp", *decided)
        assert "     k2._domainkey.example.org  CNAME  dkim2.mcsv.net" in second.lines
        shape = json.loads(plan("--json", "--undecided", "hoster.example").output)
        assert [one["sender"] for one in shape["steps"]] == ["hoster.example", "mailchimp"]
        safe = plan("--not-mine", "mailchimp", "--not-mine", "hoster.example")
        assert safe.status == 0
        assert safe.lines[-2] == "  Safe to publish:"
        record = f"v=DMARC1; p=quarantine; rua=mailto:{address(house)}"
        assert safe.lines[-1] == f"  _dmarc.example.org  TXT  {record}"
    unnamed = run_command("dmarc", "plan", "--url", "http://127.0.0.1:1", "--key-file", "key")
    assert (unnamed.status, unnamed.errors) == (
        2,
        "mailcheck: name one domain: mailcheck dmarc plan DOMAIN\n",
    )
