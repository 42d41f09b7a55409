"""The beginning of links: the public URL, or the URL that a trusted proxy reports."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import WebOptions
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory
from tests.table import rows
from tests.web.raw_http import RawHttp
from tests.web.workers import FaultyWorker

PROXY, STRANGER = "10.0.0.1", "192.0.2.1"
OURS = "http://127.0.0.1:8080"
HTTPS = "X-Forwarded-Proto: https"
MAIL_EXAMPLE = "Host: mail.example"


@pytest.fixture
def behind_a_proxy() -> House:
    """A house that trusts a proxy and has no public URL, with one message."""
    house = House(config_in_memory(web=WebOptions(trusted_proxies=("10.0.0.0/8",))))
    house.receive()
    return house


def write_request(method: str, path: str, *headers: str, body: str = "") -> bytes:
    """Create a request with only these headers."""
    lines = [f"{method} {path} HTTP/1.1", *headers, f"Content-Length: {len(body)}", "", body]
    return "\r\n".join(lines).encode("latin-1")


def ask(house: House, peer: str, path: str, *headers: str, method: str = "GET") -> Any:
    """Send a request with the key, and return the JSON."""
    http = RawHttp(house, peer)
    http.send(write_request(method, path, f"X-API-Key: {house.key}", *headers))
    answer = http.answers((method, path))[0]
    assert answer.status == 200
    return answer.json


def origin_of_links(house: House, peer: str, *headers: str) -> str:
    """Return the scheme and host of the share link in the response."""
    listed = ask(house, peer, "/api/v1/inbox/messages", *headers)
    origin: str = listed["messages"][0]["shareUrl"].partition("/share/")[0]
    return origin


@rows(
    (PROXY, [MAIL_EXAMPLE, HTTPS], "https://mail.example"),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: HTTPS"], "https://mail.example"),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: http"], "http://mail.example"),
    (PROXY, ["Host: mail.example:8443", HTTPS], "https://mail.example:8443"),
    (PROXY, ["Host: [2001:db8::1]:8443", HTTPS], "https://[2001:db8::1]:8443"),
    # The last value comes from the proxy itself.
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: http, https"], "https://mail.example"),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: http", HTTPS], "https://mail.example"),
    ("::ffff:10.0.0.1", [MAIL_EXAMPLE, HTTPS], "https://mail.example"),
    (PROXY, [MAIL_EXAMPLE], OURS),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: javascript"], OURS),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto: https, gopher"], OURS),
    (PROXY, [MAIL_EXAMPLE, "X-Forwarded-Proto:"], OURS),
    (STRANGER, [MAIL_EXAMPLE, HTTPS], OURS),
    # A client cannot claim to be a trusted proxy.
    (STRANGER, [MAIL_EXAMPLE, HTTPS, f"X-Forwarded-For: {PROXY}"], OURS),
)
def test_trusted_proxies(behind_a_proxy: House, peer: str, headers: list[str], origin: str) -> None:
    """Scheme and name are taken from a connecting host that is trusted and sends a scheme."""
    assert origin_of_links(behind_a_proxy, peer, *headers) == origin


@rows(
    "",
    "mail.example/path",
    "mail.example?x=",
    "user@mail.example",
    "mail.example:port",
    "mail.example:",
    "mail example",
    'mail.example"',
    "mail.example\xff",
    "[mail.example]",
    "2001:db8::1",
    "x" * 254,
)
def test_an_invalid_host_is_ignored(behind_a_proxy: House, host: str) -> None:
    """An invalid Host is ignored, and links begin as without a proxy."""
    assert origin_of_links(behind_a_proxy, PROXY, f"Host: {host}", HTTPS) == OURS


def test_the_public_url_goes_before_all() -> None:
    """A configured public URL overrides everything in a request."""
    web = WebOptions(public_url="http://x.example/y", trusted_proxies=("10.0.0.0/8",))
    house = House(config_in_memory(web=web))
    house.receive()
    assert origin_of_links(house, PROXY, MAIL_EXAMPLE, HTTPS) == "http://x.example/y"


def test_every_view_has_the_same_link(behind_a_proxy: House) -> None:
    """Links in lists, messages, waits, shared pages and new links begin with the client's URL."""
    house = behind_a_proxy
    headers = (MAIL_EXAMPLE, HTTPS)
    listed = ask(house, PROXY, "/api/v1/inbox/messages", *headers)["messages"][0]
    message = f"/api/v1/inbox/messages/{listed['id']}"
    page = urlsplit(listed["shareUrl"]).path
    links = [
        listed["shareUrl"],
        ask(house, PROXY, message, *headers)["shareUrl"],
        ask(house, PROXY, "/api/v1/inbox/wait?after=c0", *headers)["shareUrl"],
        ask(house, PROXY, page, *headers)["shareUrl"],
    ]
    assert links == [f"https://mail.example{page}"] * 4
    renewed = ask(house, PROXY, f"{message}/share", *headers, method="POST")["shareUrl"]
    assert renewed.startswith("https://mail.example/share/")


def test_agents_get_the_same_link(behind_a_proxy: House) -> None:
    """The links in results of tools begin with the client's URL, too."""
    house = behind_a_proxy
    message = house.get("/inbox/messages").json["messages"][0]
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "share_link", "arguments": {"id": message["id"]}},
    }
    http = RawHttp(house, PROXY)
    headers = (f"X-API-Key: {house.key}", MAIL_EXAMPLE, HTTPS, "Content-Type: application/json")
    accept = "Accept: application/json, text/event-stream"
    http.send(write_request("POST", "/mcp", *headers, accept, body=json.dumps(call)))
    answered = json.loads(http.received().partition(b"\r\n\r\n")[2])
    link = answered["result"]["structuredContent"]["shareUrl"]
    assert link == f"https://mail.example{urlsplit(message['shareUrl']).path}"


def test_each_client_gets_its_own_links() -> None:
    """Several waits that receive the same message each get links with their own URL."""
    reader = FaultyWorker()
    workers = Workers(DirectWorker(), reader, DirectWorker())
    house = House(config_in_memory(web=WebOptions(trusted_proxies=("10.0.0.0/8",))), workers)
    house.receive()
    house.pass_time(1)
    ways = [
        (PROXY, "Host: one.example", "https://one.example"),
        (PROXY, "Host: other.example", "https://other.example"),
        (STRANGER, "Host: one.example", OURS),
    ] * 2
    path = "/api/v1/inbox/wait"
    waiting = []
    for peer, host, _ in ways:
        http = RawHttp(house, peer)
        http.send(write_request("GET", path, f"X-API-Key: {house.key}", host, HTTPS))
        waiting.append(http)
    reader.is_slow, reader.good_calls = True, 1  # the feed's look; then all load at a time
    house.receive()
    reader.catch_up()
    links = [http.answers(("GET", path))[0].json["shareUrl"] for http in waiting]
    assert [link.partition("/share/")[0] for link in links] == [origin for _, _, origin in ways]
