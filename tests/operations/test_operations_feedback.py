"""Failure reports and complaints, from the received mail to the numbers beside a sender."""

import gzip
import re
from contextlib import closing

import pytest
from msgspec.structs import replace

from mailcheck.config.options import ReportsOptions
from mailcheck.core.errors import RecipientUnknown
from mailcheck.store.domains.report_quotas import ReportDomains
from tests.corpus.feedback_mails import FIELDS, LETTER, feedback_file, feedback_mail
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import (
    DOMAIN,
    reports_zone,
    signed_letter,
    signed_report,
    signer_of,
)
from tests.house import Answer, House, config_in_memory
from tests.table import rows
from tests.web.mcp.agent import Agent
from tests.web.reporting import address, reporting_house, send

COMPLAINT = FIELDS.replace("auth-failure", "abuse").replace("Auth-Failure: dmarc\n", "")


@pytest.fixture
def zone() -> MemoryZone:
    """Return a zone with the receivers."""
    return reports_zone()


@pytest.fixture
def house(zone: MemoryZone) -> House:
    """A house that receives reports; its domain requests failure reports, too."""
    house = reporting_house(zone)
    rua, ruf = address(house), address(house, "failures")
    zone.publish(
        f"_dmarc.{DOMAIN}", "TXT", f"v=DMARC1; p=none; rua=mailto:{rua}; ruf=mailto:{ruf}!10m"
    )
    return house


def signed(fields: str = FIELDS, domain: str = "google.com", number: int = 1) -> bytes:
    """Return a report that its reporter signs."""
    mail = feedback_mail(fields, author=f"reports@{domain}", message_id=f"{number}@{domain}")
    return signer_of(domain).sign(mail)


def shown(house: House, **query: object) -> Answer:
    """Return the reports about single mails of the domain."""
    more = "".join(f"&{name}={value}" for name, value in query.items())
    return house.get(f"/reports/feedback?domain={DOMAIN}{more}")


def test_a_failure_report(house: House) -> None:
    """A report that the domain requests counts beside the address, without personal data."""
    send(house, signed(), "failures")
    found = shown(house).json
    assert (found["failures"], found["complaints"], found["unauthenticated"]) == (1, 0, 0)
    (source,) = found["sources"]
    assert (source["address"], source["failures"]) == ("203.0.113.66", 1)
    assert source["reporters"] == ["google.com"]
    (report,) = found["reports"]
    assert (report["kind"], report["state"], report["reporter"]) == (
        "failure",
        "counted",
        "google.com",
    )
    details = report["feedback"]
    assert details["type"] == "auth-failure"
    assert details["meaning"] == "The mail failed DMARC. Neither SPF nor DKIM was aligned."
    assert details["campaign"] == "autumn:8841:newsletter:newsmill"
    assert "mail" not in details
    assert "secret" not in shown(house).body.decode().lower()


def test_complaints_by_address_and_campaign(house: House) -> None:
    """Complaints of two receivers are summed by address and campaign, and stand by the sender."""
    send(house, signed_report("google.xml", address(house)))
    send(house, signer_of("dmarc.yahoo.com").sign(of("yahoo.eml", "dmarc.yahoo.com")), "complaints")
    send(house, signer_of("microsoft.com").sign(of("microsoft.eml", "microsoft.com")), "complaints")
    found = shown(house).json
    assert (found["failures"], found["complaints"]) == (0, 2)
    assert found["types"] == [{"type": "abuse", "mails": 2}]
    assert [(one["address"], one["complaints"]) for one in found["sources"]] == [("192.0.2.25", 2)]
    assert [(one["field"], one["name"]) for one in found["campaigns"]] == [
        ("Feedback-ID", "autumn-2026:8841:newsletter:newsmill"),
        ("List-Id", "offers.example.org"),
    ]
    assert {one["reporter"] for one in house.get("/reports?kind=complaint").json["reports"]} == {
        "dmarc.yahoo.com",
        "microsoft.com",
    }
    senders = house.get(f"/reports/dmarc?domain={DOMAIN}").json["senders"]
    assert {(one["complaints"], one["failureReports"]) for one in senders} == {(0, 0)}
    about = senders[0]["sources"][0]["address"]
    send(house, signed(COMPLAINT.replace("203.0.113.66", about), number=3), "complaints")
    send(house, signed(FIELDS.replace("203.0.113.66", about), number=4), "failures")
    first = house.get(f"/reports/dmarc?domain={DOMAIN}").json["senders"][0]
    assert (first["complaints"], first["failureReports"]) == (1, 1)


