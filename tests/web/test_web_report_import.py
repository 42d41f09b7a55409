"""Importing reports over the API."""

import pytest

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.core.domains.receiver_reports import MIN_DAYS
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.core.rights import make_rights
from tests.corpus.report_files import document, gzipped
from tests.fakes.report_senders import DOMAIN, reports_zone, signed_report
from tests.house import House
from tests.web.checking import checking_house
from tests.web.reporting import address, reporting_house, send

PATH = "/reports/import"
GOOGLE = document("google.xml")


@pytest.fixture
def house() -> House:
    """A house that accepts reports."""
    return reporting_house(reports_zone())


def test_a_file(house: House) -> None:
    """A file is the body of a request, and the response says what became of it."""
    made = house.ask("POST", f"{PATH}?name=google.xml.gz", data=gzipped(GOOGLE)).answer()
    assert (made.status, made.json["new"]) == (200, 1)
    (file,) = made.json["files"]
    assert (file["file"], file["outcome"], file["domain"]) == ("google.xml.gz", "new", DOMAIN)
    assert (file["reporter"], file["messages"]) == ("google.com", 123)
    (report,) = house.get("/reports").json["reports"]
    assert (report["way"], report["state"]) == ("uploaded", "counted")


def test_a_form_with_files(house: House) -> None:
    """A form sends several files, of which each has a result."""
    files = {b"a.xml": GOOGLE, b"b.txt": b"hello"}
    field = b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n'
    body = b"".join(field % one for one in files.items()) + b"--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    made = house.ask("POST", PATH, data=body, headers=headers).answer().json
    assert (made["new"], made["known"], made["rejected"]) == (1, 0, 1)
    assert {one["file"]: one["outcome"] for one in made["files"]} == {
        "a.xml": "new",
        "b.txt": "rejected",
    }


def test_requests_without_a_file(house: House) -> None:
    """An empty file is rejected, and a form must have a boundary."""
    (file,) = house.ask("POST", PATH).answer().json["files"]
    assert (file["outcome"], file["reason"]) == ("rejected", "it is empty")
    headers = {"Content-Type": "multipart/form-data"}
    answer = house.ask("POST", PATH, data=b"x", headers=headers).answer()
    assert (answer.status, answer.json["error"]) == (400, "Content-Type has no boundary")


def test_the_scope(house: House) -> None:
    """Importing needs a scope of its own, which allows nothing else."""
    key = house.issue_key(house.account, rights=make_rights(["reports:import"]))
    assert house.ask("POST", PATH, key=key, data=GOOGLE).answer().status == 200
    assert house.ask("GET", "/reports", key=key).answer().status == 403
    other = house.issue_key(house.account, rights=make_rights(["domains"]))
    assert house.ask("POST", PATH, key=other, data=GOOGLE).answer().status == 403


def test_a_domain_is_proven_by_a_received_report(house: House) -> None:
    """A domain with imported reports alone is marked, until one is received that it requested."""
    house.ask("POST", PATH, data=GOOGLE).answer()
    for proven, ways in (
        (False, {"received": 0, "fetched": 0, "uploaded": 123}),
        (True, {"received": 41, "fetched": 0, "uploaded": 123}),
    ):
        assert {one["proven"] for one in house.get("/reports").json["domains"]} == {proven}
        for path in ("/reports/dmarc", "/reports/dmarc/plan"):
            found = house.get(f"{path}?domain={DOMAIN}").json
            assert (found["proven"], found["ways"]) == (proven, ways)
        send(house, signed_report("yahoo.xml", address(house)))


def test_a_plan_from_imported_reports() -> None:
    """A domain that sends its reports elsewhere gets a plan to the next policy without a step.

    While DNS does not tell the present policy, none is simulated.
    """
    zone = reports_zone()
    record = "v=DMARC1; p=none; rua=mailto:reports@elsewhere.example"
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", record)
    house = checking_house(zone)
    now = house.assembly.runtime.now()
    today = now - now % DAY
    text = GOOGLE.decode()
    for day in range(1, MIN_DAYS + 1):
        begin = Instant(today - day * DAY) // SECOND
        report = text.replace("1795046400", f"{begin}").replace("1795132799", f"{begin + 86399}")
        assert house.ask("POST", PATH, data=report.encode()).answer().json["new"] == 1
    plan = house.get(f"/reports/dmarc/plan?domain={DOMAIN}").json
    assert "request-reports" not in {step["kind"] for step in plan["steps"]}
    assert (plan["daysWithReports"], plan["doubts"]) == (MIN_DAYS, [])
    assert not plan["proven"]
    assert [one["policy"] for one in plan["simulations"]] == ["quarantine", "reject"]
    zone.failing[f"_dmarc.{DOMAIN}"] = DnsStatus.SERVFAIL
    house.pass_time(400)  # cached answers expire
    assert house.get(f"/reports/dmarc/plan?domain={DOMAIN}").json["simulations"] == []
