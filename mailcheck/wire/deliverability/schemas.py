"""JSON Schemas of deliverability tests (SPEC.md 2.4 to 2.6, DECISIONS.md section 3)."""

from mailcheck.core.deliverability_tests import State
from mailcheck.core.domain_names import MAX_INPUT
from mailcheck.operations.deliverability.proposed_records import MAX_RECORDS, MAX_VALUE, TYPES
from mailcheck.wire.deliverability.check_schemas import CHECKS
from mailcheck.wire.deliverability.report_schemas import AREA, FINDINGS, REPORT
from mailcheck.wire.domains.schemas import DNS_RECORD
from mailcheck.wire.schemas import (
    Schema,
    always,
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

SCORE = number("0.0 to 10.0, one decimal", minimum=0, maximum=10)

TEST_ID: Schema = {"type": "string", "pattern": "^[a-z2-7]{13}$", "description": "names a test"}

DEDUCTION = record(
    {
        "check": AREA,
        "id": text("stable"),
        "points": number(minimum=0),
        "meaning": text("one sentence"),
        "fix": text("what to do"),
        "record": DNS_RECORD,
    },
    "what takes points off the score",
    optional=["record"],
)

EMAIL = record(
    {
        "from": text("the author's address"),
        "subject": text(),
        "bounceAddress": or_null(text("the envelope sender; null for none")),
    },
    "the mail that came in",
)

REPORT_FIELDS: dict[str, Schema] = {
    "score": SCORE,
    "email": EMAIL,
    "notes": array_of(text(), "what to know before reading on"),
    "checks": CHECKS,
    "deductions": array_of(DEDUCTION, "their sum is 10 - score, or more where the score is 0"),
    "scoringVersion": text("changes when points change"),
    "undetermined": array_of(text(), "checks that could not be determined"),
    "report": REPORT,
    "findings": FINDINGS,
}
"""What a completed test adds to a test."""

NEW_ADDRESS = record(
    {
        "testId": TEST_ID,
        "email": text("send one mail to it, from the server under test"),
        "expiresAt": timestamp("one hour after creation"),
        "checkUrl": text("path of the test, relative to the base of the API"),
    }
)

_STATE_FIELDS: dict[str, Schema] = {
    "testId": TEST_ID,
    "status": choice(State, "final: completed, expired, error"),
    "createdAt": timestamp(),
    "receivedAt": timestamp("when the mail arrived; absent before"),
    "expiresAt": timestamp("of the address"),
    "address": text("where the mail is to go; while pending"),
    "checkUrl": text("path of the test, relative to the base of the API"),
    "shareUrl": text("public page of the report"),
    "failure": text("why there is no result; with the status error"),
}

_OFTEN_ABSENT = ("receivedAt", "address", "failure")

DELIVERABILITY_TEST = record(
    {**_STATE_FIELDS, **REPORT_FIELDS},
    "what is not known yet is absent: score, checks and the rest come with the status completed",
    optional=[*_OFTEN_ABSENT, *REPORT_FIELDS],
)

LISTED_TEST = record(
    {**_STATE_FIELDS, "score": SCORE, "email": EMAIL},
    optional=[*_OFTEN_ABSENT, "score", "email"],
)

TESTS = record(
    {
        "tests": array_of(LISTED_TEST, "newest first"),
        "nextPage": or_null(whole_number("null on the last page", minimum=2)),
        "total": whole_number(minimum=0),
    }
)

TEST_WAIT_OVER = record(
    {"error": text("how the test stands"), **_STATE_FIELDS},
    "not finished in time: wait again",
    optional=_OFTEN_ABSENT,
)

RECHECK = record({"success": boolean(), "testId": TEST_ID, "message": text()})

TEST_SHARE = record({"testId": TEST_ID, "shareUrl": text("public, needs no key")})

RAW_TEST_MAIL = record(
    {"id": TEST_ID, "raw": text("the mail"), "encoding": choice(("utf-8", "base64"))}
)

PREFLIGHT_BODY = record(
    {
        "records": array_of(
            record(
                {
                    "name": {**text("domain name"), "minLength": 1, "maxLength": MAX_INPUT},
                    "type": choice(TYPES),
                    "value": {
                        **text("as in a zone file; the text of a TXT record without quotes"),
                        "minLength": 1,
                        "maxLength": MAX_VALUE,
                    },
                }
            ),
            minItems=1,
            maxItems=MAX_RECORDS,
        )
    },
    "DNS records that are not published yet",
)

PREFLIGHT = record(
    {
        "testId": TEST_ID,
        **REPORT_FIELDS,
        "preflight": always(True, "what would be, not what is"),
        "records": array_of(DNS_RECORD, "the records it was judged with"),
    },
    "the result that the same mail would get",
)
