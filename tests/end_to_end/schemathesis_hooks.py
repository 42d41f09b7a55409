"""Facts about the service that Schemathesis needs; its command line loads this module.

Valid requests get real values where the description allows more than the service can know: existing
domains, cursors that were returned, tags within their octets. Requests that are meant to be invalid
are not changed.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

import schemathesis

KNOWN = json.loads(os.environ["MAILCHECK_KNOWN"])
"""``query``, ``path`` and ``body``: real values of each parameter."""

ANSWERS = Path(os.environ["MAILCHECK_ANSWERS"])
"""File with a line for each response: method, path, status."""

RANDOM = random.Random(7)

RECORD = {"name": "_dmarc.good.test", "type": "TXT", "value": "v=DMARC1; p=reject"}

ROOM_FOR_ENDING = 30
"""Maximum number of octets of a tag to which ``unique=true`` can still add its suffix."""


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Replace the values of a valid request by real ones, and shorten waits.

    Every request comes from a separate address, because requests without a key have a budget of
    60 a minute.
    """
    address = ".".join(str(RANDOM.randint(1, 250)) for _ in range(4))
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}
    if case.meta is not None and case.meta.generation.mode.is_positive:
        _make_known(case)
    if case.path.endswith(("/wait", "/wait/many")) and _is_time(case.query.get("timeout", 30)):
        case.query["timeout"] = 1
    if case.path == "/inbox/events":
        case.headers.pop("Last-Event-ID", None)  # mostly that of another inbox
        if _is_time(case.query.get("seconds", 5)):
            case.query["seconds"] = 1
    if case.path.endswith("/wait/none") and _is_time(case.query.get("seconds", 5)):
        case.query["seconds"] = 1


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Record the response."""
    with ANSWERS.open("a") as file:
        file.write(f"{case.method} {case.path} {response.status_code}\n")


def _make_known(case: Any) -> None:
    query = case.query
    for name, values in KNOWN["query"].items():
        if name in query:
            value = RANDOM.choice(values)
            query[name] = [value] if isinstance(query[name], list) else value
    if case.path in ("/inbox/wait", "/inbox/wait/many") and not query.keys() & {"since", "after"}:
        query["after"] = "c0"  # matches stored messages at once
    if isinstance(query.get("tag"), str):
        tag = query["tag"].encode()[:ROOM_FOR_ENDING].decode("utf-8", "ignore")
        query["tag"] = tag.strip(".")
    for name, values in KNOWN["path"].items():
        if name in case.path_parameters:
            case.path_parameters[name] = RANDOM.choice(values)
    if isinstance(case.body, dict):
        case.body = _known_fields(case.body)


def _known_fields(body: dict[str, Any]) -> dict[str, Any]:
    known = {name: _known(name, value) for name, value in body.items()}
    if known.get("target") in KNOWN["query"]["ip"]:  # an address takes no such fields
        known |= {name: [] for name in ("selectors", "addresses") if name in known}
    return known


def _known(name: str, value: Any) -> Any:
    """Return a real value for a field of a body whose text has a special form."""
    if name == "records":
        return [RECORD for _ in value]
    if name == "watches":
        return [_known_fields(item) for item in value]
    if name in KNOWN["body"]:
        return RANDOM.choice(KNOWN["body"][name])
    return value


def _is_time(value: object) -> bool:
    try:
        return 1 <= float(str(value)) <= 60
    except ValueError:
        return False
