"""The operations of deliverability tests (SPEC.md section 4, DECISIONS.md section 3)."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.described_answers import missing
from mailcheck.wire.deliverability.tests import (
    WHOLE_TEST,
    DeletedTest,
    NewTest,
    PageOfTests,
    Preflight,
    PreflightRecords,
    RawTestMail,
    Recheck,
    ReportShare,
    WaitOver,
)
from mailcheck.wire.openapi.operations import Answer, Body, Link, Operation, json_body

_TAG = "Deliverability tests"

_THIS = {"testId": "$response.body#/testId"}
_FIRST = {"testId": "$response.body#/tests/0/testId"}

_TEST_LINKS = {
    "test": Link("getTest", _THIS, "how it stands"),
    "wait": Link("waitForTest", _THIS, "wait for the report"),
    "recheck": Link("recheckTest", _THIS, "run all checks again"),
    "share": Link("renewTestShare", _THIS, "a new share link"),
}

GENERATE = Operation(
    "generateTest",
    _TAG,
    "Start a test",
    "Gives an address for one mail, good for one hour.",
    {200: Answer("The address.", [json_body("new test", NewTest)], links=_TEST_LINKS)},
)

TESTS_LIST = Operation(
    "listTests",
    _TAG,
    "List tests",
    "Newest first; results are kept for 7 days.",
    {
        200: Answer(
            "A page of tests.",
            [json_body("tests", PageOfTests)],
            links={
                "first": Link("getTest", _FIRST, "the newest test"),
                "firstRaw": Link("getRawTestMail", _FIRST, "its mail"),
                "preflight": Link(
                    "preflightTest", _FIRST, "judge it against records that are not published yet"
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
    {200: Answer("The test.", [json_body("test", WHOLE_TEST)]), 404: missing("test")},
    (parameters.TEST,),
)

TEST_DELETE = Operation(
    "deleteTest",
    _TAG,
    "Delete a test",
    "Its address, report and share link are gone for good, and its mail unless that lies in an "
    "inbox too.",
    {200: Answer("It is gone.", [json_body("deleted test", DeletedTest)]), 404: missing("test")},
    (parameters.TEST,),
)

TEST_WAIT = Operation(
    "waitForTest",
    _TAG,
    "Wait for a test",
    "Holds the request until the status is `completed`, `expired` or `error`.",
    {
        200: Answer("The test.", [json_body("test", WHOLE_TEST)]),
        404: missing("test"),
        408: Answer("It is not finished: wait again.", [json_body("test wait over", WaitOver)]),
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
            "The mail.",
            [json_body("raw test mail", RawTestMail), Body(media_type="message/rfc822")],
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
    {200: Answer("They run.", [json_body("recheck", Recheck)]), 404: missing("test")},
    (parameters.TEST,),
)

TEST_PREFLIGHT = Operation(
    "preflightTest",
    _TAG,
    "Judge a mail with records that are not published yet",
    "What the mail of a test would get if these DNS records were there. Nothing is kept.",
    {
        200: Answer("The report that it would get.", [json_body("preflight", Preflight)]),
        404: missing("test"),
    },
    (parameters.TEST,),
    json_body("preflight records", PreflightRecords),
)

TEST_SHARE_RENEW = Operation(
    "renewTestShare",
    _TAG,
    "Give a report a new share link",
    "The old link is dead from now on.",
    {
        200: Answer("The new link.", [json_body("test share", ReportShare)]),
        404: missing("test"),
    },
    (parameters.TEST,),
)

MESSAGE_SCORE = Operation(
    "scoreMessage",
    _TAG,
    "Test an inbox message",
    "Makes a deliverability test of a message that is there already.",
    {
        200: Answer(
            "The test, under way.",
            [json_body("scored message", WHOLE_TEST)],
            links=_TEST_LINKS,
        ),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)
