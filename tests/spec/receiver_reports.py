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

KIND = one_of("dmarc", "tls", "failure", "complaint")

TYPE = one_of("abuse", "fraud", "opt-out", "not-spam", "auth-failure", "virus", "other")

TYPES = array(record({"type": TYPE, "mails": COUNT}))

FEEDBACK = record(
    {
        "type": TYPE,
        "meaning": WORD,
        "fix": WORD,
        "source": STRING,
        "authorDomain": STRING,
        "envelopeDomain": STRING,
        "signingDomain": STRING,
        "selector": STRING,
        "campaign": STRING,
        "campaignField": STRING,
        "failure": STRING,
        "alignment": STRING,
        "delivery": STRING,
        "results": array(WORD),
        "incidents": COUNT,
        "arrivedAt": or_null(TIMESTAMP),
        "program": STRING,
    },
    {
        "mail": record(
            {
                "sender": STRING,
                "recipients": array(WORD),
                "author": STRING,
                "subject": STRING,
                "text": STRING,
            }
        )
    },
)

WAY = one_of("received", "fetched", "uploaded")

WAYS = record({"received": COUNT, "fetched": COUNT, "uploaded": COUNT})

SPLIT = record({"yours": COUNT, "unknown": COUNT, "forwarded": COUNT, "forged": COUNT})

REPORT = record(
    {
        "id": WORD,
        "kind": KIND,
        "state": one_of("waiting", "counted", "repeated", "apart", "refused"),
        "way": WAY,
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
    },
    {
        "feedback": FEEDBACK,
        "letter": record(
            {"author": STRING, "subject": STRING, "text": STRING, "links": array(STRING)}
        ),
    },
)

DECISION = or_null(one_of("mine", "not-mine"))

REPORTS = shape(
    record(
        {
            "addresses": record(
                {"dmarc": WORD, "tls": WORD, "tlsUrl": WORD, "failures": WORD, "complaints": WORD}
            ),
            "domains": array(
                record(
                    {
                        "kind": KIND,
                        "domain": WORD,
                        "reports": COUNT,
                        "messages": COUNT,
                        "failing": COUNT,
                        "lastAt": TIMESTAMP,
                        "proven": BOOLEAN,
                    }
                )
            ),
            "reports": array(REPORT),
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

REPORTS_IMPORTED = shape(
    record(
        {
            "new": COUNT,
            "known": COUNT,
            "rejected": COUNT,
            "files": array(
                record(
                    {
                        "file": WORD,
                        "outcome": one_of("new", "known", "rejected"),
                        "reason": STRING,
                    },
                    {
                        "kind": KIND,
                        "domain": WORD,
                        "reporter": STRING,
                        "organisation": STRING,
                        "reportId": STRING,
                        "beginsAt": TIMESTAMP,
                        "endsAt": TIMESTAMP,
                        "rows": COUNT,
                        "messages": COUNT,
                    },
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
            "mail": SPLIT,
            "stoppedByReject": COUNT,
            "days": array(record({"firstDay": WORD, "mail": SPLIT})),
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
                            "strict-alignment",
                            "no-result",
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
                        "failureReports": COUNT,
                        "complaints": COUNT,
                    },
                    {"listed": array(WORD), "record": DNS_RECORD, "guide": WORD},
                )
            ),
            "nextPage": or_null(COUNT),
            "total": COUNT,
        },
        {
            "ways": WAYS,
            "proven": BOOLEAN,
            "earlier": array(record({"month": WORD, "messages": COUNT, "failing": COUNT})),
        },
    )
)

SENDER_DECIDED = shape(
    record({"success": {"const": True}, "domain": WORD, "sender": WORD, "decision": DECISION})
)

REPORTS_FEEDBACK = shape(
    record(
        {
            "domain": WORD,
            "days": COUNT,
            "failures": COUNT,
            "complaints": COUNT,
            "types": TYPES,
            "unauthenticated": COUNT,
            "sources": array(
                record(
                    {
                        "address": WORD,
                        "failures": COUNT,
                        "complaints": COUNT,
                        "types": TYPES,
                        "reporters": array(WORD),
                        "lastDay": WORD,
                    }
                )
            ),
            "campaigns": array(
                record(
                    {
                        "field": one_of("Feedback-ID", "List-Id", "DKIM"),
                        "name": WORD,
                        "failures": COUNT,
                        "complaints": COUNT,
                        "types": TYPES,
                        "reporters": array(WORD),
                        "lastDay": WORD,
                    }
                )
            ),
            "reports": array(REPORT),
            "nextPage": or_null(COUNT),
            "total": COUNT,
        }
    )
)

_RECORD = record({"name": WORD, "type": WORD, "value": WORD})

_POLICY = one_of("none", "quarantine", "reject")

DMARC_PLAN = shape(
    record(
        {
            "domain": WORD,
            "state": one_of("safe", "steps", "undetermined", "enforced"),
            "days": COUNT,
            "daysWithReports": COUNT,
            "firstDay": or_null(WORD),
            "lastDay": or_null(WORD),
            "messages": COUNT,
            "failing": COUNT,
            "mail": SPLIT,
            "ways": WAYS,
            "proven": BOOLEAN,
            "policy": or_null(_POLICY),
            "nextPolicy": or_null(_POLICY),
            "record": or_null(_RECORD),
            "steps": array(
                record(
                    {
                        "kind": one_of("request-reports", "repair", "decide", "set-up", "sign"),
                        "sender": or_null(WORD),
                        "name": or_null(WORD),
                        "messages": COUNT,
                        "meaning": WORD,
                        "fix": WORD,
                        "records": array(_RECORD),
                        "patterns": array(_RECORD),
                    },
                    {"lastDay": WORD, "guide": WORD},
                )
            ),
            "doubts": array(WORD),
            "simulations": array(
                record(
                    {
                        "policy": _POLICY,
                        "record": _RECORD,
                        "stopped": SPLIT,
                        "senders": array(
                            record(
                                {
                                    "sender": WORD,
                                    "name": WORD,
                                    "decision": DECISION,
                                    "messages": COUNT,
                                }
                            )
                        ),
                    }
                )
            ),
        }
    )
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
