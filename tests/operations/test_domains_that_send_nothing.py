"""A domain without mail is advised to declare this in all of its records."""

from itertools import product

from tests.fakes.memory_zone import MemoryZone
from tests.operations.described_domain import describe
from tests.table import rows

DOMAIN = "d.example"


@rows(
    *product(
        [["8.8.4.1"], []],
        [
            [],
            ["v=DMARC1; p=none; rua=mailto:d@d.example"],
            ["v=DMARC1; p=quarantine; rua=mailto:d@d.example"],
            ["v=DMARC1; p=reject; rua=mailto:d@d.example"],
            ["v=DMARC1; p=reject"],
        ],
    )
)
def test_advice_ends_at_a_parked_domain(address: list[str], dmarc: list[str]) -> None:
    """The advice leads to null MX, p=reject and an empty DKIM wildcard.

    It never proposes the web server as MX, nor a key.
    """
    zone = MemoryZone({DOMAIN: {"TXT": ["v=spf1 -all"], "A": address}})
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", *dmarc)
    for _ in range(6):
        report = describe(zone, selectors=())
        ids = {one.id for one in report.outcome.findings}
        assert not ids & {"mx.implicit", "mx.absent", "dkim.absent", "rdns.absent"}
        if not report.proofs:
            break
        for fix in report.proofs.values():
            zone.publish(fix.record.name, fix.record.rdtype, fix.record.value)
    assert zone.published(DOMAIN, "MX") == ("0 .",)
    assert zone.published(f"*._domainkey.{DOMAIN}", "TXT") == ("v=DKIM1; p=",)
    assert "p=reject" in zone.published(f"_dmarc.{DOMAIN}", "TXT")[0]
    assert report.records.is_parked


@rows(("v=spf1 mx -all", []), ("v=spf1 -all", ["10 mx.d.example."]))
def test_a_domain_that_sends_or_receives_keeps_its_advice(spf: str, mx: list[str]) -> None:
    """A domain with a sender or a mail host is not advised to publish a null MX."""
    zone = MemoryZone({DOMAIN: {"TXT": [spf], "A": ["8.8.4.1"], "MX": mx}})
    zone.publish("mx.d.example", "A", "8.8.4.2")
    ids = {one.id for one in describe(zone, selectors=()).outcome.findings}
    assert not ids & {"mx.no-null", "dkim.no-wildcard", "dmarc.not-reject"}
