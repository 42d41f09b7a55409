"""The objects of docs/reference/contract.md as hand-written JSON Schemas.

The second argument of `record` contains the additional fields.
"""

from typing import Any

from tests.spec.matching import Schema
from tests.spec.report_shapes import CHECKS, JUDGEMENT, REPORT_FIELDS
from tests.spec.shapes import (
    ADDRESS,
    BOOLEAN,
    CALENDAR_DATE,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIMESTAMP,
    UUID,
    WORD,
    also,
    array,
    has,
    lacks,
    one_of,
    or_null,
    record,
    shape,
    when,
)

BLOCKLISTS = 32  # of one check

GRADES = ((90, "A+"), (80, "A"), (70, "B"), (60, "C"), (50, "D"), (0, "F"))

FACTORS = (
    "SPF",
    "DKIM",
    "DMARC",
    "MX Records",
    "Blacklists",
    "STARTTLS",
    "Domain Age",
    "Reverse DNS",
)

# 2.1 MX check result
MX_CHECK = shape(
    also(
        record(
            {
                "domain": STRING,
                "hasMx": BOOLEAN,
                "records": array(
                    record(
                        {"exchange": STRING, "priority": INTEGER, "ip": array(STRING)},
                        {"problem": STRING},
                    )
                ),
                "hasSpf": BOOLEAN,
                "hasDmarc": BOOLEAN,
            },
            {
                "spfRecord": STRING,
                "dmarcRecord": STRING,
                "nullMx": BOOLEAN,
                "implicitMx": BOOLEAN,
                "exists": BOOLEAN,
                "note": STRING,
                "spfProblems": array(STRING),
                "spfIgnored": array(STRING),
                "dmarcDomain": STRING,
                "dmarcProblems": array(STRING),
                "dmarcIgnored": array(STRING),
            },
        ),
        when("hasSpf", True, has("spfRecord"), lacks("spfRecord")),
        when("hasDmarc", True, has("dmarcRecord"), lacks("dmarcRecord")),
    ),
    records_come_by_priority=lambda body: (
        [one["priority"] for one in body["records"]]
        == sorted(one["priority"] for one in body["records"])
    ),
)

# 2.2 Blocklist check result
BLACKLIST_CHECK = shape(
    record(
        {
            "query": STRING,
            "queryType": one_of("ip", "domain"),
            "totalChecked": COUNT,
            "totalListed": COUNT,
            "results": array(
                record(
                    {"name": STRING, "zone": STRING, "listed": BOOLEAN, "responseTime": NUMBER},
                    {
                        "status": one_of("listed", "clean", "unknown", "unsupported", "disabled"),
                        "codes": array(STRING),
                        "meaning": or_null(STRING),
                        "reason": or_null(STRING),
                        "weight": INTEGER,
                        "delistUrl": or_null(STRING),
                        "matched": array(STRING),
                    },
                ),
                minItems=BLOCKLISTS,
                maxItems=BLOCKLISTS,
            ),
        },
        {"totalUnknown": COUNT, "addresses": array(STRING), "hint": WORD},
    ),
    a_hint_comes_exactly_with_fewer_lists=lambda body: (
        ("hint" in body) == (body["totalChecked"] < len(body["results"]))
    ),
    totalListed_counts_the_listed=lambda body: (
        body["totalListed"] == sum(one["listed"] for one in body["results"])
    ),
)

_RECORD = record({"name": WORD, "type": WORD, "value": WORD})

# A finding, and the tested record that fixes it
_FINDING = record(
    {
        "id": WORD,
        "severity": one_of("error", "warning", "undetermined", "note"),
        "meaning": WORD,
        "fix": WORD,
    },
    {
        "aliases": array(WORD),
        "record": _RECORD,
        "replaces": array(WORD),
        "beside": array(_RECORD),
        "leavesOut": array(record({"term": WORD, "reason": WORD})),
        "gain": INTEGER,
    },
)

_PRESENCE = one_of("found", "absent", "undetermined")

