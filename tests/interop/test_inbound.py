"""Applications that receive mail from a provider receive it from a route.

django-anymail has the views of most providers, Rails has Action Mailbox, and wrangler runs Email
Workers. Each verifies its requests itself, and gets contents and files from the APIs here.
"""

import json
import os
import queue
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Mapping
from http.server import HTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any
from urllib.request import urlopen

import pytest

from tests.servers.daemon import Daemon, running_daemon
from tests.servers.http_stub import QuietHandler

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]
APPLICATIONS = Path(__file__).parent / "inbound_receivers"
PYTHON = ROOT / ".venv-providers"
NODE = ROOT / ".venv-inbound"
RAILS = Path("/usr/share/doc/ruby-actionmailbox")

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
PICTURE = b64decode("iVBORw0KGgo=")

MAIL = "\r\n".join(
    (
        "From: =?utf-8?q?Ana_G=C3=B3mez?= <ana@customer.example>",
        "To: Support <support@app.example>",
        "Subject: =?utf-8?q?Caf=C3=A9?=",
        "Message-ID: <m1@customer.example>",
        "Date: Sun, 29 Nov 2026 09:00:00 +0000",
        "MIME-Version: 1.0",
        'Content-Type: multipart/related; boundary="b"',
        "",
        "--b",
        'Content-Type: multipart/alternative; boundary="c"',
        "",
        "--c",
        "Content-Type: text/plain; charset=iso-8859-1",
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "Two caf=E9s, please.",
        "",
        "On Sun, Nov 29, 2026 at 8:00 AM App <support@app.example> wrote:",
        "> How many?",
        "--c",
        "Content-Type: text/html; charset=utf-8",
        "",
        '<p>Two, please. <img src="cid:dot"></p>',
        "--c--",
        "--b",
        'Content-Type: image/png; name="dot.png"',
        "Content-Disposition: inline; filename=dot.png",
        "Content-ID: <dot>",
        "Content-Transfer-Encoding: base64",
        "",
        "iVBORw0KGgo=",
        "--b--",
        "",
    )
)


class Application:
    """A program that prints its port, and then each mail that it gets."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        self._reader = Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put("")

    def line(self, start: str = "") -> str:
        """Return the next line that starts with a text, without it."""
        while True:
            line = self._lines.get(timeout=60)
            assert line, "the application has ended"
            if line.startswith(start):
                return line.removeprefix(start)

    def mail(self, start: str = "") -> dict[str, Any]:
        """Return the next mail."""
        shown: dict[str, Any] = json.loads(self.line(start))
        return shown


def started(*command: object, **environment: str) -> Application:
    """Start an application."""
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    return Application(process)


def stop(application: Application) -> None:
    """End an application."""
    application.process.terminate()
    application.process.wait(30)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may reach applications on this machine."""
    folder = tmp_path_factory.mktemp("inbound")
    with running_daemon(folder, webhooks_allow=["developer=127.0.0.0/8"]) as daemon:
        yield daemon


def receive(
    daemon: Daemon, name: str, url: str, to: str = "support@app.example", **settings: Any
) -> dict[str, Any]:
    """Create a route, send a mail over it, and wait until the application took the mail."""
    wanted = {"to": "*", "format": name, "url": url, "secret": SECRET, **settings}
    made = daemon.post("/inbound/routes", json.dumps(wanted).encode())
    assert made.status == 200, made.json
    path = f"/inbound/routes/{made.json['id']}/messages"
    sent = daemon.post(path, json.dumps({"raw": MAIL, "to": [to]}).encode())
    assert sent.status == 200, sent.json
    found = daemon.get(f"/inbound/attempts?messageId={sent.json['id']}&wait=30")
    assert found.status == 200, found.json
    return {"route": made.json, "attempts": found.json["attempts"]}


