"""Real MCP clients sign in by OAuth to a real daemon behind TLS, and use every tool."""

import contextlib
import html
import json
import re
import smtplib
import ssl
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from http.cookiejar import CookieJar
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPSHandler, build_opener

import pytest

from tests.browser.watching import running_browser
from tests.interop.mcp_clients.installed import (
    CONFORMANCE,
    DRIVERS,
    HOME,
    INSPECTOR,
    MCP_REMOTE,
    NODE,
    node_environment,
    require,
)
from tests.interop.test_mcp_clients import DEADLINE
from tests.servers.certificates import Authority
from tests.servers.daemon import HOST, Daemon, free_ports
from tests.servers.http_stub import QuietHandler
from tests.web.mcp.agent import TOOL_NAMES

pytestmark = pytest.mark.end_to_end

AUTHORITY = Authority()
SITE = "localhost"

PYTHON = {
    "Python SDK 2.x": HOME / "python-sdk-2" / "bin" / "python",
    "Python SDK 1.x": HOME / "python-sdk-1" / "bin" / "python",
}
TYPESCRIPT = {"TypeScript SDK 2.x": "2.x", "TypeScript SDK 1.x": "1.x"}

IDENTITIES = [
    ("Python SDK 2.x", "document"),
    ("Python SDK 2.x", "registration"),
    ("Python SDK 1.x", "secret"),
    ("TypeScript SDK 2.x", "document"),
    ("TypeScript SDK 2.x", "operator"),
    ("TypeScript SDK 1.x", "registration"),
]
"""The SDKs, and how each is known: by its document, by registration, or by the operator."""


@dataclass(frozen=True)
class Site:
    """A daemon behind TLS, and what its clients need to trust it."""

    daemon: Daemon
    url: str
    authority: str
    callback: str
    document: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a client that trusts the authority of the tests."""
        return {
            **node_environment(),
            "SSL_CERT_FILE": self.authority,
            "NODE_EXTRA_CA_CERTS": self.authority,
            "BROWSER": "/bin/true",
            "MCP_AUTO_OPEN_ENABLED": "true",
            "MCP_INSPECTOR_SECRET_STORE": "file",
            "CI": "1",
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A daemon with a certificate for ``localhost``, and a server with a metadata document."""
    folder = tmp_path_factory.mktemp("oauth")
    certificate, key = AUTHORITY.issue(SITE).write_to(folder)
    authority = AUTHORITY.write_to(folder / "ca.pem")
    port, callback_port, document_port = free_ports(3)
    url = f"https://{SITE}:{port}"
    callback = f"http://{HOST}:{callback_port}/callback"
    document = f"https://{SITE}:{document_port}/client.json"
    (plain,) = free_ports(1)
    secure = f"ssl:{port}:interface={HOST}:privateKey={key}:certKey={certificate}"
    daemon = Daemon(
        folder,
        web_public_url=url,
        web_listen=[f"{HOST}:{plain}", secure],
        network_allow_private=True,
        probes_ca_file=authority,
        dns_allow_special_use=True,
    )
    daemon.http_port = plain
    served = {"client_id": document, "client_name": "Documented", "redirect_uris": [callback]}
    with serving_document(document_port, json.dumps(served).encode(), certificate, key):
        try:
            daemon.start()
            assert daemon.ask("POST", "/watches", body=b'{"target": "example.com"}').answer()
            yield Site(daemon, url, authority, callback, document)
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()


