"""Receivers that send reports: their DNS and their signed mails."""

from collections.abc import Mapping
from dataclasses import replace

from tests.corpus.feedback_mails import LETTER
from tests.corpus.report_files import document, gzipped, report_mail
from tests.fakes.mail_signer import RSA, MailSigner
from tests.fakes.memory_zone import Failures, MemoryZone, Records

DOMAIN = "example.org"

RECEIVERS: Mapping[str, str] = {
    # report file: the domain that signs its mail
    "google.xml": "google.com",
    "yahoo.xml": "dmarc.yahoo.com",
    "microsoft.xml": "microsoft.com",
    "mailru.xml": "corp.mail.ru",
    "comcast.xml": "comcast.net",
    "fastmail.xml": "fastmaildmarc.com",
    "linkedin.xml": "linkedin.com",
    "gmx.xml": "sicher.gmx.net",
}

SERVICE: Records = {
    # A newsletter service that signs as itself, and uses the domain's envelope sender.
    "7.100.51.198.in-addr.arpa": {"PTR": ["out7.newsmill.example."]},
    "out7.newsmill.example": {"A": ["198.51.100.7"]},
    "newsmill.example": {"TXT": ["v=spf1 ip4:198.51.100.0/28 -all"]},
    # The domain's own host.
    "10.2.0.192.in-addr.arpa": {"PTR": ["mx.example.org."]},
    "mx.example.org": {"A": ["192.0.2.10"]},
    "example.org": {"TXT": ["v=spf1 ip4:192.0.2.10 ~all"], "MX": ["10 mx.example.org."]},
}


def signer_of(domain: str) -> MailSigner:
    """Return the signer of a domain."""
    return replace(RSA, domain=domain)


def signed_letter(number: int = 1) -> bytes:
    """Return a mail of a receiver that is not a report."""
    return signer_of("google.com").sign(LETTER % number)


def reports_records() -> Records:
    """Return the records of the receivers, and of a domain that does not ask for reports yet."""
    keys = {
        one.key_name: {"TXT": [one.key_record]}
        for one in map(signer_of, (*RECEIVERS.values(), "evil.example"))
    }
    return {**SERVICE, **keys}


def reports_zone(failing: Failures | None = None) -> MemoryZone:
    """Return the DNS zone with these records."""
    return MemoryZone(reports_records(), failing=failing)


def ask_for_reports(zone: MemoryZone, rua: str) -> None:
    """Publish a DMARC record that asks for reports to an address."""
    zone.publish(f"_dmarc.{DOMAIN}", "TXT", f"v=DMARC1; p=none; rua=mailto:{rua}")


def signed_report(name: str, recipient: str, domain: str = "", data: bytes | None = None) -> bytes:
    """Return the mail of a report of the corpus, signed by its receiver or another domain."""
    domain = domain or RECEIVERS[name]
    mail = report_mail(
        gzipped(document(name)) if data is None else data,
        "application/gzip",
        f"{name}.gz",
        author=f"dmarc-noreply@{domain}",
        recipient=recipient,
    )
    return signer_of(domain).sign(mail)
