"""What the page of a domain check is asked for, and the words it has for what was found."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlencode

from mailcheck.checks.dnsbl.mail_addresses import MAX_ADDRESSES
from mailcheck.core.domain_names import parse_domain, parse_host_address, parse_selector
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from mailcheck.operations.ranges import MAX_SELECTORS
from mailcheck.wire.parameters import Query

SEPARATORS = re.compile(r"[\s,;]+")

MECHANISMS = MappingProxyType(
    {
        "mx": "MX: where its mail goes",
        "spf": "SPF: who may send for it",
        "dkim": "DKIM: the keys that sign",
        "dmarc": "DMARC: what to do with forgeries",
        "mtaSts": "MTA-STS: encryption is asked for",
        "tlsRpt": "TLS-RPT: reports about encryption",
        "dane": "DANE: certificates in DNS",
        "dnssec": "DNSSEC: signed answers",
    }
)

HOST_PROBLEMS = MappingProxyType(
    {
        "dead": "has no address",
        "not-public": "has private addresses only",
        "partly-public": "has private addresses too",
        "address-literal": "is an address, not a name",
        "alias": "is an alias (CNAME)",
        "undetermined": "could not be looked up",
    }
)

SPF_PROBLEMS = MappingProxyType(
    {
        "absent": "there is no SPF record",
        "several": "there is more than one SPF record",
        "syntax": "the record can't be read",
        "loop": "the record includes itself",
        "undetermined": "could not be determined",
        "macro": "depends on the mail",
        "not-followed": "not looked at: too many records",
    }
)


@dataclass(frozen=True, slots=True)
class NameRules:
    """Which names and addresses may be asked about."""

    allow_special_use: bool
    allow_private: bool


@dataclass(frozen=True, slots=True)
class DomainForm:
    """The form as it was filled in."""

    domain: str
    selectors: str
    addresses: str

    def query(self, **more: str) -> str:
        """Write the query string of this very check."""
        fields = {"domain": self.domain, "selectors": self.selectors, "ips": self.addresses, **more}
        return "?" + urlencode({name: value for name, value in fields.items() if value})

    def read(self, rules: NameRules) -> ReputationQuery:
        """Read what is asked.

        :raises InvalidParameter: names the field, and says what to send instead.
        """
        domain = parse_domain(self.domain, allow_special_use=rules.allow_special_use)
        selectors = _split(self.selectors, MAX_SELECTORS, "selectors")
        texts = _split(self.addresses, MAX_ADDRESSES, "sending addresses")
        addresses: list[IpAddress] = [
            parse_host_address(text, name="the address", allow_private=rules.allow_private)
            for text in texts
        ]
        return ReputationQuery(
            domain,
            tuple(dict.fromkeys(map(parse_selector, selectors))),
            tuple(dict.fromkeys(addresses)),
        )


def read_domain_form(query: Query) -> DomainForm:
    """Take the form out of a query string.

    :raises InvalidParameter: a field is given twice or is too long.
    """
    return DomainForm(
        *((query.text(name) or "").strip() for name in ("domain", "selectors", "ips"))
    )


def _split(text: str, at_most: int, what: str) -> list[str]:
    parts = [part for part in SEPARATORS.split(text) if part]
    if len(parts) > at_most:
        raise InvalidParameter(what, f"there are {len(parts)} {what}; {at_most} are allowed")
    return parts


def score_level(score: float, best: float) -> str:
    """Say how a score is to be read: good, warn or bad."""
    share = score / best
    return "good" if share >= 0.8 else "warn" if share >= 0.6 else "bad"


WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"mechanisms": MECHANISMS, "hosts": HOST_PROBLEMS, "spf": SPF_PROBLEMS}
)
