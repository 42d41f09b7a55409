"""The JSON Schema of everything about a domain (`GET /tools/domain`, DECISIONS.md section 2)."""

from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.lookups import Presence
from mailcheck.checks.spf.terms import Qualifier
from mailcheck.checks.spf.verdicts import NodeProblem
from mailcheck.checks.transport_policy.dnssec import DnssecStatus
from mailcheck.checks.transport_policy.mta_sts_policy import PolicyMode
from mailcheck.wire.domains.schemas import DOMAIN_FINDING, MAIL_HOST
from mailcheck.wire.schemas import (
    Schema,
    array_of,
    boolean,
    choice,
    or_null,
    record,
    text,
    timestamp,
    whole_number,
)

_PRESENCE = choice(Presence, "undetermined: could not be found out, which is not absent")

SPF_NODE_NAME = "SpfNode"

SPF_NODE = record(
    {
        "domain": text("where the record stands"),
        "term": or_null(text("the term that leads here; null at the top")),
        "record": or_null(text()),
        "problem": or_null(choice(NodeProblem)),
        "lookups": whole_number("here and below", minimum=0),
        "voidTerms": array_of(text(), "terms that lead to nothing"),
        "children": array_of({"$ref": f"#/components/schemas/{SPF_NODE_NAME}"}),
    },
    "an SPF record, with those that it includes",
)

DKIM_KEY = record(
    {
        "selector": text(),
        "name": text("where the record stands"),
        "type": text("rsa, ed25519"),
        "bits": or_null(whole_number(minimum=0)),
        "usable": boolean(),
        "testing": boolean("t=y"),
        "revoked": boolean("an empty p="),
        "record": text(),
        "aliasOf": or_null(text("what a CNAME leads to")),
    },
    "a DKIM key that was found",
)


def _mechanism(fields: dict[str, Schema], description: str = "") -> Schema:
    findings = array_of(DOMAIN_FINDING, "the worst first")
    return record({**fields, "findings": findings}, description)


DOMAIN_REPORT = record(
    {
        "domain": text(),
        "checkedAt": timestamp(),
        "mx": _mechanism(
            {
                "presence": _PRESENCE,
                "records": array_of(MAIL_HOST),
                "nullMx": boolean(),
                "implicitMx": boolean(),
            }
        ),
        "spf": _mechanism(
            {
                "presence": _PRESENCE,
                "records": array_of(text()),
                "lookups": whole_number("10 are allowed (RFC 7208 4.6.4)", minimum=0),
                "voidLookups": whole_number("2 are allowed", minimum=0),
                "complete": boolean("false: not all of the tree could be looked up"),
                "all": or_null(choice(Qualifier, "what is said of all other hosts")),
                "tree": or_null(SPF_NODE),
            }
        ),
        "dkim": _mechanism(
            {
                "presence": _PRESENCE,
                "hidden": boolean("there are keys, under names that nobody can guess"),
                "keys": array_of(DKIM_KEY),
                "tried": array_of(text(), "selectors that were tried"),
            }
        ),
        "dmarc": _mechanism(
            {
                "presence": _PRESENCE,
                "foundAt": or_null(text("where the tree walk found it")),
                "record": or_null(text()),
                "policy": or_null(choice(Policy, "what holds for this domain")),
                "policyTag": or_null(text("p, sp or np")),
                "testing": boolean("t=y"),
                "organizationalDomain": or_null(text()),
                "rua": array_of(text(), "where reports go"),
                "reportAuthorizations": array_of(
                    record({"uri": text(), "name": text(), "presence": _PRESENCE}),
                    "whether other domains take the reports (RFC 9990)",
                ),
            }
        ),
        "mtaSts": _mechanism(
            {
                "presence": _PRESENCE,
                "record": or_null(text()),
                "policy": or_null(
                    record(
                        {
                            "mode": or_null(choice(PolicyMode)),
                            "maxAge": or_null(whole_number("seconds")),
                            "mx": array_of(text()),
                            "valid": boolean(),
                        }
                    )
                ),
            }
        ),
        "tlsRpt": _mechanism(
            {"presence": _PRESENCE, "record": or_null(text()), "rua": array_of(text())}
        ),
        "dane": _mechanism(
            {
                "presence": _PRESENCE,
                "protecting": boolean("every mail host has usable, signed TLSA records"),
                "hosts": array_of(
                    record(
                        {
                            "exchange": text(),
                            "name": text("where the records stand"),
                            "presence": _PRESENCE,
                            "records": array_of(text()),
                            "secure": or_null(boolean("signed; null: no validating resolver")),
                        }
                    )
                ),
            }
        ),
        "dnssec": _mechanism(
            {"status": choice(DnssecStatus, "undetermined without a validating resolver")}
        ),
    }
)
