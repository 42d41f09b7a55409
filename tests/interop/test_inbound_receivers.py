"""Applications that receive mail from a provider receive it from a route.

django-anymail has the views of most providers, Rails has Action Mailbox, and wrangler runs Email
Workers. Each verifies its requests itself, and gets contents and files from the APIs here.
"""

import json
import os
import queue
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import IO, Any
from urllib.request import urlopen

import pytest
from standardwebhooks import Webhook

from tests.servers.daemon import Daemon, running_daemon
from tests.servers.http_stub import Listener, listening

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

    def close(self) -> None:
        """Close the output of a program that has ended."""
        self._reader.join(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

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
    application.close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may reach applications on this machine."""
    folder = tmp_path_factory.mktemp("inbound")
    with running_daemon(folder, webhooks_allow=["developer=127.0.0.0/8"]) as daemon:
        yield daemon


def receive(
    daemon: Daemon, name: str, url: str, to: str = "support@app.example", **settings: Any
) -> list[dict[str, Any]]:
    """Send a mail over a new route, and return the attempts until the application took the mail."""
    wanted = {"to": "*", "format": name, "url": url, "secret": SECRET, "speed": 1000, **settings}
    made = daemon.post("/inbound/routes", json.dumps(wanted).encode())
    assert made.status == 200, made.json
    path = f"/inbound/routes/{made.json['id']}/messages"
    sent = daemon.post(path, letter(to))
    assert sent.status == 200, sent.json
    found = daemon.get("/inbound/attempts", mail=sent.json["id"], wait=30)
    assert found.status == 200, found.json
    daemon.request("DELETE", f"/inbound/routes/{made.json['id']}")
    return list(reversed(found.json["attempts"]))


def letter(to: str) -> bytes:
    """Return the request for the mail."""
    return json.dumps({"raw": b64encode(MAIL.encode()).decode(), "to": [to]}).encode()


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
    assert received[-1]["status"] == 200, received
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
    """A view refuses the mail with this fault."""
    _, port = anymail
    url = f"http://127.0.0.1:{port}/anymail/{VIEWS[name]}/"
    received = receive(
        daemon,
        name,
        url,
        user="user",
        password="password",
        fault="wrong-signature",
    )
    assert [attempt["status"] for attempt in received] == [400], received


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
        assert received[-1]["status"] == 204, received
        mail = application.mail()
    finally:
        stop(application)
    assert mail["subject"] == "Café"
    assert mail["files"] == ["dot.png"]
    assert mail["text"].startswith("Two cafés, please.")
    # Rails 6 does not read OriginalRecipient.
    blind = set() if name == "postmark" else {"blind@app.example"}
    assert {"support@app.example", *blind} <= set(mail["recipients"])


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
        assert received[-1]["status"] == 200, received
        mail = application.mail("mail ")
        refused = receive(daemon, "cloudflare", url, "refused@app.example")
        assert refused[-1]["status"] == 400, refused
        assert "not here" in refused[-1]["answer"]
    finally:
        stop(application)
    assert mail["to"] == "blind@app.example"
    assert mail["raw"] == MAIL


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A web server that mails are sent to."""
    with listening() as listener:
        yield listener


def sent_to(daemon: Daemon, listener: Listener, name: str) -> dict[str, Any]:
    """Create a route, and send a mail without files over it. Return the route."""
    wanted = {"to": "*", "format": name, "url": listener.url}
    made: dict[str, Any] = daemon.post("/inbound/routes", json.dumps(wanted).encode()).json
    mail = {"from": "ana@customer.example", "subject": "Café", "text": "Two, please."}
    sent = daemon.post(f"/inbound/routes/{made['id']}/messages", json.dumps(mail).encode())
    assert sent.status == 200, sent.json
    daemon.wait_until(lambda: bool(listener.got))
    return made


def test_the_library_of_sendgrid_verifies(daemon: Daemon, listener: Listener) -> None:
    """The signature of Inbound Parse is one that SendGrid's library for Python accepts."""
    if not (PYTHON / "installed").exists():
        pytest.skip("SendGrid's library is not installed: run `make provider-sdks`")
    route = sent_to(daemon, listener, "sendgrid")
    headers, body = listener.got[0]["headers"], listener.got[0]["body"]
    prefix = "x-twilio-email-event-webhook"
    given = {
        "key": route["verificationKey"],
        "signature": headers[f"{prefix}-signature"],
        "timestamp": headers[f"{prefix}-timestamp"],
        "body": body,
    }
    python, script = PYTHON / "python" / "bin" / "python", APPLICATIONS / "verify_sendgrid.py"
    for sent, expected in ((given, "True"), ({**given, "body": f"{body} "}, "False")):
        ended = subprocess.run(
            [str(python), str(script)],
            input=json.dumps(sent),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.stdout.strip() == expected, ended.stderr


def test_a_library_of_standard_webhooks_verifies(daemon: Daemon, listener: Listener) -> None:
    """Our own event is signed as Standard Webhooks describe it."""
    route = sent_to(daemon, listener, "mailcheck")
    headers, body = listener.got[0]["headers"], listener.got[0]["body"]
    event = Webhook(route["secret"]).verify(body, headers)
    assert event["type"] == "mail.received"
    assert event["data"]["text"].strip() == "Two, please."


def test_a_library_verifies_sns(daemon: Daemon, node: Path, listener: Listener) -> None:
    """The library of AWS for Node.js verifies both kinds of messages with our certificate."""
    wanted = {"to": "*", "format": "ses", "url": listener.url}
    made = daemon.post("/inbound/routes", json.dumps(wanted).encode()).json
    daemon.wait_until(lambda: bool(listener.got))
    confirmation = json.loads(listener.got[0]["body"])
    assert confirmation["Type"] == "SubscriptionConfirmation"
    with urlopen(confirmation["SubscribeURL"], timeout=60) as answer:
        assert b"<SubscriptionArn>" in answer.read()
    daemon.post(f"/inbound/routes/{made['id']}/messages", letter("support@app.example"))
    daemon.wait_until(lambda: len(listener.got) >= 2)
    for message in [json.loads(one["body"]) for one in listener.got]:
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
