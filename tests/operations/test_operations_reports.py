"""Reports from receivers, from the received mail to the summary of senders."""

import json
import re
from contextlib import closing
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail

from mailcheck.assembly.workers import Workers
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.core.errors import LimitExceeded, RecipientUnknown, WorkTooSlow
from mailcheck.core.instants import SECOND
from mailcheck.operations.reports.ingest_reports import MAX_ATTEMPTS, RETRY_AFTER
from mailcheck.operations.reports.receive_reports import PER_ACCOUNT, PER_CLIENT
from mailcheck.workers.scheduling import DirectWorker
from tests.corpus.report_files import document, gzipped, report_mail
from tests.fakes.report_senders import (
    DOMAIN,
    RECEIVERS,
    reports_zone,
    signed_report,
)
from tests.house import Answer, House, config_in_memory, run
from tests.web.mcp.agent import Agent
from tests.web.reporting import address, post_path, reporting_house, send


@pytest.fixture
def house() -> House:
    """A house that accepts reports."""
    return reporting_house(reports_zone())


def only_report(house: House) -> dict[str, object]:
    """Return the only report."""
    (report,) = house.get("/reports").json["reports"]
    return dict(report)


def test_a_week_of_reports(house: House) -> None:
    """Reports from eight receivers form one overview, with the forgotten service first."""
    for name in RECEIVERS:
        send(house, signed_report(name, address(house)))
    listed = house.get("/reports").json
    assert {(one["state"], one["reason"]) for one in listed["reports"]} == {("counted", "")}
    assert {one["reporter"] for one in listed["reports"]} == set(RECEIVERS.values())
    (domain,) = listed["domains"]
    assert (domain["domain"], domain["reports"], domain["messages"]) == (DOMAIN, 8, 268)
    found = house.get(f"/reports/dmarc?domain={DOMAIN}").json
    assert (found["messages"], found["failing"], found["stoppedByReject"]) == (268, 69, 66)
    assert found["policy"] == "none"
    service, *_ = found["senders"]
    assert (service["name"], service["cause"], service["failing"]) == (
        "newsmill.example",
        "own-spf",
        51,
    )
    assert not service["known"]
    # The include of the service authorises it. The evaluation of the record has verified that.
    assert service["record"] == {
        "name": DOMAIN,
        "type": "TXT",
        "value": "v=spf1 ip4:192.0.2.10 include:newsmill.example ~all",
    }
    assert service["sources"][0]["host"] == "out7.newsmill.example"
    assert service["listed"] == []
    own = next(one for one in found["senders"] if one["known"])
    assert (own["cause"], own["fix"]) == ("passes", "No action is needed.")


def test_the_address_of_reports_is_no_inbox(house: House) -> None:
    """A report address in any case is not an inbox. With a tag, it is unknown."""
    local_part, _, domain = address(house).partition("@")
    house.receive(f"{local_part.upper()}@{domain.upper()}", raw=signed_report("google.xml", "x"))
    assert house.get("/inbox").json["total"] == 0
    assert only_report(house)["kind"] == "dmarc"
    for other in (f"{local_part}+tag@{domain}", f"dmarc-{'a' * 13}@{domain}", f"dmarc-@{domain}"):
        with pytest.raises(RecipientUnknown):
            house.receive(other)


GOOGLE = document("google.xml")


def mail_with(data: bytes, signer: str = "google.com") -> bytes:
    """Return a signed mail with a report."""
    return signed_report("google.xml", "x@y.example", signer, data=data)


@pytest.mark.parametrize(
    ("raw", "state", "reason"),
    [
        (
            report_mail(gzipped(GOOGLE), "application/gzip", "r.gz", author="x@google.com"),
            "apart",
            "its mail is not authenticated",
        ),
        (
            mail_with(gzipped(GOOGLE), "evil.example"),
            "apart",
            "it claims to be from google.com, but evil.example authenticates it",
        ),
        (
            mail_with(gzipped(GOOGLE.replace(b"example.org", b"other.example"))),
            "apart",
            "the DMARC record of other.example does not request reports to",
        ),
        (mail_with(gzipped(re.sub(b"1795(?=[0-9]{6}<)", b"1796", GOOGLE))), "apart", "it ends in"),
        (mail_with(gzipped(document("google.json"))), "refused", "it is a TLS report, and this"),
        (mail_with(b"\x1f\x8bno gzip"), "refused", "the gzip file is damaged"),
        (mail_with(b"hello"), "refused", "the mail contains no report"),
    ],
)
def test_untrusted_reports(house: House, raw: bytes, state: str, reason: str) -> None:
    """An untrusted report is stored with the reason but not counted. Later ones are read."""
    send(house, raw)
    report = only_report(house)
    assert report["state"] == state
    assert str(report["reason"]).startswith(reason)
    assert house.get("/reports").json["domains"] == []
    assert house.get(f"/reports/dmarc?domain={DOMAIN}").json["messages"] == 0
    send(house, signed_report("yahoo.xml", address(house)))
    states = {one["state"] for one in house.get("/reports").json["reports"]}
    assert states == {"counted", state}


