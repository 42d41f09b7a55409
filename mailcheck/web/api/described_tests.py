"""The operations of deliverability tests (SPEC.md section 4, DECISIONS.md section 3)."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.described_answers import missing
from mailcheck.wire.deliverability.schemas import (
    DELIVERABILITY_TEST,
    NEW_ADDRESS,
    PREFLIGHT,
    PREFLIGHT_BODY,
    RAW_TEST_MAIL,
    RECHECK,
    TEST_SHARE,
    TEST_WAIT_OVER,
    TESTS,
)
from mailcheck.wire.openapi.operations import Answer, Body, Link, Operation

_TAG = "Deliverability tests"

_TEST_LINKS = {
    "test": Link("getTest", {"testId": "$response.body#/testId"}, "how it stands"),
    "wait": Link("waitForTest", {"testId": "$response.body#/testId"}, "wait for the report"),
    "recheck": Link("recheckTest", {"testId": "$response.body#/testId"}, "run all checks again"),
    "share": Link("renewTestShare", {"testId": "$response.body#/testId"}, "a new share link"),
}

GENERATE = Operation(
    "generateTest",
    _TAG,
    "Start a test",
    "Gives an address for one mail, good for one hour.",
    {200: Answer("The address.", [Body(NEW_ADDRESS, "new test")], links=_TEST_LINKS)},
)

TESTS_LIST = Operation(
    "listTests",
    _TAG,
    "List tests",
    "Newest first; results are kept for 7 days.",
    {
        200: Answer(
            "A page of tests.",
            [Body(TESTS, "tests")],
            links={
                "first": Link(
                    "getTest", {"testId": "$response.body#/tests/0/testId"}, "the newest test"
                ),
                "firstRaw": Link(
                    "getRawTestMail", {"testId": "$response.body#/tests/0/testId"}, "its mail"
                ),
                "preflight": Link(
                    "preflightTest",
                    {"testId": "$response.body#/tests/0/testId"},
                    "judge it against records that are not published yet",
                ),
            },
        )
    },
    (parameters.LIMIT, parameters.PAGE),
)

TEST = Operation(
    "getTest",
    _TAG,
    "Look at a test",
    "Its status, and the report when the status is `completed`. Poll it until the status is "
    "`completed`, `expired` or `error`, or wait for it.",
    {200: Answer("The test.", [Body(DELIVERABILITY_TEST, "test")]), 404: missing("test")},
    (parameters.TEST,),
)

TEST_WAIT = Operation(
    "waitForTest",
    _TAG,
    "Wait for a test",
    "Holds the request until the status is `completed`, `expired` or `error`.",
    {
        200: Answer("The test.", [Body(DELIVERABILITY_TEST, "test")]),
        404: missing("test"),
        408: Answer("It is not finished: wait again.", [Body(TEST_WAIT_OVER, "test wait over")]),
    },
    (parameters.TEST, parameters.TIMEOUT),
)

TEST_RAW = Operation(
    "getRawTestMail",
    _TAG,
    "Read the mail of a test",
    "JSON with the mail as text, in Base64 where it is not UTF-8. With `Accept: message/rfc822` "
    "the exact bytes as a download. 400 while no mail has come in.",
    {
        200: Answer(
            "The mail.", [Body(RAW_TEST_MAIL, "raw test mail"), Body(media_type="message/rfc822")]
        ),
        404: missing("test"),
    },
    (parameters.TEST,),
)

TEST_RECHECK = Operation(
    "recheckTest",
    _TAG,
    "Run all checks again",
    "On the mail that is there; 400 while no mail has come in. While checks run nothing is "
    "started twice.",
    {200: Answer("They run.", [Body(RECHECK, "recheck")]), 404: missing("test")},
    (parameters.TEST,),
)

TEST_PREFLIGHT = Operation(
    "preflightTest",
    _TAG,
    "Judge a mail with records that are not published yet",
    "What the mail of a test would get if these DNS records were there. Nothing is kept.",
    {
        200: Answer("The report that it would get.", [Body(PREFLIGHT, "preflight")]),
        404: missing("test"),
    },
    (parameters.TEST,),
    Body(PREFLIGHT_BODY, "preflight records"),
)

TEST_SHARE_RENEW = Operation(
    "renewTestShare",
    _TAG,
    "Give a report a new share link",
    "The old link is dead from now on.",
    {200: Answer("The new link.", [Body(TEST_SHARE, "test share")]), 404: missing("test")},
    (parameters.TEST,),
)

MESSAGE_SCORE = Operation(
    "scoreMessage",
    _TAG,
    "Test an inbox message",
    "Makes a deliverability test of a message that is there already.",
    {
        200: Answer(
            "The test, under way.", [Body(DELIVERABILITY_TEST, "scored message")], links=_TEST_LINKS
        ),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)
