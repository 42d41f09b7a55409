"""Extreme numbers, depths, lengths and bytes for each parameter and each body of every door.

The requests are drawn from the lists of routes. Each parameter of a route, and each value in an
example of its body, is replaced by each extreme value.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, urlencode

from msgspec import Struct, structs
from msgspec.structs import replace

from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.pages import build_pages
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.rights import Rights, Scope
from mailcheck.web.api.description import ApiDescription
from tests.attacks.strangers import DOMAIN, Target
from tests.house import run
from tests.web.compatible import mailosaur, mailslurp
from tests.web.provider_requests import headers_for, is_form, sample
from tests.web.raw_http import RawHttp, request

NUMBERS = (
    *("99999999999999999999", "-99999999999999999999", "-1", "0", "1.5", "1e400", "-1e400", "NaN"),
    *("Infinity", "0x10", "1_0", "9" * 4_400, "\u0663", "\u00b2", "9223372036854775808"),
)
"""Numbers beyond 64 bits, of more digits than Python reads, and digits that are no number."""

TEXTS = (
    *("", " ", "\x00", "a\x00b", "\u202e", "\U0010ffff", "%", "%zz", "'", '"', "\\", "{}", "{0}"),
    *("a@" + "[" * 3_000, "[" * 3_000, "(" * 3_000, "<" * 3_000, '"' * 3_000, "," * 3_000),
    *("a@b," * 800, "." * 300, "a." * 130, "xn--" + "a" * 60, "xn--\u00fc.example", "\u00df" * 63),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-13-45T99:99:99+99:99"),
    *("c99999999999999999999", "https://[", "https://a:99999/", "//", "../" * 100, "data:,", "::1"),
    *("1" + "0" * 30 + "-" + "9" * 30, "bytes=99999999999999999999-", "1,2,3", "*", "before:x"),
)
"""Texts that parsers of addresses, names, dates, cursors, URLs and searches may stumble over."""

LONG = (*("[" * 200_000, "(" * 200_000, "a@" + "[" * 200_000, "<" * 200_000, "x" * 200_000),)
"""Texts for bodies, which may be longer than URLs."""

BYTES = (
    *(b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80", b"\x80" * 100, b"\r\n", b"%"),
)
"""Bytes that are not UTF-8: alone, surrogates, overlong forms."""

VALUES = ("9" * 20, "(" * 3_000, "a@" + "[" * 3_000, b"\xff", *TEXTS, *NUMBERS, *BYTES)
"""Values of parameters. The first values have done harm."""

PATH_VALUES = [value for value in VALUES if value not in ("", ".", "..")]

BODIES = (
    *(b'{"a":"caf\xe9"}', b"[" * 100_000, b"9" * 5_000, b"null", b"", b"\xff", b'{"\xe9":1}'),
    *(b'{"a":"\xed\xa0\x80"}', b"\xff\xfe{\x00}\x00", b"[]", b"{}", b"0", b'""', b"true"),
    *(
        b"[null]",
        b"[[]]",
        b"[{}]",
        b"nan",
        b"1e999",
        b'{"a":' * 50_000,
        b"[" * 30_000 + b"]" * 30_000,
    ),
    *(b"{" * 9, b'"\\ud800"', b'{"a":' + b"9" * 5_000 + b"}", b"\x00" * 100, b"a=%ff&b=%00"),
    *(b"&" * 3_000, b"=" * 3_000, b"--b\r\n" * 500, b"%" * 3_000, b"\xef\xbb\xbf{}"),
    b'{"a":1}{"a":1}',
)
"""Whole bodies: not UTF-8, deep, huge numbers, and JSON of another kind than expected."""

MARK = "the place of a value"

JSON_VALUES = (
    *(json.dumps("(" * 200_000), "[" * 900 + "]" * 900, json.dumps("a@" + "[" * 200_000)),
    *('"\\ud800"', json.dumps("x" * 200_000)),
    *(str(10**30), str(-(10**30)), "9" * 5_000, "1e308", "1e999", "-1e999", "-1", "0", "1.5"),
    *("null", "true", "[]", "{}", '"\\ud800"', '"\\u0000"', "[" * 50_000, "[" * 900 + "]" * 900),
    *("[" + "null," * 2_000 + "null]", '{"a":' * 900 + "1" + "}" * 900, '"\\udc00\\ud800"', '""'),
    *(json.dumps(one) for one in (*TEXTS, *NUMBERS, *LONG)),
)
"""The text of JSON values."""

_VARIABLE = re.compile(r"<(?:\w+:)?(\w+)>")
_FIELD = r"%s\.\w+\(\s*\"([\w-]+)\""

IN_PROJECT = "/p/{project}"
"""The beginning of the addresses of a project's pages."""

