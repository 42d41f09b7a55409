"""A domain with eight senders, and a receiver that evaluates their mail and reports about it.

Two own senders are broken, one service forwards, and one sender forges. The receiver uses our own
evaluation of SPF, DKIM keys and DMARC with the records that the zone has on the day. Services sign
for the domain as soon as their records are published.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.evaluate import evaluate_dkim
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dmarc.mail import DmarcOfMail, evaluate_dmarc_of_mail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.spf.mail import SpfOfMail, evaluate_spf_of_mail
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.core.network_addresses import parse_ip_address
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle

DOMAIN, RECEIVER = "example.org", "google.com"

KEY = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2

ZONE = {
    DOMAIN: {
        "MX": [f"10 mx.{DOMAIN}."],
        "TXT": ["v=spf1 mx include:_spf.google.com -all"],
    },
    f"mx.{DOMAIN}": {"A": ["192.0.2.10"]},
    f"google._domainkey.{DOMAIN}": {"TXT": [KEY]},
    f"mx._domainkey.{DOMAIN}": {"TXT": [KEY]},
    f"s1._domainkey.{DOMAIN}": {"CNAME": ["s1.domainkey.u1.wl1.sendgrid.net."]},
    f"zendesk1._domainkey.{DOMAIN}": {"CNAME": ["zendesk1._domainkey.zendesk.com."]},
    f"em1.{DOMAIN}": {"CNAME": ["u1.wl1.sendgrid.net."]},
    "s1.domainkey.u1.wl1.sendgrid.net": {"TXT": [KEY]},
    "u1.wl1.sendgrid.net": {"TXT": ["v=spf1 ip4:198.51.100.3 -all"]},
    "zendesk1._domainkey.zendesk.com": {"TXT": [KEY]},
    "zendesk2._domainkey.zendesk.com": {"TXT": [KEY]},
    "_spf.google.com": {"TXT": ["v=spf1 ip4:192.0.2.20/30 -all"]},
    "mail.zendesk.com": {"TXT": ["v=spf1 ip4:198.51.100.4 -all"]},
    "dkim2.mcsv.net": {"TXT": [KEY]},
    "dkim3.mcsv.net": {"TXT": [KEY]},
    "k2._domainkey.mailchimpapp.net": {"TXT": [KEY]},
    "mail5.rsgsv.net": {"TXT": ["v=spf1 ip4:198.51.100.5 -all"]},
    "srs.improvmx.com": {"TXT": ["v=spf1 ip4:203.0.113.7 -all"]},
    "bad.example": {"TXT": ["v=spf1 ip4:203.0.113.66 -all"]},
}

HOSTS = {
    "192.0.2.10": f"mx.{DOMAIN}",
    "192.0.2.21": "mail-21.google.com",
    "198.51.100.3": "o3.ptr1.sendgrid.net",
    "198.51.100.4": "out4.zdsys.com",
    "198.51.100.5": "mail5.rsgsv.net",
    "203.0.113.6": "shop6.hoster.example",
    "203.0.113.7": "out7.improvmx.com",
    "203.0.113.66": "host66.bad.example",
}
"""Reverse DNS names. The forger's second address has none."""


@dataclass(frozen=True)
class Stream:
    """Mail of a sender on one day: how it arrives, and how many messages.

    ``signatures`` are pairs of signing domain and selector.
    """

    name: str
    source: str
    envelope: str
    signatures: tuple[tuple[str, str], ...]
    messages: int
    author: str = DOMAIN
    is_mine: bool = True