def of(name: str, domain: str) -> bytes:
    """Return a mail of the corpus, sent by a domain whose key is known."""
    author = f"From: <feedback@{domain}>".encode()
    return re.sub(rb"(?m)^From: [^\r]*", author, feedback_file(name), count=1)


@pytest.mark.parametrize(
    ("raw", "kind", "state", "reason"),
    [
        (feedback_mail(), "failures", "apart", "its mail is not authenticated"),
        (feedback_mail(COMPLAINT), "complaints", "apart", "its mail is not authenticated"),
        (b"From: a@b.example\r\n\r\nhello", "failures", "refused", "the mail contains no failure"),
        (signed("Feedback-Type:\n"), "complaints", "refused", "it has no field Feedback-Type"),
        (
            signed_report("google.xml", "x@y.example"),
            "failures",
            "refused",
            "the mail contains no failure report or complaint",
        ),
    ],
)
def test_untrusted_feedback(house: House, raw: bytes, kind: str, state: str, reason: str) -> None:
    """A forged or malformed report is accepted and listed with the reason, but never counted."""
    before = verdicts(house)
    send(house, raw, kind)
    (report,) = house.get("/reports").json["reports"]
    assert report["state"] == state
    assert report["reason"].startswith(reason)
    found = shown(house).json
    assert (found["failures"], found["complaints"], found["sources"]) == (0, 0, [])
    assert found["unauthenticated"] == (state == "apart")
    assert house.get("/reports").json["domains"] == []
    assert verdicts(house) == before
    assert count_mails(house) == 0


def test_a_mail_that_confirms_the_address_is_readable(house: House) -> None:
    """Subject, text and links of an authenticated mail that is no report are shown."""
    send(house, signed_letter(), "complaints")
    (report,) = house.get("/reports").json["reports"]
    assert (report["state"], report["reporter"]) == ("refused", "google.com")
    assert report["reason"].startswith("it is not a report. Its text is shown")
    assert report["letter"] == {
        "author": "Feedback Loop <loop@google.com>",
        "subject": "Confirm your address",
        "text": "Your code is 482913. Confirm",
        "links": ["https://google.com/confirm?t=7f3a"],
    }
    assert shown(house).json["reports"] == []
    assert count_mails(house) == 0


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (LETTER % 1, "complaints"),
        (signed_letter(), "failures"),
        (signer_of("google.com").sign(LETTER % 1 + b"x" * 300_000), "complaints"),
        (signed_report("google.xml", "x@y.example"), "failures"),
    ],
)
def test_text_of_strangers_is_not_stored(house: House, raw: bytes, kind: str) -> None:
    """A mail without authentication, to another address, or too large is refused without text."""
    send(house, raw, kind)
    (report,) = house.get("/reports").json["reports"]
    assert report["reason"].startswith("the mail contains no failure report or complaint")
    assert "letter" not in report


def test_a_mail_of_the_own_domain_is_not_a_letter(house: House, zone: MemoryZone) -> None:
    """A complaint that only forwards the reported mail has personal data of its recipient."""
    own = signer_of(DOMAIN)
    zone.publish(own.key_name, "TXT", own.key_record)
    send(house, signed_report("google.xml", address(house)))
    send(house, own.sign((LETTER % 1).replace(b"google.com", DOMAIN.encode())), "complaints")
    (report,) = house.get("/reports?kind=complaint").json["reports"]
    assert report["reason"].startswith("the mail contains no failure report or complaint")
    assert "letter" not in report


def test_few_letters_are_stored(house: House) -> None:
    """Of an account, 20 letters are stored; a deleted one makes room."""
    for number in range(21):
        send(house, signed_letter(number), "complaints")
    reports = house.get("/reports").json["reports"]
    assert sum("letter" in one for one in reports) == 20
    (last,) = [one for one in reports if "letter" not in one]
    assert "20 texts are stored" in last["reason"]
    read = next(one for one in reports if "letter" in one)
    house.ask("DELETE", f"/reports/{read['id']}").answer()
    send(house, signed_letter(21), "complaints")
    assert sum("letter" in one for one in house.get("/reports").json["reports"]) == 20


def verdicts(house: House) -> list[object]:
    """Return what mailcheck says about the domain: score, senders, overview."""
    checked = house.get(f"/tools/reputation?domain={DOMAIN}").json
    return [
        checked["score"],
        checked["grade"],
        house.get(f"/reports/dmarc?domain={DOMAIN}").json["senders"],
    ]


def count_mails(house: House) -> int:
    """Return the number of all stored mails."""
    ((number,),) = house.sqlite.connection.execute("SELECT COUNT(*) FROM delivery")
    return int(number)


