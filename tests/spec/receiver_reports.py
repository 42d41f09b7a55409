"""The JSON Schemas of DMARC and TLS reports."""

from tests.spec.report_shapes import DNS_RECORD
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    STRING,
    TIMESTAMP,
    WORD,
    array,
    one_of,
    or_null,
    record,
    shape,
)

KIND = one_of("dmarc", "tls")

DECISION = or_null(one_of("mine", "not-mine"))

REPORTS = shape(
    record(
        {
            "addresses": record({"dmarc": WORD, "tls": WORD, "tlsUrl": WORD}),
            "domains": array(
                record(
                    {
                        "kind": KIND,
                        "domain": WORD,
                        "reports": COUNT,
                        "messages": COUNT,
                        "failing": COUNT,
                        "lastAt": TIMESTAMP,
                    }
                )
            ),
            "reports": array(
                record(
                    {
                        "id": WORD,
                        "kind": KIND,
                        "state": one_of("waiting", "counted", "repeated", "apart", "refused"),
                        "receivedAt": TIMESTAMP,
                        "reason": STRING,
                        "domain": STRING,
                        "reporter": STRING,
                        "organisation": STRING,
                        "reportId": STRING,
                        "beginsAt": or_null(TIMESTAMP),
                        "endsAt": or_null(TIMESTAMP),
                        "messages": COUNT,
                        "failing": COUNT,
                        "problems": array(WORD),
                    }
                )
            ),
            "nextPage": or_null(COUNT),
            "total": COUNT,
            "sources": array(
                record(
                    {
                        "kind": KIND,
                        "reporter": STRING,
                        "reports": COUNT,
                        "messages": COUNT,
                        "failing": COUNT,
                    }
                )
            ),
            "refused": array(
                record(
                    {
                        "day": WORD,
                        "outcome": one_of("over-quota", "foreign"),
                        "reporter": STRING,
                        "reports": COUNT,
                        "rows": COUNT,
                        "bytes": COUNT,
                        "domain": STRING,
                        "meaning": WORD,
                        "fix": WORD,
                    }
                )
            ),
        }
    )
)

REPORT_DELETED = shape(record({"success": {"const": True}, "id": WORD}))

REPORTS_DELETED = shape(record({"success": {"const": True}, "deleted": COUNT}))

REPORTS_DMARC = shape(
    record(
        {
            "domain": WORD,
            "beginsAt": TIMESTAMP,
            "endsAt": TIMESTAMP,
            "policy": STRING,
            "messages": COUNT,
            "passing": COUNT,
            "failing": COUNT,
            "stoppedByReject": COUNT,
            "forwarded": COUNT,
            "reporters": array(record({"name": WORD, "messages": COUNT})),
            "senders": array(
                record(
                    {
                        "key": WORD,
                        "name": WORD,
                        "service": BOOLEAN,
                        "decision": DECISION,
                        "fromDomain": STRING,
                        "known": BOOLEAN,
                        "forwarder": BOOLEAN,
                        "messages": COUNT,
                        "passing": COUNT,
                        "failing": COUNT,
                        "forwarded": COUNT,
                        "survived": COUNT,
                        "cause": one_of(
                            "passes",
                            "own-signature",
                            "own-key",
                            "own-spf",
                            "own-spf-broken",
                            "own-spf-absent",
                            "no-answer",
                            "unsigned",
                            "other-domain",
                            "forwarded",
                            "maybe-forwarded",
                            "nothing",
                        ),
                        "meaning": WORD,
                        "fix": WORD,
                        "sourceCount": COUNT,
                        "sources": array(
                            record(
                                {"address": WORD, "messages": COUNT, "failing": COUNT},
                                {"host": WORD},
                            )
                        ),
                        "vouchedFor": array(WORD),
                        "reporters": array(WORD),
                        "firstDay": WORD,
                        "lastDay": WORD,
                        "overrides": array(WORD),
                    },
                    {"listed": array(WORD), "record": DNS_RECORD, "guide": WORD},
                )
            ),
            "nextPage": or_null(COUNT),
            "total": COUNT,
        }
    )
)

SENDER_DECIDED = shape(
    record({"success": {"const": True}, "domain": WORD, "sender": WORD, "decision": DECISION})
)

REPORTS_TLS = shape(
    record(
        {
            "domain": WORD,
            "days": COUNT,
            "successful": COUNT,
            "failed": COUNT,
            "reporters": array(WORD),
            "results": array(
                record(
                    {
                        "policyType": WORD,
                        "result": STRING,
                        "host": STRING,
                        "reason": STRING,
                        "sessions": COUNT,
                        "reporters": array(WORD),
                        "lastDay": WORD,
                        "meaning": WORD,
                        "fix": WORD,
                    }
                )
            ),
            "nextPage": or_null(COUNT),
            "total": COUNT,
            "sources": array(record({"reporter": STRING, "successful": COUNT, "failed": COUNT})),
        }
    )
)