@pytest.fixture(scope="module")
def anymail(daemon: Daemon) -> Iterator[tuple[Application, int]]:
    """An application with django-anymail, and its port."""
    if not (PYTHON / "installed").exists():
        pytest.skip("django-anymail is not installed: run `make provider-sdks`")
    settings = {
        "url": f"http://127.0.0.1:{daemon.http_port}/providers",
        "password": "user:password",
        "key": daemon.key,
        "secret": SECRET,
    }
    script = APPLICATIONS / "anymail_app.py"
    application = started(PYTHON / "python" / "bin" / "python", script, json.dumps(settings))
    yield application, int(application.line())
    stop(application)


VIEWS = {
    "sendgrid": "sendgrid/inbound",
    "sendgrid-raw": "sendgrid/inbound",
    "mailgun": "mailgun/inbound",
    "mailgun-mime": "mailgun/inbound_mime",
    "postmark": "postmark/inbound",
    "brevo": "brevo/inbound",
    "resend": "resend/inbound",
    "mailtrap": "mailtrap/inbound",
    "ses": "amazon_ses/inbound",
}
"""The views of django-anymail that get the requests of a format."""

WITH_ENVELOPE = ("sendgrid", "sendgrid-raw", "mailgun", "mailgun-mime", "postmark", "ses")

WITH_REPLY = ("mailgun", "postmark", "brevo")


@pytest.mark.parametrize("name", VIEWS)
def test_anymail_receives(daemon: Daemon, anymail: tuple[Application, int], name: str) -> None:
    """A view of django-anymail accepts the requests of a format, and reads the whole mail."""
    application, port = anymail
    url = f"http://127.0.0.1:{port}/anymail/{VIEWS[name]}/"
    received = receive(daemon, name, url, user="user", password="password")
    assert received["attempts"][-1]["status"] == 200, received
    mail = application.mail()
    assert mail["from"] == "Ana Gómez <ana@customer.example>"
    assert mail["to"] == ["support@app.example"]
    assert mail["subject"] == "Café"
    assert mail["text"].startswith("Two cafés, please.")
    assert '<img src="cid:dot">' in mail["html"]
    assert mail["files"] == {"dot.png": PICTURE.hex()}
    assert mail["inline"] == ["dot"]
    if name in WITH_ENVELOPE:
        assert mail["envelope_recipient"] == "support@app.example"
    if name in WITH_REPLY:
        assert mail["stripped_text"] == "Two cafés, please."


@pytest.mark.parametrize("name", ["mailgun", "resend", "mailtrap", "postmark"])
def test_anymail_refuses_a_wrong_signature(
    daemon: Daemon, anymail: tuple[Application, int], name: str
) -> None:
    """A view refuses the mail with this fault, and takes it without."""
    application, port = anymail
    url = f"http://127.0.0.1:{port}/anymail/{VIEWS[name]}/"
    received = receive(
        daemon,
        name,
        url,
        user="user",
        password="password",
        fault="wrong-signature",
    )
    statuses = [attempt["status"] for attempt in reversed(received["attempts"])]
    assert 400 in statuses, received
    if statuses[-1] == 200:
        application.mail()


INGRESSES = {
    "rails": ("relay", "relay/inbound_emails"),
    "mailgun-mime": ("mailgun", "mailgun/inbound_emails/mime"),
    "sendgrid-raw": ("sendgrid", "sendgrid/inbound_emails"),
    "postmark": ("postmark", "postmark/inbound_emails"),
}
"""The ingresses of Action Mailbox that get the requests of a format, and their paths."""


@pytest.mark.parametrize("name", INGRESSES)
def test_rails_receives(daemon: Daemon, tmp_path: Path, name: str) -> None:
    """An ingress of Action Mailbox accepts the requests of a format, with a blind copy."""
    if not RAILS.exists():
        pytest.skip("Action Mailbox is missing: sudo apt-get install ruby-actionmailbox")
    ingress, path = INGRESSES[name]
    password = SECRET if ingress == "mailgun" else "password"
    application = started("ruby", APPLICATIONS / "rails_app.rb", ingress, password, tmp_path)
    try:
        url = f"http://127.0.0.1:{int(application.line())}/rails/action_mailbox/{path}"
        received = receive(
            daemon, name, url, "blind@app.example", user="actionmailbox", password=password
        )
        assert received["attempts"][-1]["status"] == 204, received
        mail = application.mail()
    finally:
        stop(application)
    assert mail["subject"] == "Café"
    assert mail["files"] == ["dot.png"]
    assert mail["text"].startswith("Two cafés, please.")
    assert {"support@app.example", "blind@app.example"} <= set(mail["recipients"])


