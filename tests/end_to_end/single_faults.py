"""A table of senders with one fault each: their records, their mail, and the deductions.

Every sender has a separate domain, host and address in one zone, so that one name server and
one daemon serve all of them.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime

import dkim  # type: ignore[import-untyped]

from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.mail_signer import RSA, RSA_1024, MailSigner
from tests.fakes.memory_zone import MemoryZone

SELECTOR = "s1"

TODAY = format_datetime(datetime.now(UTC))
"""Content filters penalise old mail, so the date is that of the run, the same for all mails."""

_MAIL = """\
From: Ann Example <ann@{domain}>\r
To: you@example.com\r
Subject: The minutes of Monday\r
Date: {date}\r
Message-ID: <1.minutes@{domain}>\r
MIME-Version: 1.0\r
Content-Type: text/plain; charset=utf-8\r
\r
Hello Bob,\r
\r
here is what we said on Monday: https://{domain}/minutes\r
"""

_SIGNED = (b"from", b"to", b"subject", b"date", b"message-id")

Change = Callable[[bytes], bytes]
Records = Mapping[str, Mapping[str, list[str]]]


def _same(raw_message: bytes) -> bytes:
    return raw_message


def _without(name: bytes) -> Change:
    """Return a change that removes a header field."""

    def change(raw_message: bytes) -> bytes:
        lines = raw_message.split(b"\r\n")
        return b"\r\n".join(line for line in lines if not line.startswith(name + b":"))

    return change


def _with(line: bytes) -> Change:
    """Return a change that adds a header field."""
    return lambda raw_message: line + b"\r\n" + raw_message


def _as_html(raw_message: bytes) -> bytes:
    header, _, body = raw_message.partition(b"\r\n\r\n")
    header = header.replace(b"text/plain", b"text/html")
    words = b"<html><body><p>" + body.replace(b"\r\n\r\n", b"</p>\r\n<p>") + b"</p></body></html>"
    return header + b"\r\n\r\n" + words + b"\r\n"


@dataclass(frozen=True)
class Sender:
    """A sender; ``costs`` are the published deductions by the id of the finding.

    ``publishes`` are records that replace those of a sender without faults. Each name is relative
    to the sender's domain, or absolute with a dot at its end. ``{address}`` is the reversed address
    for reverse names and lists.
    """

    name: str
    costs: Mapping[str, float] = field(default_factory=dict)
    publishes: Records = field(default_factory=dict)
    writes: Change = _same
    alters: Change = _same
    signer: MailSigner | None = RSA
    helo: str = "mx"
    has_tls: bool = True
    number: int = 0

    @property
    def domain(self) -> str:
        """The sender's domain."""
        return f"{self.name}.example"

    @property
    def address(self) -> str:
        """The sender's public address."""
        return f"8.8.6.{self.number}"

    @property
    def helo_name(self) -> str:
        """The sender's HELO name."""
        return f"{self.helo}.{self.domain}"

    @property
    def score(self) -> float:
        """The score after the published deductions."""
        return round(10 - sum(self.costs.values()), 1)

    def mail(self) -> bytes:
        """Return a mail that dkimpy has signed."""
        raw_message = self.writes(_MAIL.format(domain=self.domain, date=TODAY).encode())
        if self.signer is None:
            return raw_message
        header = dkim.sign(
            raw_message,
            SELECTOR.encode(),
            self.domain.encode(),
            _pem(self.signer.private),
            canonicalize=(b"relaxed", b"relaxed"),
            include_headers=[name for name in _SIGNED if _has_field(raw_message, name)],
        )
        return self.alters(bytes(header) + raw_message)

    def records(self) -> dict[str, Mapping[str, list[str]]]:
        """Return all records of the sender."""
        host, reverse = f"mx.{self.domain}", ".".join(reversed(self.address.split(".")))
        signer = self.signer or RSA
        good: dict[str, Mapping[str, list[str]]] = {
            self.domain: {"TXT": ["v=spf1 mx -all"], "MX": [f"10 {host}."]},
            host: {"A": [self.address], "TXT": ["v=spf1 a -all"]},
            f"{reverse}.in-addr.arpa": {"PTR": [f"{host}."]},
            f"_dmarc.{self.domain}": {"TXT": [f"v=DMARC1; p=reject; rua=mailto:d@{self.domain}"]},
            f"{SELECTOR}._domainkey.{self.domain}": {"TXT": [signer.key_record]},
        }
        for name, node in self.publishes.items():
            owner = name.format(address=reverse, domain=self.domain)
            good[owner] = {**good.get(owner, {}), **node}
        return good


