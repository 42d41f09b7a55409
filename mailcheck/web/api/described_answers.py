"""What any request to the API may get instead of its answer, and the words that routes share."""

from collections.abc import Mapping

from mailcheck.api.errors import Crash, Error
from mailcheck.api.openapi.operations import Answer, json_body
from mailcheck.api.schemas import Schema, text, whole_number
from mailcheck.web.site.errors import TRY_AGAIN
from mailcheck.web.site.requests import MAX_BODY

TAGS: Mapping[str, str] = {
    "Inbox": "Mail that your software sent: take an address, wait for what comes, read it. "
    "Messages are kept for 24 hours unless the operator says otherwise.",
    "Webhooks": "Be told of mail at an address of yours, in order and signed.",
    "Domain tools": "Whether mail to and from a domain will arrive. What could not be found out "
    "is never shown as no.",
    "Watches": "Domains and addresses that are checked again and again: what changed, what is "
    "wrong since when, and what has ended.",
    "Reports of receivers": "Who sends as your domains, and whether mail comes in encrypted: what "
    "receivers have reported by mail to the addresses of the account.",
    "Deliverability tests": "Take an address, send one mail to it from the server under test, "
    "and wait for the report with a score from 0 to 10.",
    "Description": "This API, for programs.",
}

LIMIT_HEADERS: Mapping[str, Schema] = {
    "X-RateLimit-Remaining": whole_number(
        "requests left in this clock minute: of the key, or of the address without one", minimum=0
    ),
    "X-RateLimit-Daily-Remaining": whole_number(
        "requests left on this day (UTC): of the key, or of the address without one", minimum=0
    ),
}
"""On every answer."""

_RETRY_AFTER: Mapping[str, Schema] = {
    "Retry-After": whole_number("seconds after which it is worth asking again", minimum=1)
}

_BEARER: Mapping[str, Schema] = {
    "WWW-Authenticate": {**text("how to send a key"), "const": "Bearer"}
}

REFUSALS: Mapping[int, Answer] = {
    400: Answer(
        "A parameter is missing, not known here or can't be read; `error` says what to send.",
        [json_body("badParameter", Error)],
    ),
    401: Answer(
        "The API key is missing, invalid or revoked. It costs no key anything; the address has "
        "60 such answers a minute.",
        [json_body("unauthorized", Error)],
        _BEARER,
    ),
    413: Answer(
        f"The body of the request has more than {MAX_BODY:,} bytes.",
        [json_body("tooLarge", Error)],
    ),
    429: Answer(
        "The limit of the minute or the day is exhausted, or too many waits of this key are "
        "under way; `error` names the limit and when it ends.",
        [json_body("tooMany", Error)],
        _RETRY_AFTER,
    ),
    500: Answer(
        "The service failed. The cause stands in its log under `reference`.",
        [json_body("crash", Crash)],
    ),
    503: Answer(
        "The service is overloaded, shuts down, or its store does not answer: ask again after "
        f"Retry-After ({TRY_AGAIN} s).",
        [json_body("unavailable", Error)],
        _RETRY_AFTER,
    ),
}

ELSEWHERE: Mapping[int, Answer] = {
    404: Answer("There is nothing at the path.", [json_body("nowhere", Error)]),
    405: Answer(
        "The path does not take the method; `Allow` lists those it takes.",
        [json_body("wrongMethod", Error)],
        {"Allow": text("methods, separated by commas")},
    ),
}
"""What a request gets that is none of the operations."""

DOWNLOAD: Mapping[str, Schema] = {
    "Content-Disposition": text("attachment, with a file name: it is saved, never opened"),
    "Content-Security-Policy": text("a sandbox"),
}


def missing(what: str) -> Answer:
    """Give the 404 of a path that names something; what is another account's is missing too."""
    return Answer(
        f"There is no such {what}, or it is another account's.",
        [json_body(f"no {what}", Error)],
    )