def test_name_servers_that_are_silent() -> None:
    """A report waits until DNS shows whether its domain requests it, and is counted then."""
    zone = reports_zone({f"_dmarc.{DOMAIN}": DnsStatus.SERVFAIL})
    house = reporting_house(zone)
    send(house, signed_report("yahoo.xml", address(house)))
    assert only_report(house)["state"] == "waiting"
    zone.failing.clear()
    house.clock.advance(RETRY_AFTER / SECOND)
    run(house.assembly.reports.runner.poll())
    assert only_report(house)["state"] == "counted"


def test_name_servers_that_stay_silent() -> None:
    """After hours without DNS, a report is stored but not counted, with the missing fact."""
    house = reporting_house(reports_zone({f"_dmarc.{DOMAIN}": DnsStatus.TIMEOUT}))
    send(house, signed_report("yahoo.xml", address(house)))
    for _ in range(MAX_ATTEMPTS):
        house.clock.advance(RETRY_AFTER / SECOND)
        run(house.assembly.reports.runner.poll())
    report = only_report(house)
    assert (report["state"], report["reason"]) == (
        "apart",
        f"whether {DOMAIN} requests reports here could not be determined",
    )


class SlowWorker(DirectWorker):
    """A worker that ends each call with a timeout, as the process of a daemon does."""

    def __init__(self) -> None:
        self.owners: list[str] = []

    def run(self, call: Any, owner: str = "") -> Deferred[Any]:
        """Fail the call."""
        self.owners.append(owner)
        return fail(WorkTooSlow("it took the large process longer than 20 seconds"))


def test_a_report_that_takes_too_long_is_read_once() -> None:
    """A report that exceeds the time of its reader is stored apart, and is not tried again."""
    direct, slow = DirectWorker(), SlowWorker()
    workers = Workers(direct, direct, direct, large=slow)
    with closing(House(config_in_memory(), workers, zone=reports_zone())) as house:
        run(house.assembly.reports.runner.start())
        send(house, report_mail(gzipped(GOOGLE), "application/gzip", "r.gz"))
        report = only_report(house)
        assert (report["state"], report["reason"]) == (
            "apart",
            "reading it was given up: it took the large process longer than 20 seconds",
        )
        house.pass_time(2 * RETRY_AFTER / SECOND)
        run(house.assembly.reports.runner.poll())
        assert slow.owners == [house.account.id]


def test_tls_reports_by_mail_and_by_post() -> None:
    """TLS reports are counted if the record requests them, even unauthenticated ones over HTTP."""
    zone = reports_zone()
    house = reporting_house(zone)
    addresses = house.get("/reports").json["addresses"]
    record = f"v=TLSRPTv1; rua=mailto:{addresses['tls']},{addresses['tlsUrl']}"
    zone.publish(f"_smtp._tls.{DOMAIN}", "TXT", record)
    report = gzipped(document("google.json"))
    send(house, signed_report("google.xml", addresses["tls"], data=report), "tls")
    path = "/" + addresses["tlsUrl"].split("/", 3)[3]
    answer = house.open(path, "POST", data=document("microsoft.json")).answer()
    assert answer.status == 202
    reports = {one["organisation"]: one for one in house.get("/reports").json["reports"]}
    posted, mailed = reports["Microsoft Corporation"], reports["Google Inc."]
    assert (mailed["state"], mailed["reporter"], mailed["reason"]) == ("counted", "google.com", "")
    assert (posted["state"], posted["reporter"]) == ("counted", "microsoft.com")
    assert "not authenticated" in posted["reason"]
    found = house.get(f"/reports/tls?domain={DOMAIN}").json
    assert (found["successful"], found["failed"]) == (52, 2)
    (failure, *_) = found["results"]
    assert (failure["result"], failure["host"]) == ("certificate-expired", "mx.example.org")
    assert "Renew the certificate" in failure["fix"]
    agent = Agent(house)
    assert agent.use("get_reports")["hint"] == f"call again with one of these domains: {DOMAIN}"
    told = agent.use("get_reports", domain=DOMAIN)
    assert "hint" not in told
    (host,) = told["reported"]
    assert (host["kind"], host["name"], host["failing"]) == ("tls", "mx.example.org", 2)
    assert host["meaning"].startswith("certificate-expired: ")


