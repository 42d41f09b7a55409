"""JSON Schemas of the domain tools (SPEC.md 2.1 to 2.3, DECISIONS.md section 2)."""

from mailcheck.checks.dnsbl.catalogue import TargetKind
from mailcheck.checks.dnsbl.listings import ListingStatus
from mailcheck.checks.findings import Severity
from mailcheck.checks.mx.verdicts import HostProblem
from mailcheck.checks.scoring.outcomes import FactorName, Status
from mailcheck.checks.scoring.weights import GRADES, MAXIMA
from mailcheck.wire.schemas import (
    Schema,
    array_of,
    boolean,
    choice,
    number,
    or_null,
    record,
    text,
    timestamp,
    whole_number,
)

BLOCKLISTS = 32
"""Rows of every check (SPEC.md section 8)."""

MAIL_HOST = record(
    {
        "exchange": text("host name"),
        "priority": whole_number("the lowest is tried first", minimum=0, maximum=65_535),
        "ip": array_of(text(), "its addresses, IPv4 first"),
        "problem": choice(HostProblem, "why mail does not, or not everywhere, reach it"),
    },
    optional=["problem"],
)

_MX_FIELDS: dict[str, Schema] = {
    "hasMx": boolean("whether MX records exist"),
    "records": array_of(MAIL_HOST, "by priority, then name"),
    "nullMx": boolean("the domain says that it takes no mail (RFC 7505)"),
    "implicitMx": boolean("no MX, but an address: mail goes there (RFC 5321 5.1)"),
    "hasSpf": boolean(),
    "spfRecord": text("present when hasSpf is true; of several the first"),
    "spfProblems": array_of(text(), "what is wrong with SPF; absent when nothing is"),
    "hasDmarc": boolean(),
    "dmarcRecord": text("present when hasDmarc is true"),
    "dmarcDomain": text("where the record was found (RFC 9989 tree walk)"),
}

MX_CHECK = record(
    {"domain": text("the domain checked, lower case, in A-labels"), **_MX_FIELDS},
    optional=["spfRecord", "spfProblems", "dmarcRecord", "dmarcDomain"],
)

LISTING = record(
    {
        "name": text("of the list"),
        "zone": text("DNS zone of the list"),
        "listed": boolean("true only when the list says so; see status for the rest"),
        "responseTime": whole_number("milliseconds", minimum=0),
        "status": choice(ListingStatus, "unknown: could not be found out, which is not a no"),
        "codes": array_of(text(), "the addresses that the list answered"),
        "meaning": or_null(text("what the answer means, or why it is unknown")),
        "reason": or_null(text("what the list itself says (TXT)")),
        "weight": whole_number(
            "how much it matters; 8 and more stop delivery at once", minimum=0, maximum=10
        ),
        "delistUrl": or_null(text("where to ask for removal")),
        "matched": array_of(text(), "what of the query is listed"),
    },
    "the answer of one blocklist",
)

BLACKLIST_CHECK = record(
    {
        "query": text("the value that was checked"),
        "queryType": choice(("ip", "domain")),
        "totalChecked": whole_number("lists that were asked", minimum=0, maximum=BLOCKLISTS),
        "totalListed": whole_number(minimum=0, maximum=BLOCKLISTS),
        "totalUnknown": whole_number("lists of which nothing is known", minimum=0),
        "addresses": array_of(text(), "the mail addresses that stood in for the domain"),
        "results": array_of(
            LISTING, "one row for each list", minItems=BLOCKLISTS, maxItems=BLOCKLISTS
        ),
    }
)

BLACKLISTS = record(
    {
        "blocklists": array_of(
            record(
                {
                    "name": text(),
                    "zone": text(),
                    "operator": or_null(text()),
                    "kinds": array_of(choice(TargetKind), "what it knows"),
                    "weight": whole_number("0 to 10", minimum=0, maximum=10),
                    "enabled": boolean("false: the operator has switched it off"),
                    "delistUrl": or_null(text()),
                    "access": or_null(text("what it asks of those who use it")),
                    "profiles": array_of(choice(("ip", "domain")), "the checks it is asked in"),
                    "dailyBudget": or_null(whole_number("questions a day; null: any number")),
                    "askedToday": whole_number(minimum=0),
                    "health": choice(("healthy", "sick", "unreachable", "untested", "disabled")),
                    "tests": array_of(
                        record(
                            {
                                "kind": choice(TargetKind),
                                "status": choice(("healthy", "sick", "unreachable", "untested")),
                                "reason": or_null(text()),
                            }
                        ),
                        "the self-test (RFC 5782) of each kind",
                    ),
                }
            )
        ),
        "testedAt": or_null(timestamp("when the lists were tested last; null: not yet")),
    },
    "the catalogue",
)

