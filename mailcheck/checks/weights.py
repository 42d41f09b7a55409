"""What costs points: every price of a finding about a mail stands here, and nowhere else.

In tenths of a point, off a perfect 100. Reasons are the published rules of
Google, Yahoo and Microsoft (2024-2026) and the scores of the common content
filters: all three providers want SPF or DKIM of every sender and DMARC of
large ones, refuse mail that has none of them, and a single major blocklist
stops delivery. ``docs/deliverability-tests.md`` publishes these tables.

The points of a domain's reputation (``GET /tools/reputation``) are others:
those stand in ``checks/scoring/awards.py``.
"""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.findings import Area, ChargedFinding, Finding

SCORING_VERSION = "2"
"""Changes with every change of a number or rule here, so that scores can be compared."""

GRAVE = 10
"""Tenths from which on a finding is an error and its check fails: as much as no SPF record."""


class Cost(Struct, frozen=True):
    """What one finding takes off, and why."""

    area: Area
    tenths: int
    when: str
    reason: str


OF_SENDER: Mapping[str, Cost] = MappingProxyType(
    {
        "spf.result-neutral": Cost(
            Area.SPF, 5, "SPF says neutral", "the domain says nothing about the sending host"
        ),
        "spf.result-none": Cost(
            Area.SPF, 10, "no SPF record", "Google, Yahoo and Microsoft ask bulk senders for one"
        ),
        "spf.result-softfail": Cost(
            Area.SPF, 10, "SPF says softfail", "receivers treat the mail with suspicion"
        ),
        "spf.result-permerror": Cost(
            Area.SPF, 15, "the SPF record can't be used", "many receivers count it as a fail"
        ),
        "spf.result-fail": Cost(
            Area.SPF, 20, "SPF says fail", "the domain itself asks to refuse the mail"
        ),
        "spf.open": Cost(
            Area.SPF,
            10,
            "the SPF record lets practically everybody send, so its pass proves nothing",
            "a forged mail passes as well; it is worth no more than no record",
        ),
        "spf.wide": Cost(
            Area.SPF,
            3,
            "the SPF record lets millions of addresses send, so its pass shows little",
            "a forged mail from any of them passes as well",
        ),
        "rdns.absent": Cost(
            Area.RDNS, 10, "the sending address has no name", "Google asks every sender for one"
        ),
        "rdns.unconfirmed": Cost(
            Area.RDNS,
            5,
            "the name of the sending address does not lead back to it",
            "Google asks for a name that does",
        ),
        "helo.unresolvable": Cost(
            Area.HELO,
            3,
            "the HELO name is no name that resolves",
            "RFC 5321 4.1.4 asks for one, and many receivers check it",
        ),
        "dkim.weak-key": Cost(
            Area.DKIM, 2, "the RSA key has less than 2048 bits", "RFC 8301 3.2 advises 2048"
        ),
        "dkim.unaligned": Cost(
            Area.DKIM,
            5,
            "a valid signature, but not of the From domain",
            "DMARC does not count it",
        ),
        "dkim.unsigned": Cost(
            Area.DKIM,
            10,
            "no DKIM signature",
            "Google, Yahoo and Microsoft ask bulk senders for one",
        ),
        "dkim.invalid": Cost(
            Area.DKIM,
            15,
            "no signature is valid",
            "it counts as unsigned, and looks altered or forged",
        ),
        "dmarc.no-record": Cost(
            Area.DMARC, 10, "no DMARC record", "Google, Yahoo and Microsoft refuse bulk mail then"
        ),
        "dmarc.fails-none": Cost(
            Area.DMARC,
            15,
            "DMARC fails, the policy is none",
            "receivers see that the From address is not vouched for",
        ),
        "dmarc.no-author": Cost(
            Area.DMARC,
            15,
            "no single From domain",
            "nothing vouches for the author; many receivers refuse such mail",
        ),
        "dmarc.fails-enforced": Cost(
            Area.DMARC,
            30,
            "DMARC fails, the policy is quarantine or reject",
            "receivers are asked to put the mail aside or to refuse it",
        ),
        "authentication.nothing-passes": Cost(
            Area.AUTHENTICATION,
            20,
            "neither SPF nor DKIM passes",
            "Gmail refuses such mail (5.7.26)",
        ),
        "sender.bounces-undeliverable": Cost(
            Area.SENDER,
            20,
            "the domain of the envelope sender takes no mail or does not exist",
            "many receivers refuse such mail (450 4.1.8, 550 5.7.27)",
        ),
        "sender.replies-undeliverable": Cost(
            Area.SENDER,
            10,
            "the From domain, another one, takes no mail or does not exist",
            "Microsoft and others refuse such mail",
        ),
    }
)
"""Of the sending host, the signatures and the author."""