_MECHANISMS: dict[str, dict[str, Schema]] = {
    "mx": {
        "presence": _PRESENCE,
        "records": array(OBJECT),
        "nullMx": BOOLEAN,
        "implicitMx": BOOLEAN,
    },
    "spf": {
        "presence": _PRESENCE,
        "records": array(STRING),
        "lookups": COUNT,
        "voidLookups": COUNT,
        "voidLookupsIpv4": COUNT,
        "voidLookupsIpv6": COUNT,
        "complete": BOOLEAN,
        "all": or_null(one_of("+", "-", "~", "?")),
        "tree": or_null(OBJECT),
    },
    "dkim": {
        "presence": _PRESENCE,
        "hidden": BOOLEAN,
        "keys": array(OBJECT),
        "tried": array(STRING),
    },
    "dmarc": {
        "presence": _PRESENCE,
        "foundAt": or_null(STRING),
        "record": or_null(STRING),
        "policy": or_null(one_of("none", "quarantine", "reject")),
        "policyTag": or_null(STRING),
        "testing": BOOLEAN,
        "organizationalDomain": or_null(STRING),
        "rua": array(STRING),
        "reportAuthorizations": array(OBJECT),
    },
    "mtaSts": {"presence": _PRESENCE, "record": or_null(STRING), "policy": or_null(OBJECT)},
    "tlsRpt": {"presence": _PRESENCE, "record": or_null(STRING), "rua": array(STRING)},
    "dane": {"presence": _PRESENCE, "protecting": BOOLEAN, "hosts": array(OBJECT)},
    "dnssec": {"status": one_of("signed", "unsigned", "undetermined")},
    "caa": {
        "presence": _PRESENCE,
        "foundAt": or_null(STRING),
        "records": array(STRING),
        "hostIssuers": or_null(array(STRING)),
        "mailIssuers": or_null(array(STRING)),
        "markIssuers": or_null(array(STRING)),
    },
    "bimi": {
        "presence": _PRESENCE,
        "name": STRING,
        "record": or_null(STRING),
        "declined": BOOLEAN,
        "location": or_null(STRING),
        "evidence": or_null(STRING),
        "preference": or_null(one_of("brand", "personal")),
        "ready": or_null(BOOLEAN),
        "logo": or_null(OBJECT),
        "certificate": or_null(OBJECT),
    },
}

DOMAIN_REPORT = shape(
    record(
        {
            "domain": STRING,
            "exists": BOOLEAN,
            "checkedAt": TIMESTAMP,
            **{
                name: record({**fields, "findings": array(_FINDING)})
                for name, fields in _MECHANISMS.items()
            },
        }
    )
)

# The catalogue of blocklists with the health of each zone
BLACKLISTS = shape(
    record(
        {
            "blocklists": array(
                record(
                    {
                        "name": STRING,
                        "zone": STRING,
                        "operator": or_null(STRING),
                        "kinds": array(one_of("ipv4", "ipv6", "domain")),
                        "weight": INTEGER,
                        "enabled": BOOLEAN,
                        "delistUrl": or_null(STRING),
                        "access": or_null(STRING),
                        "profiles": array(one_of("ip", "domain")),
                        "dailyBudget": or_null(COUNT),
                        "askedToday": COUNT,
                        "health": one_of("healthy", "sick", "unreachable", "untested", "disabled"),
                        "tests": array(
                            record({"kind": STRING, "status": STRING, "reason": or_null(STRING)})
                        ),
                    }
                )
            ),
            "testedAt": or_null(TIMESTAMP),
        }
    )
)

# An undetermined result is an error with the determined part in ``partial``
UNDETERMINED = shape(record({"error": WORD, "partial": OBJECT}))


def grade_of(score: int) -> str:
    """Read the grading scale."""
    return next(grade for lowest, grade in GRADES if score >= lowest)


# 2.3 Reputation result. What a check could not find has no value to show: the
# fields beside `valid` are due where it is true.
_DETAILS: dict[str, tuple[dict[str, Schema], dict[str, Schema]]] = {
    "mx": ({"count": COUNT, "primary": STRING}, {}),
    "spf": ({"record": STRING}, {}),
    "dkim": ({"selectors": array(STRING)}, {}),
    "dmarc": ({"policy": STRING, "rua": array(STRING)}, {}),
    "tls": ({"starttls": BOOLEAN}, {}),
    "domainAge": ({"years": NUMBER, "registrationDate": CALENDAR_DATE}, {}),
    "rdns": ({"hostname": STRING}, {"ip": STRING}),
}

REPUTATION = shape(
    record(
        {
            "domain": STRING,
            "ip": STRING,
            "score": {"type": "integer", "minimum": 0, "maximum": 100},
            "grade": one_of(*(grade for _, grade in GRADES)),
            "factors": array(
                record(
                    {
                        "name": one_of(*FACTORS),
                        "status": JUDGEMENT,
                        "detail": STRING,
                        "impact": INTEGER,
                    },
                    {
                        "determined": BOOLEAN,
                        "maximum": INTEGER,
                        "gain": INTEGER,
                        "fix": or_null(_FINDING),
                    },
                )
            ),
            "details": record(
                {
                    **{
                        name: also(
                            record({"valid": BOOLEAN}, {**fields, **more, "determined": BOOLEAN}),
                            when("valid", True, has(*fields)),
                        )
                        for name, (fields, more) in _DETAILS.items()
                    },
                    "blacklists": record({"checked": COUNT, "listed": COUNT, "clean": BOOLEAN}),
                }
            ),
            "checkedAt": TIMESTAMP,
            "cached": BOOLEAN,
        },
        {"scoringVersion": STRING, "undetermined": array(STRING), "exists": BOOLEAN},
    ),
    each_factor_stands_once=lambda body: (
        sorted(factor["name"] for factor in body["factors"]) == sorted(FACTORS)
    ),
    the_grade_is_that_of_the_score=lambda body: body["grade"] == grade_of(body["score"]),
    the_impacts_sum_to_the_score=lambda body: (
        sum(factor["impact"] for factor in body["factors"]) == body["score"]
    ),
)