DNS_RECORD = record(
    {"name": text("absolute, without the last dot"), "type": text(), "value": text()},
    "a DNS record to publish, as it is typed into a zone editor",
)

DOMAIN_FINDING = record(
    {
        "id": text("stable, like spf.too-many-lookups"),
        "severity": choice(Severity),
        "meaning": text("what it means, one sentence"),
        "fix": text("what to do"),
        "record": DNS_RECORD,
    },
    "something about a domain that is wrong, unknown or good to know",
    optional=["record"],
)

FACTOR = record(
    {
        "name": choice(FactorName),
        "status": choice(Status, "read any other value as failing"),
        "detail": text("for people"),
        "impact": whole_number("points it contributes; they sum to the score"),
        "determined": boolean("false: could not be found out, which is not a no"),
        "maximum": whole_number("points it could give", minimum=0, maximum=max(MAXIMA.values())),
        "gain": whole_number("points that fixing it would add", minimum=0),
        "fix": or_null(DOMAIN_FINDING),
    },
    "one factor of a reputation",
)

_DETERMINED = boolean("false: could not be found out, which is not a no")


def _detail(fields: dict[str, Schema], *optional: str) -> Schema:
    return record({"valid": boolean(), **fields, "determined": _DETERMINED}, optional=optional)


DETAILS = record(
    {
        "mx": _detail({"count": whole_number(minimum=0), "primary": text("host name, or empty")}),
        "spf": _detail({"record": text("empty without one")}),
        "dkim": _detail({"selectors": array_of(text())}),
        "dmarc": _detail(
            {"policy": choice(("none", "quarantine", "reject", "")), "rua": array_of(text())}
        ),
        "blacklists": record(
            {
                "checked": whole_number("lists that answered", minimum=0),
                "listed": whole_number(minimum=0),
                "clean": boolean(),
            }
        ),
        "tls": _detail({"starttls": boolean("whether any mail host offers it")}),
        "domainAge": _detail(
            {
                "years": number(minimum=0),
                "registrationDate": {"type": "string", "format": "date"},
            },
            "years",
            "registrationDate",
        ),
        "rdns": _detail(
            {"hostname": text("empty without one"), "ip": text("the address it is about")},
            "ip",
            "determined",
        ),
    },
    "what was found, by check",
)

_REPUTATION_FIELDS: dict[str, Schema] = {
    "domain": text(),
    "ip": text("address of the domain, else of its best mail host; empty without one"),
    "factors": array_of(FACTOR, minItems=len(FactorName), maxItems=len(FactorName)),
    "details": DETAILS,
    "checkedAt": timestamp(),
    "cached": boolean("whether the result came from the cache, with its checkedAt"),
    "scoringVersion": text("changes when points change"),
    "undetermined": array_of(choice(FactorName), "factors that could not be determined"),
}

REPUTATION = record(
    {
        "score": whole_number("the sum of all impacts", minimum=0, maximum=100),
        "grade": choice([grade for _, grade in GRADES]),
        **_REPUTATION_FIELDS,
    }
)

MX_UNDETERMINED = record(
    {"error": text(), "partial": record({"domain": text(), **_MX_FIELDS}, optional=[*_MX_FIELDS])},
    "MX, SPF or DMARC could not be determined; `partial` has the rest",
)

BLACKLISTS_UNANSWERED = record(
    {"error": text(), "partial": BLACKLIST_CHECK},
    "no list answered; `partial` has the rows",
)

REPUTATION_UNDETERMINED = record(
    {"error": text(), "partial": record(_REPUTATION_FIELDS)},
    "too much is unknown to give a grade; `partial` has what is known",
)