OF_MAKING: Mapping[str, Cost] = MappingProxyType(
    {
        "headers.date-missing": Cost(
            Area.HEADERS,
            3,
            "no Date",
            "RFC 5322 3.6 requires it, and filters mark mail without one",
        ),
        "headers.message-id-missing": Cost(
            Area.HEADERS,
            3,
            "no Message-ID",
            "RFC 5322 3.6.4 asks for one; filters take mail without one for the work of a script",
        ),
        "content.html-only": Cost(
            Area.CONTENT,
            3,
            "HTML without a text part beside it",
            "readers without HTML and many filters expect one (RFC 2046 5.1.4)",
        ),
        "transport.no-tls": Cost(
            Area.TRANSPORT, 3, "handed over without TLS", "Google asks every sender for it"
        ),
        "unsubscribe.no-one-click": Cost(
            Area.UNSUBSCRIBE,
            5,
            "bulk mail that can't be unsubscribed from with one click",
            "Google and Yahoo ask bulk senders for it (RFC 8058)",
        ),
    }
)
"""Of how the mail is made. The content filter judges many of these things too, with weights
learned from real mail, and charges for them; here only what receivers' own rules name is."""

MAX_MAKING = 15
"""Tenths for the making of a mail: it does not weigh as much as who sent it."""

COSTS: Mapping[str, Cost] = MappingProxyType({**OF_SENDER, **OF_MAKING})
"""By the id of the finding. What is neither here nor in `MEASURED` costs nothing."""

MEASURED = frozenset({"dnsbl.listed", "spamassassin.points"})
"""Findings without one price: what they cost is measured by `cost_of_listing` and
`cost_of_points`."""


class ListingTier(Struct, frozen=True):
    """What one listing costs; the first tier whose weight is reached."""

    weight: int
    tenths: int
    reason: str


LISTING_TIERS = (
    ListingTier(8, 30, "one such listing stops delivery at large receivers"),
    ListingTier(5, 15, "many receivers weigh it heavily"),
    ListingTier(3, 7, "some receivers weigh it"),
    ListingTier(1, 2, "a few receivers mind"),
    ListingTier(0, 0, "hardly any receiver minds"),
)

MAX_LISTINGS = 50
"""Tenths for all listings together: beyond that the mail is lost anyway."""

FILTER_FACTOR = 8
"""Tenths for each point of the content filter: 4.0 at its threshold of 5."""

FILTER_MAX_POINTS = 5.0
"""Points that count: above the threshold mail is spam, however far."""


def cost_of_listing(weight: int) -> int:
    """Give the tenths for a listing on a list of this weight."""
    return next((tier.tenths for tier in LISTING_TIERS if weight >= tier.weight), 0)


def cost_of_points(points: float) -> int:
    """Give the tenths for a filter's points, halves rounded up."""
    counted = Decimal(str(min(max(points, 0.0), FILTER_MAX_POINTS)))
    return int((FILTER_FACTOR * counted).to_integral_value(ROUND_HALF_UP))


def charge_known(area: Area, finding: Finding) -> ChargedFinding:
    """Put its price on a finding; nothing if it has none."""
    cost = COSTS.get(finding.id)
    return ChargedFinding(area, finding, cost.tenths if cost is not None else 0)


def charge_measured(area: Area, finding: Finding, tenths: int) -> ChargedFinding:
    """Put on a finding what was measured for it; nothing if it is none of the measured."""
    return ChargedFinding(area, finding, tenths if finding.id in MEASURED else 0)
