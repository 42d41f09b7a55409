"""The JSON Schemas of the statistics of traffic."""

from tests.spec.matching import Schema
from tests.spec.report_shapes import RESULT
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIMESTAMP,
    array,
    or_null,
    record,
    shape,
)

_COUNTS: dict[str, Schema] = {
    "mails": COUNT,
    "filtered": COUNT,
    "spam": COUNT,
    "meanPoints": or_null(NUMBER),
    "lastDay": TIMESTAMP,
}

_TRAFFIC = record(
    {
        "enabled": BOOLEAN,
        "mails": COUNT,
        "days": array(
            record(
                {
                    "day": TIMESTAMP,
                    "mails": COUNT,
                    "dmarcPass": COUNT,
                    "filtered": COUNT,
                    "spam": COUNT,
                }
            )
        ),
        "senders": array(
            record(
                {
                    "domain": STRING,
                    "spfPass": COUNT,
                    "dkimPass": COUNT,
                    "dmarcPass": COUNT,
                    "dmarcFail": COUNT,
                    "undetermined": COUNT,
                    "sources": COUNT,
                    **_COUNTS,
                }
            )
        ),
        "nextPage": or_null(COUNT),
    }
)

_SOURCES = record(
    {
        "domain": STRING,
        "sources": array(
            record(
                {
                    "source": STRING,
                    "envelopeDomain": STRING,
                    "dkimDomain": STRING,
                    "spf": RESULT,
                    "dkim": RESULT,
                    "dmarc": RESULT,
                    **_COUNTS,
                }
            )
        ),
        "nextPage": or_null(COUNT),
    }
)

TRAFFIC = shape(
    _TRAFFIC,
    the_days_add_up=lambda body: sum(day["mails"] for day in body["days"]) == body["mails"],
)

TRAFFIC_SOURCES = shape(_SOURCES)