@contextlib.contextmanager
def serving_document(port: int, body: bytes, certificate: Path, key: Path) -> Iterator[None]:
    """Serve a client metadata document over TLS."""

    class Handler(QuietHandler):
        """Answers each GET with the document."""

        def do_GET(self) -> None:
            """Answer a request."""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer((HOST, port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Person:
    """A person with a browser, who signs in and allows what a program asks for."""

    def __init__(self, site: Site) -> None:
        self._site = site
        context = ssl.create_default_context(cafile=site.authority)
        self._browser = build_opener(
            HTTPCookieProcessor(CookieJar()), HTTPSHandler(context=context)
        )
        self._browser.addheaders = [("Accept", "text/html")]
        password = (site.daemon.folder / "var" / "dashboard-password").read_text().strip()
        page = self._open(f"{site.url}/sign-in")
        self._post("/sign-in", page, name="developer", password=password)

    def allow(self, url: str, only: Collection[str] = ()) -> str:
        """Allow what a program asks for, and return the address that leads back to it.

        :param only: the scopes to allow; empty for all that the program asks for.
        """
        page = self._open(url)
        assert "Allow" in page, page
        (query,) = re.findall('name="query" value="([^"]*)"', page)
        (account,) = re.findall('<option value="([^"]*)" selected', page)
        scopes = re.findall('name="scope" id="[^"]*" value="([^"]*)"', page)
        done = self._post(
            "/authorize",
            page,
            query=html.unescape(query),
            account=account,
            scope=[one for one in scopes if not only or one in only],
            decision="allow",
        )
        (address,) = re.findall('id="continue" href="([^"]*)"', done)
        return html.unescape(address)

    def _open(self, url: str) -> str:
        with self._browser.open(url, timeout=DEADLINE) as answer:
            text: str = answer.read().decode()
        return text

    def _post(self, path: str, page: str, **form: object) -> str:
        token = re.findall('name="form-token" value="([^"]*)"', page)[-1]
        body = urlencode({"form-token": token, **form}, doseq=True).encode()
        with self._browser.open(self._site.url + path, body, DEADLINE) as answer:
            text: str = answer.read().decode()
        return text


@pytest.fixture(scope="module")
def person(site: Site) -> Person:
    """The person who connects all programs, and signs in once."""
    return Person(site)


def calls_of_every_tool(site: Site) -> list[tuple[str, dict[str, Any]]]:
    """Return a call of each tool that succeeds, after sending the mails for it."""
    daemon = site.daemon
    ids = []
    for tag in ("kept", "deleted"):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "shop@example.com", daemon.address(tag), "Hi"
        mail.set_content("Your code is 482913")
        mail.add_attachment("some text", filename="a.txt")
        cursor = daemon.cursor()
        with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
            smtp.send_message(mail)
        found = daemon.get("/inbox/wait", tag=tag, after=cursor, timeout=30).json
        ids.append(found["id"])
    kept, deleted = ids
    attachment = daemon.get(f"/inbox/messages/{kept}").json["attachments"][0]["id"]
    test = daemon.request("POST", "/test/generate").json["testId"]
    watch = daemon.get("/watches").json["watches"][0]["id"]
    # No application has this name: the tool reports the attempt, and succeeds.
    new_route = {"to": "app@*", "format": "postmark", "url": "https://app.example.com/mail"}
    route = daemon.post("/inbound/routes", json.dumps(new_route).encode()).json["id"]
    arguments: dict[str, dict[str, Any]] = {
        "wait_for_message": {"tag": "kept", "timeout": 5},
        "get_message": {"id": kept},
        "get_attachment": {"id": kept, "attachmentId": attachment},
        "extract": {"id": kept},
        "share_link": {"id": kept},
        "delete_message": {"id": deleted},
        "check_domain": {"domain": "example.com"},
        "check_mx": {"domain": "example.com"},
        "check_blocklists": {"query": "192.0.2.1"},
        "wait_for_test": {"testId": test, "timeout": 1},
        "get_watch": {"watchId": watch},
        "send_inbound": {
            "route": route,
            "to": "app@example.com",
            "from": "ana@example.com",
            "text": "Hi",
            "wait": 1,
        },
    }
    return [(tool, arguments.get(tool, {})) for tool in TOOL_NAMES]


def converse(
    site: Site, person: Person, command: list[str], first_only: Collection[str] = ()
) -> dict[str, Any]:
    """Run a client, sign in when it asks for it, and return its report of each step.

    :param first_only: the scopes to allow at the first request for consent; empty for all.
    """
    steps: dict[str, Any] = {"called": {}}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=site.environment,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            told = json.loads(line)
            step = told.pop("step")
            if step == "authorize":
                only = () if "authorize" in steps else first_only
                print(person.allow(told["url"], only), file=process.stdin, flush=True)
            if step == "called":
                steps["called"][told["name"]] = told["text"]
            else:
                steps[step] = told
        complaints = process.stderr.read()
    assert process.wait(DEADLINE) == 0, complaints
    return steps


def sdk_command(
    name: str, site: Site, *identity: str, wanted: Sequence[tuple[str, dict[str, Any]]] = ()
) -> list[str]:
    """Return the command of an SDK's client. ``identity`` is document, client id and secret.

    :param wanted: the calls of tools; empty for one of each tool.
    """
    calls = json.dumps(wanted or calls_of_every_tool(site))
    if name in PYTHON:
        require(PYTHON[name])
        program = [str(PYTHON[name]), str(DRIVERS / "python_sdk_oauth.py")]
        return [*program, f"{site.url}/mcp", site.callback, *identity, calls]
    require(NODE)
    program = [str(NODE), str(DRIVERS / "typescript_sdk_oauth.cjs")]
    return [*program, f"{site.url}/mcp", site.callback, *identity, calls, TYPESCRIPT[name]]


def operators_client(site: Site, redirect_uri: str, *options: str) -> list[str]:
    """Register a client as the operator; return its id, and its secret with ``--secret``."""
    mailcheck = Path(sys.executable).with_name("mailcheck")
    done = subprocess.run(
        [mailcheck, "client", "add", "Known", "--redirect-uri", redirect_uri, *options],
        cwd=site.daemon.folder,
        env=site.daemon.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(("name", "identity"), IDENTITIES)
def test_an_sdk_signs_in(site: Site, person: Person, name: str, identity: str) -> None:
    """Each SDK signs in with a kind of client id, refreshes its token, and uses every tool."""
    document, client_id, secret = "", "", ""
    if identity == "document":
        document = site.document
    elif identity == "operator":
        (client_id,) = operators_client(site, site.callback)
    elif identity == "secret":
        client_id, secret = operators_client(site, site.callback, "--secret")
    told = converse(site, person, sdk_command(name, site, document, client_id, secret))
    assert told["tools"]["names"] == TOOL_NAMES
    _require_success(told["called"])
    assert told["done"]["is_new"] is True
    asked = parse_qs(urlsplit(told["authorize"]["url"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["resource"] == [f"{site.url}/mcp"]
    expected = document or client_id
    assert told["done"]["client"] == expected or identity == "registration"


def _require_success(called: dict[str, str]) -> None:
    assert list(called) == TOOL_NAMES
    assert "482913" in called["get_message"]
    assert "some text" in called["get_attachment"]
    for name, text in called.items():
        assert text, name
        assert not text.startswith("failed: "), (name, text)


@pytest.mark.parametrize("name", list(PYTHON))
def test_an_sdk_asks_for_more(site: Site, person: Person, name: str) -> None:
    """An SDK whose grant lacks a scope asks the person for it, and repeats the call (step-up)."""
    (client_id,) = operators_client(site, site.callback)
    calls = [("new_address", {}), ("check_mx", {"domain": "example.com"}), ("new_address", {})]
    command = sdk_command(name, site, "", client_id, "", wanted=calls)
    told = converse(site, person, command, first_only=["inbox:read"])
    assert list(told["called"]) == ["new_address", "check_mx"]
    assert not [text for text in told["called"].values() if text.startswith("failed: ")]
    asked = parse_qs(urlsplit(told["authorize"]["url"]).query)
    assert {"inbox:read", "domains"} <= set(asked["scope"][0].split())


def test_mcp_remote_signs_in(site: Site, person: Person, tmp_path: Path) -> None:
    """mcp-remote, which other agents start as a program, signs in and passes calls on."""
    require(NODE, MCP_REMOTE)
    environment = {**site.environment, "MCP_REMOTE_CONFIG_DIR": str(tmp_path)}
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [str(NODE), str(MCP_REMOTE), f"{site.url}/mcp", str(port), "--host", HOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                found = re.search(r"https://\S+/authorize\?\S+", line)
                if found:
                    back = person.allow(found[0])
                    with build_opener().open(back, timeout=DEADLINE) as answer:
                        assert answer.status == 200
                if "Proxy established" in line:
                    break
            else:
                pytest.fail("".join(said))
            drain = threading.Thread(target=process.stderr.read)
            drain.start()
            _call_every_tool(site, process)
        finally:
            process.terminate()


def _call_every_tool(site: Site, process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    ask = _Questions(process)
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    assert ask("initialize", hello)["serverInfo"]["name"] == "mailcheck"
    ask.tell("notifications/initialized")
    assert [tool["name"] for tool in ask("tools/list", {})["tools"]] == TOOL_NAMES
    called = {}
    for name, arguments in calls_of_every_tool(site):
        result = ask("tools/call", {"name": name, "arguments": arguments})
        text = " ".join(part.get("text", "") for part in result["content"])
        called[name] = f"failed: {text}" if result["isError"] else text
    _require_success(called)


class _Questions:
    """JSON-RPC over the input and output of a program."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._number = 0

    def tell(self, method: str) -> None:
        """Send a notification."""
        print(
            json.dumps({"jsonrpc": "2.0", "method": method}), file=self._process.stdin, flush=True
        )

    def __call__(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and return its result."""
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if told.get("id") == self._number:
                assert "result" in told, told
                return told["result"]
        raise AssertionError(f"{method} was not answered")


def run_and_sign_in(
    site: Site, person: Person, command: list[str], folder: Path
) -> "subprocess.CompletedProcess[str]":
    """Run a program that listens for the browser itself, and sign in when it prints an address."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**site.environment, "HOME": str(folder)},
        cwd=folder,
    )
    said = []
    with process:
        assert process.stdout is not None
        killer = threading.Timer(DEADLINE, process.kill)
        killer.start()
        for line in process.stdout:
            said.append(line)
            found = re.search(r"https://[^\s\"']+/authorize\?[^\s\"']+", line)
            if found:
                back = person.allow(found[0])
                with build_opener().open(back, timeout=DEADLINE) as answer:
                    assert answer.status == 200
        killer.cancel()
    return subprocess.CompletedProcess(command, process.wait(DEADLINE), "".join(said))


def test_the_inspector_signs_in(site: Site, person: Person, tmp_path: Path) -> None:
    """The inspector signs in once, and calls every tool with the stored tokens."""
    require(NODE, INSPECTOR)
    (port,) = free_ports(1)
    base = [str(NODE), str(INSPECTOR), "--cli", f"{site.url}/mcp", "--transport", "http"]
    base += ["--callback-url", f"http://{HOST}:{port}/oauth/callback"]
    listed = run_and_sign_in(site, person, [*base, "--method", "tools/list"], tmp_path)
    assert listed.returncode == 0, listed.stdout
    for name, arguments in calls_of_every_tool(site):
        given = ["--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        called = run_and_sign_in(site, person, [*base, "--method", "tools/call", *given], tmp_path)
        assert called.returncode == 0, called.stdout


def test_the_authorization_server_conforms(site: Site, person: Person, tmp_path: Path) -> None:
    """The conformance runner connects a client, and finds no failure."""
    require(NODE, CONFORMANCE)
    (port,) = free_ports(1)
    (client_id,) = operators_client(site, f"http://{HOST}:{port}/callback")
    command = [str(NODE), str(CONFORMANCE), "authorization", "--url", site.url]
    command += ["--client-id", client_id, "--port", str(port)]
    command += ["--resource", f"{site.url}/mcp", "--output-dir", str(tmp_path)]
    done = run_and_sign_in(site, person, command, tmp_path)
    found = [json.loads(path.read_text()) for path in tmp_path.glob("**/checks.json")]
    statuses = {check["id"]: check["status"] for checks in found for check in checks}
    assert statuses, done.stdout
    assert set(statuses.values()) == {"SUCCESS"}, done.stdout
    assert len(found) == 2, done.stdout


CALL = """
async ([url, method, headers, body, credentials]) => {
    try {
        const answer = await fetch(url, {method, headers, body: body || undefined, credentials});
        return [answer.status, answer.headers.get("WWW-Authenticate") || "", await answer.text()];
    } catch (error) {
        return [0, "", String(error)];
    }
}
"""


def test_a_web_page_is_a_client(site: Site) -> None:
    """A page of another origin finds, registers and calls; with cookies it reads nothing."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "page", "version": "1"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    json_headers = {"Content-Type": "application/json", "Accept": "application/json"}
    token = {"Authorization": f"Bearer {site.daemon.key}", "MCP-Protocol-Version": "2025-11-25"}
    metadata = json.dumps({"client_name": "Page", "redirect_uris": [site.document]})
    with running_browser() as one:
        browser = one.launch("--no-sandbox", "--disable-gpu")
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(site.document)

        def call(
            path: str,
            method: str = "GET",
            sent: str = "",
            credentials: str = "omit",
            **headers: str,
        ) -> Any:
            given = {**(json_headers if sent else {}), **headers}
            return page.evaluate(CALL, [site.url + path, method, given, sent, credentials])

        status, _, text = call("/.well-known/oauth-protected-resource/mcp")
        assert (status, json.loads(text)["resource"]) == (200, f"{site.url}/mcp")
        assert call("/.well-known/oauth-authorization-server")[0] == 200
        status, challenge, _ = call("/mcp", "POST", body)
        assert status == 401
        assert "resource_metadata=" in challenge
        assert call("/register", "POST", metadata)[0] == 201
        assert call("/mcp", "POST", body, **token)[0] == 200
        assert call("/mcp", "GET", **token)[0] == 405, "a page sees that there is no stream"
        for path in ("/mcp", "/account", "/authorize", "/api/v1/inbox"):
            status, _, text = call(path, credentials="include")
            assert (status, text) == (0, "TypeError: Failed to fetch"), path
        assert call("/api/v1/inbox", **token)[0] == 0, "the REST API is not for pages"
        browser.close()