def test_invalid_posts(house: House) -> None:
    """Unknown addresses, empty bodies and oversized bodies are rejected at once."""
    path = post_path(house)
    assert house.open(path, "POST", data=b"").answer().status == 400
    assert house.open("/tls-reports/nobody", "POST", data=b"{}").answer().status == 404
    assert house.open(path, "POST", data=b"x" * 70_000).answer().status == 413
    assert house.open(path, "POST", data=b"nothing").answer().status == 202
    assert only_report(house)["state"] == "refused"


@pytest.mark.attack
def test_a_flood_of_posts_ends_at_its_limit() -> None:
    """The rate limit of a client that posts reports affects no other client and no mail."""
    house = reporting_house(reports_zone())
    path = post_path(house)

    def post(address: str = path) -> Answer:
        return house.open(address, "POST", data=b"nothing").answer()

    assert {post().status for _ in range(PER_CLIENT.per_minute)} == {202}
    refused = post()
    assert refused.status == 429
    assert "60 requests per minute" in refused.json["error"]
    assert 0 < int(refused.headers["retry-after"]) <= 60
    # The address is not looked up, so a client cannot find out which ones exist.
    assert post("/tls-reports/nobody").status == 429
    kept = house.get("/reports").json["total"]
    assert kept == PER_CLIENT.per_minute
    send(house, signed_report("yahoo.xml", address(house)))
    assert house.get("/reports").json["total"] == kept + 1
    house.pass_time(60)
    assert post().status == 202


@pytest.mark.attack
def test_a_flood_from_many_networks_ends_at_the_limit_of_the_account() -> None:
    """A published address accepts posts from all clients, so its account has a limit too."""
    house = reporting_house(reports_zone())
    token = house.get("/reports").json["addresses"]["tlsUrl"].rpartition("/")[2]
    reports = house.assembly.reports.operations.post

    def post(number: int) -> None:
        # An IPv6 client counts as its /64 network. Each number gives another network.
        run(reports.post(token, f"2001:db8:0:{number:x}::1", b"nothing"))

    for number in range(PER_ACCOUNT.per_minute):
        post(number)
    with pytest.raises(LimitExceeded):
        post(PER_ACCOUNT.per_minute)


def test_reports_for_agents(house: House) -> None:
    """get_reports returns the domains, then the senders of one and the record that fixes it."""
    agent = Agent(house)
    empty = agent.use("get_reports")
    assert f"rua=mailto:{address(house)}" in empty["hint"]
    assert f"rua=mailto:{address(house, 'tls')}" in empty["hint"]
    send(house, signed_report("yahoo.xml", address(house)))
    listed = agent.use("get_reports")
    assert (listed["domains"], listed["reported"]) == ([DOMAIN], [])
    (sender,) = agent.use("get_reports", domain=DOMAIN)["reported"]
    assert sender["failing"] == 41
    assert "include:newsmill.example" in sender["fix"]
    assert "198.51.100.7" in sender["meaning"]


def test_a_person_decides_about_a_sender(house: House) -> None:
    """A decision is stored under the key of the sender, and is shown until it is taken back."""
    send(house, signed_report("yahoo.xml", address(house)))

    def shown() -> object:
        (sender,) = house.get(f"/reports/dmarc?domain={DOMAIN}").json["senders"]
        assert (sender["key"], sender["service"]) == ("newsmill.example", False)
        return sender["decision"]

    def decide(decision: str, sender: str = "newsmill.example") -> Answer:
        body = {"domain": DOMAIN, "sender": sender, "decision": decision}
        data = json.dumps(body).encode()
        return house.ask("POST", "/reports/dmarc/senders", data=data).answer()

    assert shown() is None
    for decision, stored in (("mine", "mine"), ("not-mine", "not-mine"), ("undecided", None)):
        confirmed = decide(decision)
        assert confirmed.json == {
            "success": True,
            "domain": DOMAIN,
            "sender": "newsmill.example",
            "decision": stored,
        }
        assert shown() == stored
    assert "mine, not-mine or undecided; got" in decide("yours").json["error"]
    assert (
        'the key of a sender, as the reports show it; got "a b"'
        in (decide("mine", "a b").json["error"])
    )
