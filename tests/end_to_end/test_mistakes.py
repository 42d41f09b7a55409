"""Natural mistakes: each answer names what is wrong and the next step.

The tables are what people tried in their first hour, with words that the answer must hold.
"""

import imaplib
import json
import os
import poplib
import shlex
import smtplib
import socket
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from mailcheck.config.reading import ConfigError, load_config
from tests.cli.command_line import run_command
from tests.servers.daemon import HOST, Daemon
from tests.table import rows

pytestmark = pytest.mark.end_to_end

NO_ID = "01a1fc41-0219-76dd-ac7e-95beebac7c40"
JSON = "application/json"


@pytest.fixture
def daemon(empty_inbox: Daemon) -> Daemon:
    """The daemon in which the mistakes are made."""
    return empty_inbox


@pytest.fixture
def shell(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the daemon from an empty folder, as a new person does; return its configuration."""
    for name in [one for one in os.environ if one.startswith("MAILCHECK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mailcheck.toml"
    config.write_text(
        f'[web]\nlisten = "{HOST}:{daemon.http_port}"\n'
        f'[smtp]\nlisten = "{HOST}:{daemon.smtp_port}"\n'
        f'[storage]\nstate_directory = "{daemon.folder}/var"\n'
        f'url = "sqlite:{daemon.folder}/var/mailcheck.db"\n'
    )
    return config


def require(answer: str, words: str) -> None:
    """Check that an answer holds all of the words, which bars separate."""
    missing = [word for word in words.split(" | ") if word.lower() not in answer.lower()]
    assert not missing, f"{missing} not in: {answer}"


@rows(
    ("tests", "did you mean test?"),
    ("messages", "choose from | inbox"),
    ("wait --timeout 600000", "seconds | 86,400 | 600000 ms are 600"),
    ("inbox shwo", "did you mean `inbox show`?"),
    ("reports", "name a command | list"),
    ("webhook", "name a command | add, list"),
    ("webhook test x", "no such webhook | the id is wrong"),
    ("webhook add http://localhost:9000/mail", "127.0.0.1 | [webhooks] allow"),
    ("webhook add localhost:9000/mail", "url | http"),
    ("watch add", "name the targets"),
    ("watch show nowhere.example", "nowhere.example"),
    ("dmarc plan", "name one domain"),
    ("key", "name a command | issue"),
    ("key issue developer --expires 30", "12h, 30d or 8w"),
    ("key issue developer --scope inbox:raed", "did you mean inbox:read?"),
    ("account add developer", "'developer' already exists"),
    ("account add ''", "the account name is empty"),
    ("account delete nobody --yes", "no account named 'nobody'"),
    ("account set-password developer --genrate", "did you mean --generate?"),
    ("project members developer", "'developer' is a person"),
    ("project invite developer ann", "'developer' is a person"),
    ("project add shop", "--owner"),
    ("client add Agent", "--redirect-uri"),
    ("store restore nothing.db", "nothing.db"),
    ("serve --like mailhog", "mailpit"),
    ("config", "name a command | check"),
    ("config chekc", "did you mean check?"),
    ("completion", "bash | zsh"),
)
def test_commands(shell: Path, line: str, words: str) -> None:
    """A mistake on the command line ends with a status other than 0, and names the next step."""
    done = run_command("--config", str(shell), *shlex.split(line))
    require(done.output + done.errors, words)
    assert done.status != 0, done


@rows(
    ("inbox list --tag nowhere", "no mail matches"),
    ("reports list", "no reports yet | dmarc plan"),
    ("watch list", "nothing is watched yet: mailcheck watch add"),
    ("webhook list", "no webhooks yet: mailcheck webhook add"),
    ("client list", "no programs yet: mailcheck client add"),
    ("account add carol", "a person signs in at | password | next: mailcheck key issue carol"),
)
def test_first_words(shell: Path, line: str, words: str) -> None:
    """What is no mistake says what comes next."""
    done = run_command("--config", str(shell), *shlex.split(line))
    require(done.output + done.errors, words)
    assert done.status == 0, done


DISCOVERY_AS_ISSUER = """[web]
public_url = "https://mail.example"
[oidc]
client_id = "mailcheck"
issuer = "https://login.example/.well-known/openid-configuration"
"""


@rows(
    ("[web]\nlistn = 'x'", "line 2 | [web] has no option listn | did you mean listen?"),
    ("[web]\nport = 8080", "did you mean listen?"),
    ("listen = '127.0.0.1:8080'", "listen is an option of | [web]"),
    ("[web]\nlisten = 8080", "127.0.0.1:8080"),
    ("[storage]\nurl = 'mysql://x'", "sqlite: | postgresql:"),
    ("[accounts]\nregistration = 'yes'", "open, invite, closed"),
    (DISCOVERY_AS_ISSUER, "write the issuer: https://login.example"),
    ("[oidc]\nissuer='https://login.example'\nclient_id='a'", "requires [web] public_url"),
    ("[accounts]\npasswords=false", "[oidc] issuer"),
)
def test_configuration(tmp_path: Path, text: str, words: str) -> None:
    """A mistake in the file is named with its line and what to write."""
    path = tmp_path / "mistake.toml"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError) as refused:
        load_config(path, {})
    require(str(refused.value), words)


@rows(
    ("MAILCHECK_WEB_LISTN", "127.0.0.1:80", "did you mean MAILCHECK_WEB_LISTEN?"),
    ("MAILCHECK_WEB_LISTEN", "8080", "MAILCHECK_WEB_LISTEN | 127.0.0.1:8080"),
    ("MAILCHECK_WEB_PORT", "8080", "did you mean MAILCHECK_WEB_LISTEN?"),
    ("MAILCHECK_INBOX_DOMAINS", "a.example", "did you mean MAILCHECK_INBOX_DOMAIN?"),
)
def test_environment(variable: str, value: str, words: str) -> None:
    """A mistake in the environment is named with its variable and what to write."""
    with pytest.raises(ConfigError) as refused:
        load_config(None, {variable: value})
    require(str(refused.value), words)


XML = {"Content-Type": "text/xml"}
BODY = b'{"url": "https://hooks.example/mail"}'


@rows(
    ("GET", "/inbox/message", {}, b"", 404, "did you mean /api/v1/inbox/messages?"),
    ("GET", "/inbox/messages?tga=x", {}, b"", 400, "'tga' is not a parameter | did you mean tag?"),
    ("GET", "/inbox/wait?timeout=600000", {}, b"", 400, "timeout | seconds | 600000"),
    ("GET", "/inbox/wait?timeout=1&since=yesterday", {}, b"", 400, "since | yesterday"),
    ("GET", "/inbox/wait?after=nope&timeout=1", {}, b"", 400, "after | cursor"),
    ("GET", "/inbox/messages?limit=0", {}, b"", 400, "limit | 1 to | 0"),
    ("GET", f"/inbox/messages/{NO_ID}", {}, b"", 404, "no such message"),
    ("GET", "/inbox/messages/latest", {}, b"", 404, "no such message"),
    ("DELETE", "/inbox/messages?to=", {}, b"", 400, "to | nothing was deleted"),
    ("DELETE", "/inbox/messages?tga=x", {}, b"", 400, "tga | did you mean tag?"),
    ("POST", "/inbox/messages", {}, b"", 405, "supports | DELETE, GET"),
    (
        "POST",
        "/inbox/webhooks",
        {"Content-Type": "text/xml"},
        BODY,
        415,
        "application/json | text/xml",
    ),
    ("POST", "/inbox/webhooks", {}, b"{url: 1}", 400, "JSON"),
    ("POST", "/inbox/webhooks", {}, b'{"adress": "https://a.example"}', 400, "adress"),
    ("POST", "/inbox/webhooks", {}, b'{"url": "http://localhost:1/"}', 400, "[webhooks] allow"),
    ("GET", "/inbox", {"X-API-Key": "mck_wrong"}, b"", 401, "key"),
    ("GET", "/inbox", {"X-API-Key": "", "Authorization": "mck_x"}, b"", 401, "Bearer | X-API-Key"),
    (
        "GET",
        "/tools/mx-check?domain=https://example.com/",
        {},
        b"",
        400,
        "only the domain | example.com",
    ),
    ("GET", "/tools/mx-check?domain=ann@example.com", {}, b"", 400, "example.com"),
    ("GET", "/tools/mx-check?domain=localhost", {}, b"", 400, "localhost"),
    ("GET", "/tools/mx-check?name=example.com", {}, b"", 400, "name | domain"),
    ("GET", "/tools/blacklist-check?query=192.0.2.0/24", {}, b"", 400, "network | one address"),
    ("GET", "/tools/blacklist-check?query=10.0.0.1", {}, b"", 400, "10.0.0.1 | private"),
    (
        "GET",
        "/tools/blocklist-check?query=192.0.2.1",
        {},
        b"",
        404,
        "/api/v1/tools/blacklist-check",
    ),
    ("GET", "/test/aaaaaaaaaaaaa", {}, b"", 404, "test"),
)
def test_rest(
    daemon: Daemon,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    status: int,
    words: str,
) -> None:
    """A mistake in a request is told with the value, and what to send instead."""
    answer = daemon.ask(method, path, headers, body or None).answer()
    require(answer.body.decode(), words)
    assert answer.status == status


@rows(
    ("/openapi.json", 404, "did you mean /api/v1/openapi.json?"),
    ("/api/inbox/messages", 404, "did you mean /api/v1/inbox/messages?"),
    ("/inbox/messages", 404, "did you mean /api/v1/inbox/messages?"),
    ("/share/aaaaaaaaaaaaaaaaaaaaaaaaaa", 404, "deleted"),
    ("/docs/nothing.html", 404, "documentation"),
    ("/clients/mailcheck.rb", 404, "there are | mailcheck_client.py"),
    ("/sign-up?invitation=aaaaaaaaaaaaaaaa", 200, "Create an account"),
    ("/sign-in?next=/join%3Finvitation%3Daaaaaaaaaaaaaaaa", 200, "has expired: ask for a new one"),
)
def test_addresses(daemon: Daemon, path: str, status: int, words: str) -> None:
    """An address that leads nowhere says where to go."""
    with closing(HTTPConnection(HOST, daemon.http_port, timeout=30)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        require(answer.read().decode(), words)
    assert answer.status == status


@rows(
    ("mail", ["RCPT TO:<ann@example.com>"], "550 | not a domain of this server | port | API key"),
    ("mail", ["RCPT TO:<nobody@mailcheck.example>"], "550 | no inbox has the address | API key"),
    ("mail", ["RCPT TO:ann@mailcheck.example"], "501 | <"),
    ("mail", ["AUTH PLAIN AGEAYg=="], "port | submission"),
    ("submission", [], "530 | authenticat"),
    ("submission", ["AUTH PLAIN AGRldmVsb3BlcgB3cm9uZyBob3JzZQ=="], "535 | API key"),
)
def test_smtp(daemon: Daemon, port: str, lines: list[str], words: str) -> None:
    """A mistake of a program that sends mail."""
    number = daemon.smtp_port if port == "mail" else daemon.submission_port
    with smtplib.SMTP(HOST, number, local_hostname="app.example") as client:
        client.ehlo()
        answers = [client.docmd(lines[0])] if lines and lines[0].startswith("AUTH") else []
        if not answers:
            answers = [client.docmd("MAIL FROM:<app@example.com>")]
            answers += [client.docmd(line) for line in lines]
    require(" ".join(f"{code} {text.decode()}" for code, text in answers), words)


def test_a_web_request_to_the_mail_port(daemon: Daemon) -> None:
    """A browser at the port for mail is told that it is not a web server."""
    with closing(socket.create_connection((HOST, daemon.smtp_port), 10)) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while data := one.recv(1_000):
            received += data
    require(received.decode(), "not a web server")


def test_mail_programs(daemon: Daemon) -> None:
    """A wrong password of IMAP and POP3 names what the password is."""
    ports = [int(str(daemon.options[name])[-5:]) for name in ("imap_listen", "pop3_listen")]
    imap = imaplib.IMAP4(HOST, ports[0])
    with pytest.raises(imaplib.IMAP4.error) as refused:
        imap.login("developer", "wrong horse")
    imap.shutdown()
    require(str(refused.value), "API key")
    pop3 = poplib.POP3(HOST, ports[1])
    pop3.user("developer")
    with pytest.raises(poplib.error_proto) as told:
        pop3.pass_("wrong horse")
    pop3.close()
    require(str(told.value), "API key")


def call(daemon: Daemon, name: str, arguments: Mapping[str, Any], key: str) -> str:
    """Call a tool over MCP, and return the answer."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    connection = HTTPConnection(HOST, daemon.http_port, timeout=30)
    headers = {"Content-Type": JSON, "Accept": f"{JSON}, text/event-stream"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    connection.request("POST", "/mcp", json.dumps(message).encode(), headers)
    answer = connection.getresponse().read().decode()
    connection.close()
    return answer


@rows(
    ("wait_for_mail", {}, "unknown tool | wait_for_message"),
    ("wait_for_message", {"tga": "x"}, "tga | tag"),
    ("wait_for_message", {"timeout": 600_000}, "timeout | seconds"),
    ("get_message", {"id": "nope"}, "no such message"),
    ("get_message", {}, "id is missing"),
    ("check_domain", {"domain": "https://example.com/"}, "only the domain"),
    ("check_blocklists", {"query": "192.0.2.0/24"}, "one address"),
)
def test_mcp(daemon: Daemon, name: str, arguments: Mapping[str, Any], words: str) -> None:
    """A mistake of an agent."""
    require(call(daemon, name, arguments, daemon.key), words)


def test_a_limited_key(daemon: Daemon, shell: Path) -> None:
    """A key that may only read is told the scope that a deletion needs, over MCP and REST."""
    issued = run_command(
        "--config", str(shell), "key", "issue", "developer", "--scope", "inbox:read"
    )
    key = issued.output.strip()
    require(call(daemon, "delete_message", {"id": NO_ID}, key), "inbox:write")
    answer = daemon.request("DELETE", "/inbox/messages", {"X-API-Key": key})
    require(answer.body.decode(), "inbox:write")
    require(call(daemon, "new_address", {}, ""), "API key")


def test_a_misspelt_tag(daemon: Daemon) -> None:
    """A wait without a match names the mail that came with another tag."""
    cursor = daemon.cursor()
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        client.sendmail("a@example.com", [daemon.address("signup")], "Subject: x\r\n\r\nx")
    misspelt = daemon.ask("GET", f"/inbox/wait?tag=singup&timeout=1&after={cursor}")
    late = daemon.ask("GET", "/inbox/wait?tag=signup&timeout=1")
    require(misspelt.answer().body.decode(), "signup")
    require(late.answer().body.decode(), "after")