def test_an_operator_may_keep_the_mail() -> None:
    """With `[reports] keep_mail` the personal data of the reported mail is stored and returned."""
    config = config_in_memory()
    zone = reports_zone()
    house = reporting_house(zone, replace(config, reports=ReportsOptions(keep_mail=True)))
    with closing(house):
        send(house, signed(COMPLAINT), "complaints")
        (report,) = shown(house).json["reports"]
        assert report["feedback"]["mail"] == {
            "sender": "bounce+ann@news.example.org",
            "recipients": ["bob.secret@receiver.example"],
            "author": "Ann Secret <ann.secret@example.org>",
            "subject": "A secret subject",
            "text": "A secret text.\n",
        }


def test_a_failure_report_that_is_not_requested(house: House, zone: MemoryZone) -> None:
    """Without `ruf=` for this account an authenticated failure report is kept apart."""
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", "v=DMARC1; p=none; ruf=mailto:other@example.org")
    send(house, signed(), "failures")
    (report,) = shown(house).json["reports"]
    assert report["state"] == "apart"
    assert report["reason"].startswith(
        f"the DMARC record of {DOMAIN} does not request failure reports to ruf-"
    )


def test_agents_get_the_numbers(house: House) -> None:
    """get_reports names complaints beside the sender and by campaign; texts are fenced."""
    send(house, signed_report("yahoo.xml", address(house)))
    send(house, signed(COMPLAINT.replace("203.0.113.66", "198.51.100.7")), "complaints")
    sender, campaign = Agent(house).use("get_reports", domain=DOMAIN)["reported"]
    assert sender["meaning"].endswith(" Complaints: 1, failure reports: 0.")
    assert (campaign["kind"], campaign["messages"]) == ("complaint", 1)
    assert campaign["meaning"] == ("The recipient marked the mail as spam. Reported by google.com.")
    assert campaign["fix"].startswith("Stop sending to this recipient")


def test_incidents_count_as_mails(house: House) -> None:
    """A report about many equal mails counts them all (RFC 5965 3.2)."""
    send(house, signed(f"{COMPLAINT}Incidents: 40\n"), "complaints")
    assert shown(house).json["complaints"] == 40


def test_feedback_about_a_subdomain(house: House) -> None:
    """A report about a subdomain belongs to the domain above it that has reports already."""
    send(house, signed_report("google.xml", address(house)))
    fields = COMPLAINT.replace("Reported-Domain: example.org", "Reported-Domain: a.b.example.org")
    raw = feedback_mail(fields, "From: x@a.b.example.org\n\n", author="r@google.com")
    send(house, signer_of("google.com").sign(raw), "complaints")
    (report,) = shown(house).json["reports"]
    assert report["feedback"]["authorDomain"] == "a.b.example.org"


@rows(
    (["x.a.watched.example"], "a.watched.example"),
    (["a.watched.example"], "a.watched.example"),
    (["other.watched.example"], "watched.example"),
    (["esp.example", "x.shop.example"], "shop.example"),
    (["x.new.example", "new2.example"], "new.example"),
)
def test_the_home_of_a_report(domains: list[str], home: str) -> None:
    """It is the nearest domain with a watch or reports, or the organization of the first one."""
    assert ReportDomains(["a.watched.example"], ["shop.example"]).find_home(domains) == home


def test_feedback_about_foreign_domains(house: House) -> None:
    """Reports about domains that are not the account's are counted in one row, not stored."""
    for number in range(8):
        fields = COMPLAINT.replace("example.org", f"foreign{number}.example")
        raw = feedback_mail(
            fields,
            f"From: x@foreign{number}.example\n\n",
            author="r@google.com",
            message_id=f"f{number}@google.com",
        )
        send(house, signer_of("google.com").sign(raw), "complaints")
    listed = house.get("/reports").json
    assert listed["total"] == 5
    (refused,) = listed["refused"]
    assert (refused["outcome"], refused["reports"]) == ("foreign", 3)


def test_the_addresses_have_no_tags(house: House) -> None:
    """An address with a tag or of no account is unknown."""
    local_part, _, domain = address(house, "failures").partition("@")
    assert local_part.startswith("ruf-")
    assert address(house, "complaints") == f"fbl{local_part[3:]}@{domain}"
    for other in (f"{local_part}+tag@{domain}", f"fbl-{'a' * 13}@{domain}"):
        with pytest.raises(RecipientUnknown):
            house.receive(other)


def test_packed_reports_are_not_unpacked(house: House) -> None:
    """A packed file at the address of failure reports is refused: such reports are plain text."""
    send(house, signed_report("google.xml", "x@y.example", data=gzip.compress(b"x")), "failures")
    (report,) = house.get("/reports?kind=failure").json["reports"]
    assert report["state"] == "refused"