@dataclass
class Year:
    """The world on its present day. ``signs`` are the selectors that an owner has turned on."""

    zone: MemoryZone
    signs: set[str] = field(default_factory=set)
    day: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    _judged: dict["Stream", "Judged"] = field(default_factory=dict)

    def publish(self, name: str, rdtype: str, value: str) -> None:
        """Publish a record. The mail of the next days is evaluated again."""
        self.zone.publish(name, rdtype, value)
        self._judged.clear()

    def streams(self) -> Iterator[Stream]:
        """Yield the mail of a day, direct and forwarded."""
        direct = list(self._direct())
        yield from direct
        for one in direct:  # a tenth of it is forwarded to another mailbox
            yield Stream(
                one.name, "203.0.113.7", "srs.improvmx.com", one.signatures, one.messages // 10
            )
        forged: tuple[tuple[str, str], ...] = ()
        yield Stream("forger", "203.0.113.66", "bad.example", forged, 9, is_mine=False)
        yield Stream(
            "forger", "203.0.113.66", DOMAIN, forged, 3, f"made-up.{DOMAIN}", is_mine=False
        )

    def strays(self, day: int) -> Iterator[Stream]:
        """Yield the forged mail that comes once a month, from an address without a name."""
        if day % 30 == 3:
            yield Stream("forger", "203.0.113.99", DOMAIN, (), 1, is_mine=False)

    def _direct(self) -> Iterator[Stream]:
        yield Stream("google", "192.0.2.21", DOMAIN, ((DOMAIN, "google"),), 40)
        yield Stream("own server", "192.0.2.10", DOMAIN, ((DOMAIN, "mx"),), 30)
        yield Stream("sendgrid", "198.51.100.3", f"em1.{DOMAIN}", ((DOMAIN, "s1"),), 60)
        yield Stream("zendesk", "198.51.100.4", "mail.zendesk.com", ((DOMAIN, "zendesk1"),), 20)
        signer = "mailchimpapp.net"
        if all(self.zone.published(f"k{one}._domainkey.{DOMAIN}", "CNAME") for one in (2, 3)):
            signer = DOMAIN
        yield Stream("mailchimp", "198.51.100.5", "mail5.rsgsv.net", ((signer, "k2"),), 50)
        shop = ((DOMAIN, "shop"),) if "shop" in self.signs else ()
        yield Stream("shop", "203.0.113.6", DOMAIN, shop, 20)

    def report(self, begins_at: Instant) -> bytes:
        """Evaluate the mail of the next day, and return the receiver's report (RFC 9990)."""
        day, self.day = self.day, self.day + 1
        rows = [self._receive(one) for one in (*self.streams(), *self.strays(day)) if one.messages]
        begin = begins_at // SECOND
        return _DOCUMENT.format(
            receiver=RECEIVER,
            number=day,
            begin=begin,
            end=begin + DAY // SECOND - 1,
            domain=DOMAIN,
            rows="".join(rows),
        ).encode()

    def _receive(self, stream: Stream) -> str:
        if stream not in self._judged:
            self._judged[stream] = settle(self.zone, lambda answers: _judge(stream, answers))
        spf, dkim, dmarc = self._judged[stream]
        failed = dmarc.result is AuthResult.FAIL
        policy = dmarc.policy if failed and dmarc.policy is not None else Policy.NONE
        if policy is not Policy.NONE:
            (self.lost if stream.is_mine else self.stopped)[stream.name] += stream.messages
        return _row(stream, policy, spf, dkim, dmarc)


Judged = tuple[SpfOfMail, DkimOfMail, DmarcOfMail]


def _judge(stream: Stream, answers: Answers) -> Judged:
    address = parse_ip_address(stream.source)
    assert address is not None
    host = HOSTS.get(stream.source, "unknown.example")
    spf = evaluate_spf_of_mail(address, host, f"bounce@{stream.envelope}", RECEIVER, answers)
    signatures = []
    for number, (signer, selector) in enumerate(stream.signatures):
        keys = evaluate_dkim(signer, (selector,), answers).usable_keys
        result = AuthResult.PASS if keys else AuthResult.PERMERROR
        header = SignatureHeader(number, signer, selector)
        signatures.append(SignatureOfMail(header, result, None, ""))
    dkim = DkimOfMail(tuple(signatures))
    return spf, dkim, evaluate_dmarc_of_mail([stream.author], spf, dkim, answers)


def _row(
    stream: Stream, policy: Policy, spf: SpfOfMail, dkim: DkimOfMail, dmarc: DmarcOfMail
) -> str:
    def word(aligned: bool | None) -> str:
        return "pass" if aligned else "fail"

    signatures = "".join(
        f"<dkim><domain>{one.header.signing_domain}</domain><selector>{one.header.selector}"
        f"</selector><result>{one.result.value}</result></dkim>"
        for one in dkim.signatures
    )
    return _RECORD.format_map(
        {name: escape(value) for name, value in _facts(stream, policy, spf).items()}
        | {
            "dkim": word(dmarc.is_dkim_aligned),
            "spf": word(dmarc.is_spf_aligned),
            "signatures": signatures,
        }
    )


def _facts(stream: Stream, policy: Policy, spf: SpfOfMail) -> Mapping[str, str]:
    return {
        "source": stream.source,
        "count": str(stream.messages),
        "disposition": policy.value,
        "author": stream.author,
        "envelope": stream.envelope,
        "result": spf.mail_from.result.value,
    }


_DOCUMENT = """<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
<report_metadata><org_name>{receiver}</org_name><email>noreply@{receiver}</email>
<report_id>{number}</report_id><date_range><begin>{begin}</begin><end>{end}</end></date_range>
</report_metadata><policy_published><domain>{domain}</domain><p>none</p></policy_published>
{rows}</feedback>"""

_RECORD = """<record><row><source_ip>{source}</source_ip><count>{count}</count>
<policy_evaluated><disposition>{disposition}</disposition><dkim>{dkim}</dkim><spf>{spf}</spf>
</policy_evaluated></row><identifiers><envelope_from>{envelope}</envelope_from>
<header_from>{author}</header_from></identifiers><auth_results>{signatures}
<spf><domain>{envelope}</domain><scope>mfrom</scope><result>{result}</result></spf>
</auth_results></record>"""


def year_zone() -> MemoryZone:
    """Return the zone at the beginning: p=none, and two own senders that do not pass."""
    zone = MemoryZone(ZONE)
    for address, host in HOSTS.items():
        zone.publish(f"{'.'.join(reversed(address.split('.')))}.in-addr.arpa", "PTR", f"{host}.")
        zone.publish(host, "A", address)
    return zone
