"""Responses of the doors beside REST and MCP, for the recordings of `benchmarks.answers`.

Every route of other products, of mail providers, of the authorization server and of the pages is
called with every kind of key and with every kind of body. Requests are sent as bytes, so that the
real parser and the real limits are part of the answer.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.providers import build_provider_site
from mailcheck.core.rights import make_rights
from mailcheck.web.providers.catalogue import PROVIDERS
from tests.house import House, config_in_memory
from tests.web.compatible.open_site import OpenSite
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.oauth.program import CALLBACK, add_client, oauth_house
from tests.web.provider_requests import encode, headers_for, is_form, sample
from tests.web.raw_http import HasSite, RawHttp, request

Keep = Callable[[str, Any], None]
"""Stores a response under the name of its request."""

PATIENCE = 700
"""Maximum number of steps of 0.1 seconds that a request may take."""

FORM, JSON = "application/x-www-form-urlencoded", "application/json"

HTML = {"Accept": "text/html,*/*"}

BODIES: Mapping[str, tuple[str, bytes]] = {
    "JSON": (JSON, b"{}"),
    "broken JSON": (JSON, b'{"a": '),
    "a JSON list": (JSON, b"[]"),
    "JSON without a type": ("", b'{"IDs": ["absent"]}'),
    "JSON as a form": (FORM, b'{"IDs": ["absent"]}'),
    "JSON as text": ("text/plain", b'{"IDs": ["absent"]}'),
    "a form": (FORM, b"IDs=absent"),
    "XML": ("application/xml", b"<all/>"),
    "multipart": ("multipart/form-data; boundary=b", b"--b--\r\n"),
    "too large": (JSON, b'{"a": "' + b"x" * 70_000 + b'"}'),
}

_DATE = re.compile("Date: .*\r\n")
_TOKENS = re.compile(r'(?<=name="form-token" )(content|value)="[^"]*"|nonce-[\w+/=-]+')


class Doors:
    """Sends requests to one site, and stores the responses."""

    def __init__(
        self,
        keep: Keep,
        house: House,
        door: str,
        site: HasSite | None = None,
        peer: str = "192.0.2.10",
    ) -> None:
        self.house = house
        self._peer = peer
        self._keep = keep
        self._door = door
        self._site = site or house
        self._asked: Counter[str] = Counter()

    def ask(
        self,
        name: str,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        """Send a request, and store its response without limits and random values."""
        connection = RawHttp(self._site, self._peer)
        fields = [f"{key}: {value}" for key, value in (headers or {}).items()]
        if body:
            fields.append(f"Content-Length: {len(body)}")
        connection.send(request(target, *fields, method=method) + body)
        for _ in range(PATIENCE):
            found = _read(connection.received(), method)
            if found is not None or connection.is_closed:
                break
            self.house.pass_time(0.1)
        connection.hang_up()
        path = target.partition("?")[0]
        begun = _DATE.sub("", connection.received().decode("utf-8", "replace"))[:2_000]
        shown = found or {"begun": begun}
        named = f"{self._door} {method} {_shown(path)}: {name} {_shown(target)}"
        self._asked[named] += 1
        self._keep(f"{named} {self._asked[named]}", shown)


def _shown(path: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "{id}", path)[:120]


def _read(data: bytes, method: str) -> Any:
    """Return a complete response, or `None`."""
    head, blank, body = data.partition(b"\r\n\r\n")
    if not blank:
        return None
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value) for name, value in (one.split(": ", 1) for one in lines)]
    length = int(dict(headers).get("content-length", -1))
    if length < 0 or (method != "HEAD" and len(body) < length):
        return None
    text = _TOKENS.sub("TOKEN", body.decode("utf-8", "replace"))
    kept = sorted(f"{name}: {value}" for name, value in headers if not _is_variable(name))
    return {"status": line, "headers": kept, "body": _parsed(text)}


def _is_variable(name: str) -> bool:
    return name in ("date", "content-length", "etag", "set-cookie") or name.startswith(
        ("x-ratelimit-re", "x-ratelimit-da")
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def record_doors(keep: Keep) -> None:
    """Record the responses of all doors beside REST and MCP."""
    _record_rest(keep)
    _record_facades(keep)
    _record_open_site(keep)
    _record_providers(keep)
    _record_oauth(keep)
    _record_pages(keep)


def _house(**sections: Any) -> House:
    return House(config_in_memory(accounts=CHEAP, **sections))


def _keys(house: House) -> Mapping[str, str]:
    exhausted = house.issue_key(house.account, per_minute=1, per_day=1)
    house.get("/inbox", key=exhausted)
    return {
        "a key": house.key,
        "a wrong key": "mc_wrong",
        "a key that may only read": house.issue_key(
            house.account, rights=make_rights(["inbox:read"])
        ),
        "a key for watches": house.issue_key(house.account, rights=make_rights(["watches"])),
        "an exhausted key": exhausted,
    }


def _filled(path: str, message_id: str) -> str:
    return re.sub(
        r"<(?:\w+:)?(\w+)>", lambda one: message_id if "id" in one[1].lower() else "what", path
    )


def _last_id(house: House) -> str:
    """Receive a mail, and return its id."""
    house.pass_time(1)
    house.receive()
    return str(house.get("/inbox/messages?limit=1").json["messages"][0]["id"])


def _record_routes(
    doors: Doors, routes: Iterable[tuple[str, str]], headers: Callable[[str], Mapping[str, str]]
) -> None:
    """Call each route with each key, and with each body that is not a mail.

    :param headers: returns the headers with a key.
    """
    keys = _keys(doors.house)
    for method, path in routes:
        for name, key in keys.items():
            target = _filled(path, _last_id(doors.house))
            doors.ask(f"with {name}", method, target, headers(key))
        doors.ask("without a key", method, target)
        if method == "GET":
            doors.ask("unknown parameter", method, target + "?nosuch=1", headers(keys["a key"]))
            continue
        for name, (kind, body) in BODIES.items():
            target = _filled(path, _last_id(doors.house))
            typed = {**_typed(kind), **headers(keys["a key"])}
            doors.ask(name, method, target, typed, body)


def _record_rest(keep: Keep) -> None:
    from mailcheck.assembly.doors.rest import build_routes

    doors = Doors(keep, _house(), "rest")
    routes = [(one.method, "/api/v1" + one.path) for one in build_routes(doors.house.assembly)]
    _record_routes(doors, iter(routes), lambda key: {"X-API-Key": key})
    for method, path in (("PATCH", "/inbox"), ("GET", "/no"), ("OPTIONS", "/inbox"), ("HEAD", "/")):
        doors.ask("no such route", method, f"/api/v1{path}", {"X-API-Key": doors.house.key})
        doors.ask("no such route, no key", method, f"/api/v1{path}")
    for path in ("/api", "/api/v1", "/api/v1/", "/api/v1/%ff", "/api/v2/inbox", "/api/v1//inbox"):
        doors.ask("edge", "GET", path, {"X-API-Key": doors.house.key})


def _credentials(key: str) -> Mapping[str, str]:
    return {
        "X-API-Key": key,
        "Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode(),
    }


def _record_facades(keep: Keep) -> None:
    doors = Doors(keep, _house(), "facade")
    for facade in (one for one in FACADES if one.base):
        routes = sorted((one.method, facade.base + one.path) for one in facade.routes)
        _record_routes(doors, routes, _credentials)
        for method, path in (("PATCH", facade.routes[0].path), ("GET", "/no/such/path")):
            for name, headers in (("key", _credentials(doors.house.key)), ("no key", {})):
                target = _filled(facade.base + path, "1")
                doors.ask(f"no such route, {name}", method, target, headers)


def _record_open_site(keep: Keep) -> None:
    site = OpenSite()
    doors = Doors(keep, site.house, "open", site, "127.0.0.1")
    for facade in (one for one in FACADES if not one.base):
        for one in sorted(facade.routes, key=lambda route: (route.path, route.method)):
            for name, (kind, body) in {"plain": ("", b""), **BODIES}.items():
                site.send()
                listed = site.get("/api/v1/messages").json["messages"]
                target = _filled(one.path, listed[0]["ID"])
                if one.method != "GET" or not body:
                    doors.ask(name, one.method, target, _typed(kind), body)
        doors.ask(facade.name, "PATCH", facade.routes[0].path)
        doors.ask(facade.name, "GET", "/no/such/path")
    far = Doors(keep, site.house, "open, far away", site)
    far.ask("not local", "GET", "/api/v1/messages")


def _record_providers(keep: Keep) -> None:
    doors = Doors(keep, _house(), "provider")
    keys = _keys(doors.house)
    for provider in PROVIDERS:  # two of them share a name
        for route in provider.routes:
            path = f"/providers/{provider.name}{route.path}"
            target = _filled(path, _last_id(doors.house))
            if route.method == "POST":
                _record_sending(doors, path, keys)
            else:
                for name, key in keys.items():
                    doors.ask(name, route.method, target, headers_for(path, key))
            doors.ask("wrong method", "PATCH", target, headers_for(path, keys["a key"]))
            doors.ask("without a key", route.method, target)
        for path in ("/nothing", ""):
            target = f"/providers/{provider.name}{path}"
            doors.ask("nothing", "GET", target, headers_for(target + "/", keys["a key"]))
    for path in ("", "/", "/nosuch", "/nosuch/emails"):
        doors.ask("no provider", "GET", f"/providers{path}")
    site = build_provider_site(doors.house.assembly)
    alone = Doors(keep, doors.house, "provider alone", _Site(site))
    for path in ("/emails", "/", "/nosuch", "/v3/mail/send"):
        for method in ("GET", "POST"):
            alone.ask("host", method, path, {"Authorization": f"Bearer {doors.house.key}"})


class _Site:
    def __init__(self, site: Any) -> None:
        self.site = site


def _typed(kind: str) -> dict[str, str]:
    return {"Content-Type": kind} if kind else {}


def _record_sending(doors: Doors, path: str, keys: Mapping[str, str]) -> None:
    target = path.replace("<domain>", "example.com").replace("<inbox_id>", "example.com")
    for tag in ("you", "you+fault.data-451", "you+fault.rcpt-550", "you+fault.quota"):
        data = encode(path, sample(path, f"{tag}@customer.example"))
        for name, key in keys.items() if tag == "you" else (("a key", keys["a key"]),):
            doors.ask(f"{tag} with {name}", "POST", target, headers_for(path, key, data), data)
    for name, (kind, body) in BODIES.items():
        headers = {**headers_for(path, keys["a key"], body), "Content-Type": kind or "x/y"}
        doors.ask(name, "POST", target, headers, body)
    data = encode(path, sample(path, "again@customer.example"))
    headers = headers_for(path, keys["a key"], data)
    for _ in range(2):
        repeated = {**headers, "Idempotency-Key": "one"}
        doors.ask("repeated", "POST", target, repeated, data)
    headers["Content-Type"] = JSON if is_form(path) else FORM
    doors.ask("with another type", "POST", target, headers, data)


def _record_oauth(keep: Keep) -> None:
    for house, name in ((oauth_house(), "oauth"), (_house(), "oauth off")):
        doors = Doors(keep, house, name)
        client = add_client(house, CALLBACK)[0] if name == "oauth" else None
        for path in (
            "/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/openid-configuration",
            "/.well-known/nothing",
            "/token",
            "/register",
            "/revoke",
            "/token/more",
            "/authorize",
            "/mcp/.well-known/openid-configuration",
        ):
            for method in ("GET", "POST", "OPTIONS", "PUT"):
                doors.ask("plain", method, path)
                doors.ask("page", method, path, {"Origin": "https://page.example", **HTML})
        client_id = client.id if client else "none"
        for path in ("/token", "/revoke", "/register"):
            for named, body in {
                **BODIES,
                "a client": (FORM, f"client_id={client_id}".encode()),
                "a client and a grant": (
                    FORM,
                    f"client_id={client_id}&grant_type=refresh_token&refresh_token=x".encode(),
                ),
                "a code": (
                    FORM,
                    f"client_id={client_id}&grant_type=authorization_code&code=x".encode(),
                ),
                "a form with a charset": (FORM + "; charset=utf-8", b"client_id=x"),
                "metadata": (JSON, b'{"redirect_uris": ["https://agent.example/callback"]}'),
            }.items():
                kind, data = body
                doors.ask(named, "POST", path, _typed(kind), data)
        for path in ("/mcp", "/mcp/"):
            doors.ask("without a key", "POST", path, _typed(JSON), b"{}")
            wrong = {"X-API-Key": "no", **_typed(JSON)}
            doors.ask("with a wrong key", "POST", path, wrong, b"{}")
            doors.ask("a GET", "GET", path, {"X-API-Key": house.key})


def _record_pages(keep: Keep) -> None:
    from mailcheck.assembly.doors.pages import build_pages
    from mailcheck.assembly.doors.rest import build_routes
    from mailcheck.web.api.description import ApiDescription

    house = _house()
    browser = Browser(house)
    browser.sign_up()
    cookie = {"Cookie": "; ".join(f"{name}={one}" for name, one in browser.cookies.items())}
    person = {**HTML, **cookie}
    token = browser.page.form_token
    routes = build_routes(house.assembly)
    pages = build_pages(house.assembly, routes, ApiDescription(routes))[-1]
    doors = Doors(keep, house, "page")
    fixed = dict.fromkeys(
        (page.method, page.path) for page in pages if not page.path.startswith("/static")
    )
    for method, path in fixed:
        target = _filled(path, "01a1fc41-0219-76dd-ac7e-95beebac7c40")
        if path == "/sign-out":
            continue
        doors.ask("anonymous", method, target, HTML)
        doors.ask("anonymous program", method, target)
        doors.ask("signed in", method, target, person)
        doors.ask("signed in, bad parameter", method, f"{target}?a=%ff", cookie)
        if method == "POST":
            for name, (kind, body) in BODIES.items():
                doors.ask(name, method, target, {**person, **_typed(kind)}, body)
            for name, kind in (("form", FORM), ("no type", ""), ("XML", "application/xml")):
                form = urlencode({"form-token": token, "name": "x"}).encode()
                named = f"with a token, {name}"
                doors.ask(named, method, target, {**person, **_typed(kind)}, form)
    for method, target in (
        ("PUT", "/account"),
        ("GET", "/no/such/page"),
        ("POST", "/no/such/page"),
        ("GET", "/static/nosuch.js"),
        ("HEAD", "/sign-in"),
        ("GET", "/%ff"),
        ("GET", "//"),
        ("GET", "/docs/nosuch"),
        ("GET", "/docs"),
        ("GET", "/clients/nosuch"),
        ("PUT", "/healthz"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/readyz/more"),
        ("POST", "/tls-reports/nosuch"),
    ):
        doors.ask("program", method, target, cookie)
        doors.ask("person", method, target, person)
    doors.ask("too large", "POST", "/tls-reports/nosuch", body=b"x" * 70_000)
