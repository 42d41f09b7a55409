"""The JSON Schemas of lists of tests, raw mails, share links and preflights."""

from tests.spec.report_shapes import CHECKS, DNS_RECORD, REPORT_FIELDS
from tests.spec.resources import SCORE, TEST_EMAIL, TEST_FIELDS, TEST_ID, TEST_MORE, is_sum_of
from tests.spec.shapes import COUNT, STRING, WORD, array, one_of, or_null, record, shape

TESTS = shape(
    record(
        {
            "tests": array(
                record(TEST_FIELDS, {**TEST_MORE, "score": SCORE, "email": TEST_EMAIL}),
                maxItems=100,
            ),
            "nextPage": or_null({"type": "integer", "minimum": 2}),
            "total": COUNT,
        }
    ),
    newest_come_first=lambda body: (
        [one["createdAt"] for one in body["tests"]]
        == sorted((one["createdAt"] for one in body["tests"]), reverse=True)
    ),
)

# "the same long poll as the inbox's": 408, with the test as it is
TEST_WAITED_FOR = shape(
    record({**TEST_FIELDS, "error": WORD, "status": one_of("pending", "processing")}, TEST_MORE)
)

TEST_RAW = shape(record({"id": TEST_ID, "raw": STRING, "encoding": one_of("utf-8", "base64")}))

TEST_DELETED = shape(record({"success": {"const": True}, "testId": TEST_ID}))

TEST_SHARE = shape(record({"testId": TEST_ID, "shareUrl": TEST_MORE["shareUrl"]}))

PREFLIGHT = shape(
    record(
        {
            "testId": TEST_ID,
            "preflight": {"const": True},
            "records": array(DNS_RECORD, minItems=1, maxItems=50),
            "score": SCORE,
            "email": TEST_EMAIL,
            "checks": CHECKS,
            **REPORT_FIELDS,
        }
    ),
    the_deductions_sum_to_what_the_score_lacks=is_sum_of,
)