OAUTH_FIELDS = (
    *("grant_type", "code", "code_verifier", "redirect_uri", "client_id", "client_secret", "token"),
    *("refresh_token", "scope", "resource", "response_type", "code_challenge", "state", "query"),
    *("code_challenge_method", "account", "decision", "replace", "iss", "error", "iss"),
)


class Extreme(NamedTuple):
    """A request with an extreme value."""

    head: bytes
    body: bytes
    is_open: bool = False


class Marked(NamedTuple):
    """JSON in which a value replaces `MARK`."""

    text: str
    value: str

    @property
    def body(self) -> bytes:
        """The JSON."""
        return self.text.replace(json.dumps(MARK), self.value).encode()


class Sampled(Struct, frozen=True):
    """A usual request: the path has ``{name}`` for variables, and ``needed`` is its query."""

    method: str
    path: str
    query: Mapping[str, str]
    needed: Mapping[str, Any] = {}
    body: Any = None
    is_form: bool = False
    headers: Mapping[str, str] = {}
    is_open: bool = False


class Place(NamedTuple):
    """Where a value can stand in a request."""

    name: str
    values: Sequence[Any]
    put: Callable[[Any], Sampled]


class ExtremeTarget(Target):
    """The application to attack, with a usual request for each route."""

    def places(self, entry: str) -> Iterator[Place]:
        """Yield each place for a value in the usual requests to an entry point of HTTP."""
        if entry.startswith("tool "):
            yield from self._arguments_of(entry.removeprefix("tool "))
            return
        usual = self._sampled(entry)
        if usual is None:
            return
        for name in re.findall(r"{(\w+)}", usual.path):
            yield Place(f"path {name}", PATH_VALUES, partial(_put_in_path, usual, name))
        for name in usual.query:
            yield Place(f"query {name}", VALUES, partial(_put_in_query, usual, name))
        if usual.method in ("POST", "PUT", "PATCH", "DELETE"):
            yield from _places_in_body(usual)

    def write(self, usual: Sampled) -> Extreme:
        """Write a request."""
        body = usual.body
        if body is None:
            data = b""
        elif isinstance(body, bytes):
            data = body
        elif isinstance(body, Marked):
            data = body.body
        elif usual.is_form:
            data = _encode(body).encode()
        else:
            data = json.dumps(body).encode()
        path, asked = self._filled(usual.path), _encode(usual.needed)
        headers = dict(usual.headers)
        if path.startswith("/providers/"):
            # The signature of SES covers the body.
            headers = headers_for(usual.path, self.house.key, data, usual.method)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        if usual.method != "GET":
            lines.append(f"Content-Length: {len(data)}")
        head = request(f"{path}?{asked}" if asked else path, *lines, method=usual.method)
        return Extreme(head, data, usual.is_open)

    def _sampled(self, entry: str) -> Sampled | None:
        kind, _, name = entry.partition(" ")
        if kind == "open":
            method, path = name.split(" ")
            query = dict.fromkeys(("query", "kind", "limit", "start", "tz", "id", "remote"), "1")
            sent = self._read_by(name, self._open_body())
            query, needed = (self._read_by(name, one) for one in (query, {"query": "x"}))
            headers = {"Content-Type": "application/json"}
            return Sampled(method, path, query, needed, sent, False, headers, is_open=True)
        if kind not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            return None
        if name.startswith("/api/v1"):
            return self._rest(kind, name)
        if name.startswith("/providers/"):
            body = sample(name, self.house.address("x")) if kind == "POST" else None
            return Sampled(kind, name, {"limit": "1", "after": "x"}, {}, body, is_form(name))
        if name.startswith(("/mailosaur/", "/mailslurp/")):
            return self._facade(kind, name)
        if name.startswith("/scim/"):
            return self._scim(kind, name)
        if name in ("/mcp", "/mcp/"):
            return self._tool_call({"name": "x"}, kind, name)
        if name == "/register":
            body = {"client_name": "x", "redirect_uris": ["https://a.example/cb"]}
            headers = {"Content-Type": "application/json"}
            return Sampled(kind, name, {}, {}, body, headers=headers)
        return self._page(kind, name)

    def _rest(self, method: str, name: str) -> Sampled:
        path = name.removeprefix("/api/v1")
        shown = re.sub(r"{(\w+?)(?:_(\w))?(\w*)}", _camel, path).replace("{messageId}", "{id}")
        described = self.description["paths"].get(shown, {}).get(method.lower(), {})
        listed = [one for one in described.get("parameters", ()) if one["in"] == "query"]
        query = {
            one["name"]: str(self._value(one["name"], one.get("schema", {}), one.get("example")))
            for one in listed
        }
        needed = {one["name"]: query[one["name"]] for one in listed if one.get("required")}
        content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
        headers = {"X-API-Key": self.house.key, "Content-Type": "application/json"}
        return Sampled(method, name, query, needed, content.get("example"), headers=headers)

    @cached_property
    def _directory_key(self) -> str:
        """A key of the operator, which a directory has."""
        rights = Rights(frozenset({Scope.OPERATOR}))
        accounts = run(self.house.assembly.accounts.keep.accounts())
        operator = next(account for account in accounts if account.is_operator)
        return self.house.issue_key(operator, rights=rights)

    def _scim(self, method: str, name: str) -> Sampled:
        query = {"filter": 'userName eq "x"', "startIndex": "1", "count": "2"}
        query |= {"attributes": "userName", "excludedAttributes": "emails.value"}
        body: Any = None
        if method == "PATCH":
            path = 'emails[type eq "work"].value'
            body = {"Operations": [{"op": "replace", "path": path, "value": "a@b.example"}]}
        elif name.endswith(".search"):
            body = {**query, "startIndex": 1, "count": 2}
        elif method in ("POST", "PUT"):
            body = {"userName": "x", "displayName": "x", "externalId": "x", "active": True}
            body |= {"name": {"givenName": "x"}, "emails": [{"value": "a@b.example"}]}
            body |= {"members": [{"value": "x"}]}
        headers = {"X-API-Key": self._directory_key, "Content-Type": "application/scim+json"}
        return Sampled(method, name, query, {}, body, headers=headers)

    def _facade(self, method: str, name: str) -> Sampled:
        given: dict[str, Any] = {"server": "abcd1234", "inboxId": "abcd1234", "name": "x"}
        given |= {"subject": "x", "body": "x", "match": "ANY", "url": f"https://{DOMAIN}/x"}
        given |= {"sentTo": "a@b.example", "sentFrom": "a", "timeout": 0, "to": ["a@b.example"]}
        given |= {"pattern": "x", "customPatterns": ["x"], "count": 1, "emailIds": ["x"]}
        given |= {"matches": [{"field": "SUBJECT", "should": "MATCH", "value": "x"}]}
        query = {"server": "abcd1234", "inboxId": "abcd1234", "itemsPerPage": "5", "page": "0"}
        query |= {"timeout": "0", "receivedAfter": "2026-01-01T00:00:00Z", "dir": "x", "size": "1"}
        query |= {"index": "0", "count": "1", "since": "x", "before": "x"}
        query |= {"sort": "ASC", "delay": "0"}
        client = mailslurp.Client if name.startswith("/mailslurp") else mailosaur.Client
        headers = {**client(self.house).headers, "Content-Type": "application/json"}
        query, given = (self._read_by(f"{method} {name}", one) for one in (query, given))
        needed = {name: one for name, one in query.items() if name in ("server", "inboxId")}
        return Sampled(method, name, query, needed, given, headers=headers)

    def _page(self, method: str, name: str) -> Sampled:
        cookies = "; ".join("=".join(one) for one in self.browser.cookies.items())
        headers = {"Cookie": cookies, "Accept": "text/html"}
        shown = name.removeprefix(IN_PROJECT) or "/"
        names = self._fields.get(f"{method} {shown}", OAUTH_FIELDS)
        if method == "GET":
            return Sampled(method, name, dict.fromkeys(names, "x"), headers=headers)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        form = {**dict.fromkeys(names, "x"), "form-token": self.form_token}
        return Sampled(method, name, {}, {}, form, True, headers)

    def _read_by(self, entry: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that the route of a compatible API reads."""
        names = self._facade_fields[entry]
        return {name: value for name, value in given.items() if name.lower() in names}

    @cached_property
    def _facade_fields(self) -> dict[str, set[str]]:
        """Return the names of the fields of each route of a compatible API, in lower case."""
        return {
            _VARIABLE.sub("{\\1}", f"{route.method} {facade.base}{route.path}"): {
                one.encode_name.lower() for one in structs.fields(route.request)
            }
            for facade in FACADES
            for route in facade.routes
        }

    @cached_property
    def _fields(self) -> dict[str, list[str]]:
        """Return the names of the fields of each page, which its module reads."""
        routes = build_routes(self.house.assembly)
        pages = build_pages(self.house.assembly, routes, ApiDescription(routes))[2]
        return {
            _VARIABLE.sub("{\\1}", f"{page.method} {page.path}"): _fields_in(page) for page in pages
        }

    def _open_body(self) -> dict[str, Any]:
        person = {"Email": "a@b.example", "Name": "x"}
        given: dict[str, Any] = {"IDs": [self._names["delivery_id"]], "Tags": ["x"], "Name": "x"}
        given |= {"From": person, "To": [person], "Subject": "x", "Text": "x", "HTML": "<p>x</p>"}
        given |= {"Headers": {"X-A": "x"}, "ReplyTo": [person], "Cc": [person]}
        given |= {"Bcc": ["a@b.example"]}
        given |= {"Attachments": [{"Filename": "x", "Content": "eA==", "ContentID": "x"}]}
        given |= {"Read": True, "Search": "x", "Sender": {"ErrorCode": 451, "Probability": 0}}
        return given

    def send(self, one: Extreme) -> int:
        """Send a request and return the status; 0 without an answer."""
        visit = RawHttp(self._open if one.is_open else self.house, "127.0.0.1")
        visit.send(one.head + one.body)
        received = visit.received()
        if not received.startswith(b"HTTP/1.1 "):
            self.house.pass_time(0.1)
            received = visit.received()
        visit.hang_up()
        found = re.match(rb"HTTP/1\.1 (?:100 [^\n]*\n\r\nHTTP/1\.1 )?([0-9]{3})", received)
        return int(found[1]) if found else 0

    def _arguments_of(self, tool: str) -> Iterator[Place]:
        """Yield each argument of a tool."""
        schema = self.tools[tool]["inputSchema"]
        for argument in schema.get("properties", {}):
            given = {**self._arguments(schema), argument: MARK}
            usual = self._tool_call({"name": tool, "arguments": given})
            put = partial(_put_in_json, usual, json.dumps(usual.body))
            yield Place(f"argument {argument}", JSON_VALUES, put)

    def _tool_call(self, parameters: Any, method: str = "POST", path: str = "/mcp") -> Sampled:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.house.key}",
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
        return Sampled(method, path, {}, {}, call, headers=headers)


_quote = cache(quote_plus)
"""Long values take most of the time, and stand in many places."""


def _encode(fields: Mapping[str, Any]) -> str:
    return urlencode(fields, doseq=True, errors="surrogatepass", quote_via=_quote)


def _put_in_path(usual: Sampled, name: str, value: str | bytes) -> Sampled:
    return replace(usual, path=usual.path.replace(f"{{{name}}}", quote(value, safe="")))


def _put_in_query(usual: Sampled, name: str, value: str | bytes) -> Sampled:
    return replace(usual, needed={**usual.needed, name: value})


def _put_in_form(usual: Sampled, name: str, value: str | bytes) -> Sampled:
    return replace(usual, body={**usual.body, name: value})


def _put_in_json(usual: Sampled, text: str, value: str) -> Sampled:
    return replace(usual, body=Marked(text, value))


def _places_in_body(usual: Sampled) -> Iterator[Place]:
    """Yield the body, and each place in it."""
    yield Place("body", BODIES, lambda value: replace(usual, body=value))
    if usual.is_form:
        for name in usual.body or ():
            yield Place(f"form {name}", (*VALUES, *LONG), partial(_put_in_form, usual, name))
    elif usual.body is not None:
        for place, marked in _marked(usual.body):
            put = partial(_put_in_json, usual, json.dumps(marked))
            yield Place(f"json {place}", JSON_VALUES, put)


def _fields_in(page: Any) -> list[str]:
    kind = type(page.handle.__self__)
    source = Path(inspect.getsourcefile(kind) or "").read_text("utf-8")
    declared = getattr(sys.modules[kind.__module__], "FIELDS", ()) if page.form else ()
    read = re.findall(_FIELD % ("query" if page.method == "GET" else "form"), source)
    return sorted({"next", "q", *declared, *read})


def _camel(match: re.Match[str]) -> str:
    first, initial, rest = match[1], match[2] or "", match[3]
    return f"{{{first}{initial.upper()}{rest}}}"


def _marked(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a JSON value with each of its parts replaced by `MARK`, and the place of the part."""
    yield place or "whole", MARK
    if isinstance(value, dict):
        for name, one in value.items():
            for where, marked in _marked(one, f"{place}.{name}"):
                yield where, {**value, name: marked}
    elif isinstance(value, list):
        for number, one in enumerate(value[:1]):
            for where, marked in _marked(one, f"{place}[{number}]"):
                yield where, [*value[:number], marked, *value[number + 1 :]]
