"""Check every response in the tests against docs/reference/contract.md."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NoReturn, Protocol
from urllib.parse import unquote

from tests.spec.description import described_path, description_problems
from tests.spec.inbox_shapes import ERROR
from tests.spec.oauth_shapes import OAUTH_PATHS
from tests.spec.provider_shapes import PROVIDER_ERRORS
from tests.spec.routes import API, REFUSALS, ROUTES, Bodies, Body, Route
from tests.spec.scim_shapes import SCIM_ERROR
from tests.spec.shapes import Bytes

PROVIDERS, SCIM = "/providers/", "/scim/"

_WHOLE_NUMBER = re.compile(r"0|[1-9]\d*")
_POSITIVE = re.compile(r"[1-9]\d*")
_JSON = re.compile(r"application/(json(; charset=utf-8)?|scim\+json)")


class Judged(Protocol):
    """The parts of a response that are checked. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class BrokenPromise(AssertionError):
    """A response that violates the contract."""


def judge_response(method: str, path: str, answer: Judged) -> None:
    """Raise an error if a response violates the contract.

    :param path: the requested path, with or without a query.
    :raises BrokenPromise: contains all problems.
    """
    decoded = _decode(path.partition("?")[0])
    is_metered = decoded == API or decoded.startswith(API + "/")
    problems = [
        *_header_problems(answer, is_metered, "Basic " if decoded in OAUTH_PATHS else "Bearer"),
        *_body_problems(method, answer, _bodies(method, decoded, is_metered, answer)),
    ]
    if is_metered and not problems:
        problems = list(_described_problems(method, decoded.removeprefix(API), answer))
    if problems:
        shown = answer.body[:400].decode("utf-8", "replace")
        lines = "\n  ".join(problems)
        raise BrokenPromise(f"{method} {path} -> {answer.status}\n  {lines}\n{shown}")


def _described_problems(method: str, path: str, answer: Judged) -> Iterator[str]:
    """Check a response that matches the tables against the OpenAPI document as well."""
    described = described_path(path)
    value = None
    if answer.body and _JSON.fullmatch(answer.headers.get("content-type", "")):
        value = _read_once(answer.body)
    yield from description_problems(method, described, answer, value)


def _decode(path: str) -> str:
    """Decode a path. An encoded slash does not separate segments of the API's path."""
    segments = [unquote(segment) for segment in path.split("/")]
    return "/".join([segment.replace("/", "%2F") for segment in segments[:3]] + segments[3:])


def find_route(method: str, path: str) -> Route | None:
    """Return the route of a method and a decoded path. HEAD uses the route of GET."""
    wanted = "GET" if method == "HEAD" else method
    return next((route for route in routes_at(path) if route.method == wanted), None)


@lru_cache(maxsize=4096)
def routes_at(path: str) -> Sequence[Route]:
    """Return the routes that match a decoded path. A path without variables hides the others."""
    found = [route for route in ROUTES if _pattern(route.path).fullmatch(path)]
    plain = [route for route in found if route.path == path]
    return plain or found


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def _bodies(method: str, path: str, is_metered: bool, answer: Judged) -> Bodies | None:
    """Return the allowed bodies for a status, or `None` if the status is not allowed."""
    route = find_route(method, path)
    provider = path.removeprefix(PROVIDERS).partition("/")[0]
    if path.startswith(PROVIDERS) and provider in PROVIDER_ERRORS and answer.status >= 400:
        return PROVIDER_ERRORS[provider]
    if path.startswith(SCIM) and answer.status >= 400:
        return SCIM_ERROR
    if route is not None:
        return route.bodies.get(answer.status)
    elsewhere: Mapping[int, Bodies] = REFUSALS if is_metered else {}
    return {**elsewhere, 405 if routes_at(path) else 404: ERROR}.get(answer.status)


def _header_problems(answer: Judged, is_metered: bool, scheme: str) -> Iterator[str]:
    headers = answer.headers
    if headers.get("x-content-type-options") != "nosniff":
        yield "X-Content-Type-Options is not nosniff"
    for name in headers:
        if name.startswith("access-control-"):
            yield f"{name} is sent: keys are not for browsers"
    if is_metered:
        for name in ("X-RateLimit-Remaining", "X-RateLimit-Daily-Remaining"):
            if _WHOLE_NUMBER.fullmatch(headers.get(name.lower(), "")) is None:
                yield f"{name} is {headers.get(name.lower())!r}, not a whole number"
    yield from _status_header_problems(answer.status, headers, scheme)


def _status_header_problems(status: int, headers: Mapping[str, str], scheme: str) -> Iterator[str]:
    if status in (429, 503) and _POSITIVE.fullmatch(headers.get("retry-after", "")) is None:
        yield f"Retry-After is {headers.get('retry-after')!r}, not whole seconds, at least 1"
    if status == 401 and not headers.get("www-authenticate", "").startswith(scheme):
        yield f"WWW-Authenticate is {headers.get('www-authenticate')!r}, not {scheme}"
    if status == 405 and not headers.get("allow"):
        yield "Allow is missing"


def _body_problems(method: str, answer: Judged, bodies: Bodies | None) -> Iterator[str]:
    if bodies is None:
        yield f"status {answer.status} is not promised here"
        return
    alternatives = bodies if isinstance(bodies, tuple) else (bodies,)
    found = [list(_problems_of(method, answer, body)) for body in alternatives]
    if all(found):
        yield from min(found, key=len)


def _problems_of(method: str, answer: Judged, body: Body) -> Iterator[str]:
    media_type = answer.headers.get("content-type", "")
    if isinstance(body, Bytes):
        yield from _bytes_problems(answer, body, media_type)
    elif _JSON.fullmatch(media_type) is None:
        yield f"Content-Type is {media_type!r}, not JSON"
    if method == "HEAD":
        if answer.body:
            yield "a HEAD has a body"
    elif not isinstance(body, Bytes):
        try:
            value = _read_once(answer.body)
        except ValueError as error:
            yield f"the body is not JSON: {error}"
        else:
            yield from body.problems(value)


def _bytes_problems(answer: Judged, body: Bytes, media_type: str) -> Iterator[str]:
    if re.fullmatch(body.media_type, media_type) is None:
        yield f"Content-Type is {media_type!r}, not {body.media_type}"
    if body.is_from_mail:
        if not answer.headers.get("content-disposition", "").startswith("attachment; filename="):
            yield "Content-Disposition does not make it a download"
        if not answer.headers.get("content-security-policy", "").startswith("sandbox;"):
            yield "Content-Security-Policy does not sandbox it"


def read_json(body: bytes) -> Any:
    """Parse JSON strictly (RFC 8259): UTF-8, no NaN, no duplicate names, no lone surrogates.

    :raises ValueError: it is invalid.
    """
    text = body.decode("utf-8")
    value = _STRICT.decode(text)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


_read_once = lru_cache(maxsize=1)(read_json)
"""The tables and the description judge the same body."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return value


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_distinct)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""The only way in which a surrogate, with or without the other half, is written in UTF-8."""
