"""JSON Schemas of what a deliverability report shows beside the five checks (DECISIONS.md 3)."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.report import Area
from mailcheck.checks.findings import Severity
from mailcheck.checks.mail_quality.receiver_rules import RuleResult
from mailcheck.wire.domains.schemas import DNS_RECORD
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

AREA = choice(Area)

FINDING = record(
    {
        "area": AREA,
        "id": text("stable"),
        "severity": choice(Severity),
        "meaning": text("one sentence"),
        "fix": text("what to do"),
        "points": number("what it takes off", minimum=0),
        "record": DNS_RECORD,
    },
    "something about a mail that is wrong, unknown or good to know",
    optional=["record"],
)

FINDINGS = array_of(FINDING, "what costs most first")

TLS = record({"version": text(), "cipher": text()}, "how the connection was encrypted")

_TEXTS = array_of(text())


def _count(description: str = "") -> Schema:
    return whole_number(description, minimum=0)


_PART = record(
    {
        "contentType": text(),
        "charset": text(),
        "encoding": text(),
        "disposition": text(),
        "filename": text(),
        "size": _count("octets as sent"),
        "depth": _count("0: the mail itself"),
    }
)

_HEADERS = record(
    {
        "size": _count("octets"),
        "fields": array_of(text(), "names of all fields, in order, lower case"),
        "repeated": array_of(text(), "fields that occur more than once though they may not"),
        "from": array_of(record({"address": text(), "name": text(), "domain": text()})),
        "sender": or_null(text()),
        "replyTo": or_null(text()),
        "date": or_null(text("as it was written")),
        "dateUtc": or_null(timestamp("null: it can't be read")),
        "messageId": or_null(text()),
        "received": _count("Received fields"),
        "listFields": _TEXTS,
        "precedence": or_null(text()),
        "autoSubmitted": or_null(text()),
        "findings": FINDINGS,
    }
)

_MIME = record(
    {
        "size": _count("octets"),
        "contentType": text(),
        "hasText": boolean(),
        "hasHtml": boolean(),
        "textSize": _count(),
        "overlap": or_null(_count("how much of the HTML's words the text has, in percent")),
        "longLines": _count("lines that are longer than allowed"),
        "longestLine": _count("octets"),
        "placeholders": array_of(text(), "template variables that were not filled in"),
        "riskyAttachments": _TEXTS,
        "problems": array_of(text(), "what could not be read"),
        "parts": array_of(_PART),
        "findings": FINDINGS,
    }
)

_HTML = record(
    {
        "size": _count("octets of UTF-8"),
        "isBase64": boolean(),
        "visibleLength": _count("characters"),
        "hiddenLength": _count("characters"),
        "hiddenSample": text(),
        "preheader": text("what lists of mails show behind the subject"),
        "hasHiddenPreheader": boolean(),
        "imageCount": _count(),
        "imagesWithoutAlt": _count(),
        "insecureImages": _count("over http"),
        "inlineDataImages": _count(),
        "trackingPixels": _count(),
        "formCount": _count(),
        "activeElements": array_of(text(), "scripts, frames and the like"),
        "eventHandlers": _count(),
        "externalStyles": _count(),
        "styleBlocks": _count(),
        "styledElements": _count(),
        "unclosed": array_of(text(), "elements left open"),
        "hasUnclosedComment": boolean(),
    }
)

_LINKS = record(
    {
        "urls": array_of(text(), "never looked up"),
        "hosts": _TEXTS,
        "count": _count(),
        "insecure": array_of(text(), "over http"),
        "shortened": _TEXTS,
        "addressHosts": array_of(text(), "with an IP address for a host"),
        "punycodeHosts": _TEXTS,
        "mixedScriptHosts": _TEXTS,
        "disguised": array_of(
            record({"shown": text(), "leadsTo": text()}), "words that show another host"
        ),
        "withUser": _TEXTS,
        "withPort": _TEXTS,
        "scriptLinks": _count(),
        "relative": _count("links that lead nowhere in a mail"),
        "findings": FINDINGS,
    }
)

_ARC = record(
    {
        "result": choice(AuthResult),
        "detail": or_null(text()),
        "count": _count("seals"),
        "seals": array_of(
            record(
                {
                    "instance": _count(),
                    "domain": text(),
                    "selector": text(),
                    "chain": text("what came of the seals before"),
                }
            )
        ),
        "findings": FINDINGS,
    }
)

CHECKLIST = record(
    {
        "receiver": text("google, yahoo, microsoft"),
        "name": text(),
        "source": text("where the rules are published"),
        "met": boolean(),
        "rules": array_of(
            record({"id": text("stable"), "text": text(), "result": choice(RuleResult)})
        ),
    },
    "the published rules of a receiver, one by one",
)

REPORT = record(
    {
        "reverseDns": record(
            {
                "ip": text(),
                "names": _TEXTS,
                "validatedNames": array_of(text(), "names that lead back to the address"),
                "confirmed": or_null(boolean("null: not known")),
                "generic": or_null(boolean("the name of a dial-up line or the like")),
            }
        ),
        "helo": record(
            {
                "name": or_null(text()),
                "resolves": or_null(boolean("null: not known")),
                "addresses": _TEXTS,
                "leadsToClient": or_null(boolean()),
            }
        ),
        "transport": record(
            {
                "tls": or_null(TLS),
                "extended": boolean("EHLO was said"),
                "transcript": array_of(text(), "what was said on the connection"),
                "findings": FINDINGS,
            }
        ),
        "headers": _HEADERS,
        "mime": _MIME,
        "html": or_null(_HTML),
        "links": _LINKS,
        "unsubscribe": record(
            {
                "listUnsubscribe": or_null(_TEXTS),
                "listUnsubscribePost": or_null(text()),
                "bodyLinks": _count("links whose words offer to unsubscribe"),
                "findings": FINDINGS,
            }
        ),
        "arc": _ARC,
        "checklists": array_of(CHECKLIST),
    },
    "how the mail came and how it is made",
)
