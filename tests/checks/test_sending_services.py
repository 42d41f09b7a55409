"""The catalogue of sending services: its shape, and how services are recognized."""

from ipaddress import ip_network

from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.overlay import parse_rdata
from mailcheck.checks.receiver_reports.services import (
    RecordUse,
    SendingService,
    find_service_by_id,
    find_service_of_domain,
    find_service_of_host,
    load_services,
)
from mailcheck.checks.spf.repair import add_term
from tests.table import rows

SERVICES = load_services()


def test_each_service_is_one_entry() -> None:
    """Ids are unique and cannot be a domain or an address, and each domain has one service."""
    ids = [one.id for one in SERVICES]
    assert len(set(ids)) == len(ids) > 50
    assert not any("." in one or ":" in one for one in ids)
    for kind in ("hosts", "envelopes", "signers"):
        named = [(name, one.id) for one in SERVICES for name in getattr(one, kind)]
        assert len({name for name, _ in named}) == len(named), kind
    signed = {name: one.id for one in SERVICES for name in one.signers}
    for one in SERVICES:
        for name in (*one.hosts, *one.envelopes):
            assert signed.get(name, one.id) == one.id, name


@rows(*SERVICES)
def test_an_entry_is_usable(service: SendingService) -> None:
    """Hosts are registrable domains, networks are networks, and exact records are valid."""
    for name in (*service.hosts, *service.envelopes, *service.signers):
        assert registrable_domain(name) == name
    for network in service.networks:
        ip_network(network)
    assert service.guide.startswith("https://") or not service.guide
    assert service.hosts or service.envelopes or service.signers
    for record in service.records:
        value = record.value_for("a-b.example")
        assert "{" not in record.name + value
        if record.use is RecordUse.SPF:
            assert record.type == "TXT"
            value = add_term("v=spf1 -all", value)
        if record.is_exact:
            shown = RecordToPublish(record.name_at("a-b.example"), record.type, value)
            parse_rdata(shown.rdtype, shown.value)


def test_services_are_recognized_by_hosts_and_domains() -> None:
    """A name below a host of a service is enough; unknown names have no service."""
    host = find_service_of_host("o1.ptr99.outbound-mail.sendgrid.net")
    assert host is not None
    assert host.name == "SendGrid"
    tenant = find_service_of_domain("contoso.onmicrosoft.com")
    assert tenant is not None
    assert tenant.forwards
    assert find_service_of_host("mx.example.org") is None
    assert find_service_of_domain("sendgrid.net.example.org") is None
    assert find_service_by_id("sendgrid") is host
    assert find_service_by_id("nobody") is None


def test_the_domain_of_a_customer_is_filled_in() -> None:
    """The templates of names and values contain the customer's domain."""
    brevo = find_service_by_id("brevo")
    assert brevo is not None
    record = brevo.records[0]
    assert record.is_exact
    assert record.name_at("news.example.org") == "brevo1._domainkey.news.example.org"
    assert record.value_for("news.example.org") == "b1.news-example-org.dkim.brevo.com"
    sendgrid = find_service_by_id("sendgrid")
    assert sendgrid is not None
    assert not sendgrid.records[0].is_exact