@pytest.fixture(scope="module")
def node() -> Path:
    """The folder of the packages for Node.js."""
    if not (NODE / "installed").exists():
        pytest.skip("wrangler is not installed: run `make inbound-receivers`")
    return NODE / "node_modules"


def test_wrangler_receives(daemon: Daemon, node: Path, tmp_path: Path) -> None:
    """An Email Worker in wrangler gets the mail byte for byte, with its envelope."""
    settings = {
        "name": "receiver",
        "main": str(APPLICATIONS / "worker.mjs"),
        "compatibility_date": "2026-01-01",
    }
    (tmp_path / "wrangler.json").write_text(json.dumps(settings))
    application = started(
        node / ".bin" / "node",
        node / "wrangler" / "bin" / "wrangler.js",
        "dev",
        *("--config", tmp_path / "wrangler.json", "--ip", "127.0.0.1", "--port", "0", "--local"),
        *("--inspector-port", "0", "--show-interactive-dev-session=false"),
        WRANGLER_SEND_METRICS="false",
        CI="true",
        HOME=str(tmp_path),
    )
    try:
        port = int(application.line("[wrangler:info] Ready on http://").rpartition(":")[2])
        url = f"http://127.0.0.1:{port}/cdn-cgi/local/email"
        received = receive(daemon, "cloudflare", url, "blind@app.example")
        assert received["attempts"][-1]["status"] == 200, received
        mail = application.mail("mail ")
        refused = receive(daemon, "cloudflare", url, "refused@app.example")
        assert refused["attempts"][-1]["status"] == 400, refused
        assert "not here" in refused["attempts"][-1]["answer"]
    finally:
        stop(application)
    assert mail["to"] == "blind@app.example"
    assert mail["raw"] == MAIL


class Topic:
    """A web server that keeps the messages of SNS, and confirms the subscription."""

    def __init__(self) -> None:
        self.got: list[Mapping[str, Any]] = []
        got = self.got

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                """Keep a message."""
                got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/sns"


@pytest.fixture
def topic() -> Iterator[Topic]:
    """A web server that messages of SNS are sent to."""
    topic = Topic()
    thread = Thread(target=topic.server.serve_forever)
    thread.start()
    yield topic
    topic.server.shutdown()
    thread.join()
    topic.server.server_close()


def test_a_library_verifies_sns(daemon: Daemon, node: Path, topic: Topic) -> None:
    """The library of AWS for Node.js verifies both kinds of messages with our certificate."""
    wanted = {"to": "*", "format": "ses", "url": topic.url}
    made = daemon.post("/inbound/routes", json.dumps(wanted).encode()).json
    daemon.wait_until(lambda: bool(topic.got))
    confirmation = topic.got[0]
    assert confirmation["Type"] == "SubscriptionConfirmation"
    with urlopen(confirmation["SubscribeURL"], timeout=60) as answer:
        assert b"<SubscriptionArn>" in answer.read()
    body = json.dumps({"raw": MAIL, "to": ["support@app.example"]}).encode()
    daemon.post(f"/inbound/routes/{made['id']}/messages", body)
    daemon.wait_until(lambda: len(topic.got) >= 2)
    for message in topic.got:
        for given, expected in (
            (message, "valid"),
            ({**message, "Message": "{}"}, "The message signature is invalid."),
        ):
            ended = subprocess.run(
                [str(node / ".bin" / "node"), str(APPLICATIONS / "verify_sns.cjs")],
                input=json.dumps(given),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                env={**os.environ, "RECEIVERS": str(NODE)},
            )
            assert ended.stdout.strip() == expected, ended.stderr
