"""The card of the MCP App in a real browser, in a host that is made of the official bridge.

The host gives the card the policy that MCP Apps require of hosts for a card that declares nothing.
"""

import json
import smtplib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import FrameLocator

from mailcheck.web.mcp.tools import CARD_URI
from tests.attacks.hostile_mails import HostileMail, read_hostile_mails
from tests.browser.watching import AXE, GRAVE, OneBrowser, Watched, watched_page
from tests.interop.mcp_clients.installed import MODULES, node_environment, require
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.web.mcp.agent import APPS, HANDSHAKE

pytestmark = [pytest.mark.attack, pytest.mark.end_to_end]

ESBUILD = MODULES / ".bin" / "esbuild"
BRIDGE = MODULES / "@modelcontextprotocol" / "ext-apps"
HOST_SCRIPT = Path(__file__).with_name("mcp_host") / "host.mjs"

DEFAULT_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'; "
    "object-src 'none'; base-uri 'self'"
)
"""The policy for cards that declare no origins (MCP Apps, "Content Security Policy")."""

MAILS = read_hostile_mails()
TOGETHER = 28


class Client:
    """A client of the daemon that declares the extension in its handshake."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._session = ""
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {"extensions": dict(APPS)},
            "clientInfo": {"name": "host", "version": "1"},
        }
        self.ask("initialize", params)

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request, and return its result."""
        headers = {
            "Authorization": f"Bearer {self._daemon.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        url = f"http://{HOST}:{self._daemon.http_port}/mcp"
        with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
            self._session = response.headers.get("Mcp-Session-Id", self._session)
            return json.load(response)["result"]

    def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool, and return its whole result."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})


class CardHost:
    """The page of a host, whose cards call the tools of the daemon."""

    def __init__(self, watched: Watched, client: Client, script: str) -> None:
        self.watched = watched
        self.client = client
        page = watched.page
        (content,) = client.ask("resources/read", {"uri": CARD_URI})["contents"]
        page.route(
            watched.origin + "/host",
            lambda route: route.fulfill(body=f"<!doctype html><script>{script}</script>"),
        )
        page.route(
            watched.origin + "/card",
            lambda route: route.fulfill(
                body=content["text"],
                headers={
                    "Content-Type": "text/html; charset=utf-8",
                    "Content-Security-Policy": DEFAULT_POLICY,
                },
            ),
        )
        page.expose_function("callTool", self._call)

    def begin(self) -> None:
        """Begin an empty chat."""
        self.watched.go("/host")
        self.watched.forget()

    def show(self, result: Any, **options: Any) -> FrameLocator:
        """Show the card of a result, and return its frame."""
        page = self.watched.page
        page.evaluate("([result, options]) => openCard(result, options)", [result, options])
        return page.frame_locator("iframe").last

    def _call(self, name: str, arguments: str) -> str:
        return json.dumps(self.client.call(name, **json.loads(arguments)))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The host with the official bridge as one script."""
    require(ESBUILD, BRIDGE)
    target = tmp_path_factory.mktemp("host") / "host.js"
    command = [str(ESBUILD), str(HOST_SCRIPT), "--bundle", "--format=iife", f"--outfile={target}"]
    subprocess.run(command, check=True, capture_output=True, env=node_environment())
    return target.read_text("utf-8").replace("</script", "<\\/script")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose key may call a tool for each mail."""
    folder = tmp_path_factory.mktemp("app")
    with running_daemon(folder, limits_requests_per_minute=10_000) as daemon:
        yield daemon


@pytest.fixture
def host(one_browser: OneBrowser, daemon: Daemon, script: str) -> Iterator[CardHost]:
    """A host with an empty chat."""
    with (
        one_browser.lent() as browser,
        watched_page(browser, daemon.http_port, viewport={"width": 700, "height": 900}) as watched,
    ):
        host = CardHost(watched, Client(daemon), script)
        host.begin()
        yield host


def receive(host: CardHost, daemon: Daemon, raw: bytes, tag: str = "") -> Any:
    """Send a mail to a new address, and return the result of the wait for it."""
    address = host.client.call("new_address")["structuredContent"]
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        smtp.sendmail("app@example.com", [address["address"]], raw)
    wanted = {"tag": address["tag"], "after": address["cursor"]}
    return host.client.call("wait_for_message", **wanted)


SIGN_UP = b"""\
From: Shop <shop@example.com>
To: you@example.com
Subject: Confirm your account
MIME-Version: 1.0
Content-Type: text/html; charset=utf-8

<h2>Welcome</h2><p>Your code is <b>482913</b>.</p>
<p><a href="https://example.com/confirm?t=7f3a">Confirm your account</a></p>
<img src="https://tracker.example/p.png" alt="">
""".replace(b"\n", b"\r\n")


def test_the_card_shows_the_mail(host: CardHost, daemon: Daemon) -> None:
    """The card shows subject, code and link, and the mail in a frame; a press opens the link."""
    card = host.show(receive(host, daemon, SIGN_UP))
    assert card.locator("h1").first.inner_text() == "Confirm your account"
    assert card.locator(".code").inner_text().strip() == "482913"
    mail = card.frame_locator("#mail")
    assert mail.locator("h2").inner_text() == "Welcome"
    assert card.locator("#mail").get_attribute("sandbox") == ""
    mail.get_by_role("link").click()
    assert host.watched.page.evaluate("opened") == []
    card.get_by_role("button", name="Open link").click()
    host.watched.wait_until("opened.length")
    assert host.watched.page.evaluate("opened") == ["https://example.com/confirm?t=7f3a"]
    assert host.watched.page.evaluate("tearDown()") == {}
    assert host.watched.elsewhere == []
    assert len(host.watched.pages) == 1


def test_the_card_follows_its_host(host: CardHost, daemon: Daemon) -> None:
    """The card takes the theme of the host, offers no link that the host cannot open, and is
    accessible.
    """
    context = {"theme": "dark", "styles": {"variables": {"--color-text-primary": "#ffaa00"}}}
    result = receive(host, daemon, SIGN_UP)
    card = host.show(result, hostContext=context, capabilities={"serverTools": {}})
    assert card.locator("h1").first.evaluate("e => getComputedStyle(e).color") == "rgb(255, 170, 0)"
    assert card.locator("html").evaluate("e => getComputedStyle(e).colorScheme") == "dark"
    assert card.get_by_role("button").count() == 0
    assert card.get_by_text("https://example.com/confirm?t=7f3a").is_visible()
    frame = host.watched.page.frame(url="**/card")
    assert frame is not None
    frame.evaluate(AXE.read_text("utf-8"))
    found = frame.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")
    assert [one["id"] for one in found["violations"] if one["impact"] in GRAVE] == []


def test_the_card_shows_a_report(host: CardHost, daemon: Daemon) -> None:
    """The second card shows the state of a test, and its score when it is completed."""
    made = host.client.call("generate_test")["structuredContent"]
    waiting = host.client.call("wait_for_test", testId=made["testId"], timeout=1)
    assert host.show(waiting).locator("#report h1").inner_text() == "Test: pending"
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        smtp.sendmail("app@example.com", [made["address"]], SIGN_UP)
    card = host.show(host.client.call("wait_for_test", testId=made["testId"], timeout=50))
    assert card.locator("#report h1").inner_text().startswith("Score ")
    assert card.locator("#checks li").count() == 5
    card.get_by_role("button", name="Open the report").click()
    host.watched.wait_until("opened.length")
    assert "/share/" in host.watched.page.evaluate("opened")[0]
    host.watched.require_quiet()


BATCHES = [MAILS[start : start + TOGETHER] for start in range(0, len(MAILS), TOGETHER)]


@pytest.mark.parametrize("mails", BATCHES, ids=lambda mails: f"{mails[0].name} to {mails[-1].name}")
def test_no_script_runs_and_no_request_is_sent(
    host: CardHost, daemon: Daemon, mails: Sequence[HostileMail]
) -> None:
    """A hostile mail in a card causes no script, request, navigation, dialog or message."""
    for mail in mails:
        result = receive(host, daemon, mail.raw_message)
        card = host.show(result)
        if mail.html:
            card.locator("#mail").click(position={"x": 60, "y": 40}, force=True)
        page = host.watched.page
        page.keyboard.press("Tab")
        assert host.watched.troubles() == [], mail.name
        assert page.url == host.watched.origin + "/host", mail.name
        frames = {frame.url for frame in page.frames[1:]}
        assert frames <= {host.watched.origin + "/card", "about:srcdoc", "about:blank"}, mail.name
        assert page.evaluate("opened") == [], mail.name
        page.evaluate("document.querySelector('iframe').remove()")