def _pem(private: str) -> bytes:
    lines = base64.encodebytes(base64.b64decode(private))
    return b"-----BEGIN RSA PRIVATE KEY-----\n" + lines + b"-----END RSA PRIVATE KEY-----\n"


def _has_field(raw_message: bytes, name: bytes) -> bool:
    header = raw_message.partition(b"\r\n\r\n")[0].lower()
    return any(line.startswith(name + b":") for line in header.split(b"\r\n"))


_SPF = "{domain}"
_PTR = "{address}.in-addr.arpa"

# The points are those of docs/explanation/scores.md, written independently.
_ALL = (
    Sender("perfect"),
    Sender("unsigned", {"dkim.unsigned": 1.0}, signer=None),
    Sender("altered", {"dkim.invalid": 1.5}, alters=lambda raw: raw.replace(b"Bob", b"Rob")),
    Sender("weak", {"dkim.weak-key": 0.2}, signer=RSA_1024),
    Sender("spf-none", {"spf.result-none": 1.0}, {_SPF: {"TXT": ["nothing"]}}),
    Sender("spf-neutral", {"spf.result-neutral": 0.5}, {_SPF: {"TXT": ["v=spf1 ?all"]}}),
    Sender("spf-soft", {"spf.result-softfail": 1.0}, {_SPF: {"TXT": ["v=spf1 ~all"]}}),
    Sender("spf-broken", {"spf.result-permerror": 1.5}, {_SPF: {"TXT": ["v=spf1 mx oops"]}}),
    Sender("spf-fail", {"spf.result-fail": 2.0}, {_SPF: {"TXT": ["v=spf1 -all"]}}),
    Sender("no-ptr", {"rdns.absent": 1.0}, {_PTR: {"PTR": []}}),
    Sender("other-ptr", {"rdns.unconfirmed": 0.5}, {_PTR: {"PTR": ["elsewhere.example."]}}),
    Sender("no-helo", {"helo.unresolvable": 0.3}, helo="nowhere"),
    Sender("no-dmarc", {"dmarc.no-record": 1.0}, {"_dmarc.{domain}": {"TXT": []}}),
    Sender("listed", {"dnsbl.listed": 3.0}, {"{address}.zen.spamhaus.org": {"A": ["127.0.0.2"]}}),
    Sender("bad-name", {"dnsbl.listed": 3.0}, {"{domain}.dbl.spamhaus.org": {"A": ["127.0.1.2"]}}),
    Sender("no-id", {"headers.message-id-missing": 0.3}, writes=_without(b"Message-ID")),
    Sender("no-date", {"headers.date-missing": 0.3}, writes=_without(b"Date")),
    Sender("html", {"content.html-only": 0.3}, writes=_as_html),
    Sender(
        "bulk",
        {"unsubscribe.no-one-click": 0.5},
        writes=_with(
            b"List-Unsubscribe: <mailto:off@bulk.example>\r\nList-Id: <news.bulk.example>"
        ),
    ),
    Sender("plain", {"transport.no-tls": 0.3}, has_tls=False),
)

SENDERS = {one.name: replace(one, number=number) for number, one in enumerate(_ALL, 10)}


def zone_of_all() -> MemoryZone:
    """Return the zone of all senders and working blocklists."""
    records: dict[str, Mapping[str, list[str]]] = {}
    for sender in SENDERS.values():
        records.update(sender.records())
    zone = MemoryZone(records)
    publish_list_test_entries(zone)
    return zone