TEST_ID: Schema = {"type": "string", "pattern": "^[a-z2-7]{13}$"}

# 2.4 Test address
TEST_ADDRESS = shape(
    record(
        {"testId": TEST_ID, "email": ADDRESS, "expiresAt": TIMESTAMP, "checkUrl": STRING},
        {"address": ADDRESS},
    ),
    email_and_address_are_the_same=lambda body: body.get("address", body["email"]) == body["email"],
    checkUrl_is_the_path_of_the_test=lambda body: body["checkUrl"] == f"/test/{body['testId']}",
)

TEST_STATUSES = ("pending", "processing", "completed", "expired", "error")

SCORE: Schema = {"type": "number", "minimum": 0, "maximum": 10}

TEST_EMAIL = record({"from": STRING, "subject": STRING, "bounceAddress": or_null(STRING)})

TEST_FIELDS: dict[str, Schema] = {
    "testId": TEST_ID,
    "status": one_of(*TEST_STATUSES),
    "createdAt": TIMESTAMP,
    "expiresAt": TIMESTAMP,
}

TEST_MORE: dict[str, Schema] = {
    "receivedAt": TIMESTAMP,
    "shareUrl": {"type": "string", "pattern": "^https?://[^/]+/(.+/)?share/[a-z2-7]{39}$"},
    "checkUrl": {"type": "string", "pattern": "^/test/[a-z2-7]{13}$"},
    "address": ADDRESS,
    "failure": WORD,
}


def is_in_tenths(body: Any) -> bool:
    """Return whether a score, if present, has at most one decimal."""
    return "score" not in body or round(body["score"], 1) == body["score"]


def is_sum_of(body: Any) -> bool:
    """Return whether the deductions add up to 10 minus the score, or to more if the score is 0."""
    if "deductions" not in body:
        return True
    taken = round(sum(one["points"] for one in body["deductions"]), 1)
    return bool(body["score"] == max(0.0, round(10 - taken, 1)))


OF = {"spf": ["spf", "rdns", "helo"]}
"""The findings about the sending host are deducted in the check `spf`, under their own names."""


def has_all_deductions(body: Any) -> bool:
    """Return whether the deductions of each check match the list of deductions."""
    if "checks" not in body:
        return True
    return all(
        check["deduction"]
        == round(
            sum(o["points"] for o in body["deductions"] if o["check"] in OF.get(name, [name])), 1
        )
        for name, check in body["checks"].items()
    )


# 2.5 Test
TEST = shape(
    also(
        record(
            TEST_FIELDS,
            {**TEST_MORE, "score": SCORE, "email": TEST_EMAIL, "checks": CHECKS, **REPORT_FIELDS},
        ),
        when("status", "completed", has("score", "receivedAt", "email", "checks", *REPORT_FIELDS)),
        *(when("status", status, lacks("score", "checks")) for status in TEST_STATUSES[:2]),
        *(when("status", status, lacks("receivedAt", "email")) for status in ("pending",)),
        when("status", "expired", lacks("score", "checks", "receivedAt", "email")),
        when("status", "error", also(has("failure"), lacks("score", "checks", "report"))),
    ),
    a_score_has_at_most_one_decimal=is_in_tenths,
    the_deductions_sum_to_what_the_score_lacks=is_sum_of,
    a_check_takes_off_what_the_deductions_say=has_all_deductions,
)

# 2.6 Recheck result
RECHECK = shape(record({"success": BOOLEAN, "testId": TEST_ID, "message": STRING}))

# 2.7 Inbox message: the fields in lists, and the fields that lists omit
MESSAGE_AUTHOR = record({"address": STRING, "name": STRING})

LISTED_FIELDS: dict[str, Schema] = {
    "id": UUID,
    "to": STRING,
    "tag": STRING,
    "from": MESSAGE_AUTHOR,
    "subject": STRING,
    "receivedAt": TIMESTAMP,
    "expiresAt": TIMESTAMP,
    "links": array(STRING),
    "codes": array(STRING),
    "shareUrl": {"type": "string", "pattern": "^https?://[^/]+/(.+/)?share/[a-z2-7]{40,}$"},
}

WHOLE_FIELDS: dict[str, Schema] = {
    **LISTED_FIELDS,
    "text": STRING,
    "html": STRING,
    "headers": {
        "type": "object",
        "additionalProperties": STRING,
        "propertyNames": {"pattern": "^[^A-Z]+$"},
    },
}

LISTED_MORE: dict[str, Schema] = {
    "cursor": WORD,
    "size": COUNT,
    "deliveryId": UUID,
    "bestLink": or_null(STRING),
    "via": WORD,
    "keywords": array(STRING),
}
