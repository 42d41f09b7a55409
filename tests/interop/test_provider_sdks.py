"""The SDKs of mail providers send to mailcheck as to their provider.

Each sends a plain mail, an HTML mail with an attachment and an inline image, a batch, an invalid
mail, and two that meet a fault. A wait gives the mail that was sent, and the SDK raises its own
errors.
"""

import json
import os
import smtplib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.servers.daemon import Daemon, running_daemon
from tests.servers.http_stub import Listener, listening

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]
SDKS = ROOT / ".venv-providers"
SCRIPTS = Path(__file__).parent / "provider_sdks"
FILE = b"one\r\ntwo\0"


class Errors(NamedTuple):
    """The names of an SDK's errors for an invalid mail, a rate limit, and an outage."""

    invalid: str
    busy: str
    down: str


NODE = {
    "resend": Errors("validation_error", "rate_limit_exceeded", "application_error"),
    "postmark": Errors("InvalidEmailRequestError", "RateLimitExceededError", "InternalServerError"),
    "sendgrid": Errors("Error", "Error", "Error"),
    "mailgun": Errors("Error", "Error", "Error"),
    "ses": Errors(
        "BadRequestException", "TooManyRequestsException", "InternalServiceErrorException"
    ),
    "brevo": Errors("BadRequestError", "BrevoError", "BrevoError"),
}

PYTHON = {
    "resend": Errors("ValidationError", "RateLimitError", "ApplicationError"),
    "sendgrid": Errors("BadRequestsError", "TooManyRequestsError", "InternalServerError"),
    "ses": Errors("ClientError", "ClientError", "ClientError"),
    "sesv2": NODE["ses"],
    **dict.fromkeys(
        (
            *("anymail-resend", "anymail-postmark", "anymail-sendgrid", "anymail-mailgun"),
            *("anymail-brevo", "anymail-mailtrap"),
        ),
        Errors(*["AnymailRequestsAPIError"] * 3),
    ),
    "anymail-amazon_ses": Errors(*["AnymailAPIError"] * 3),
}

WITHOUT_INLINE = {"node-brevo", "anymail-brevo"}
"""Brevo's API has no inline images."""


def run(daemon: Daemon, command: list[str]) -> dict[str, Any]:
    """Run a script with an SDK, and return what it printed."""
    if not (SDKS / "installed").exists():
        pytest.skip("the SDKs are not installed: run `make provider-sdks`")
    environment = {
        **os.environ,
        "MAILCHECK_URL": f"http://127.0.0.1:{daemon.http_port}",
        "MAILCHECK_API_KEY": daemon.key,
        "SDKS": str(SDKS),
    }
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    printed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return printed


def wait(daemon: Daemon, to: str) -> Mapping[str, Any]:
    """Return the message to an address."""
    answer = daemon.get(f"/inbox/wait?to={to}@customer.example&timeout=10&after=c0")
    assert answer.status == 200, (to, answer.json)
    found: Mapping[str, Any] = answer.json
    return found


def check(daemon: Daemon, sdk: str, printed: Mapping[str, Any], errors: Errors) -> None:
    """Check what an SDK has printed, and the mail that has arrived."""
    for kind in ("plain", "html", "batch"):
        assert printed[kind] == "sent"
    for kind, expected in errors._asdict().items():
        assert printed[kind]["name"] == expected, printed[kind]
    assert "x@-bad.example" in printed["invalid"]["said"]
    statuses = [printed[kind]["status"] for kind in ("invalid", "busy", "down")]
    assert statuses in ([400, 429, 500], [422, 429, 500], [400, 400, 500])
    for name in ("plain", "first", "second"):
        message = wait(daemon, f"{name}.{sdk}")
        assert message["from"] == {"address": "shop@example.com", "name": "Shop"}
        assert "Your code is 482913" in message["text"]
        assert message["codes"] == ["482913"]
    message = wait(daemon, f"html.{sdk}")
    assert "<b>482913</b>" in message["html"]
    assert [one["address"] for one in message["addresses"]["replyTo"]] == ["help@example.com"]
    files = {one["filename"]: one for one in message["attachments"]}
    path = f"/inbox/messages/{message['id']}/attachments/{files['a.bin']['id']}"
    assert daemon.get(path).body == FILE
    if sdk not in WITHOUT_INLINE:
        (inline,) = [one["contentId"] for one in files.values() if one["contentId"]]
        assert f"cid:{inline}" in message["html"]


@pytest.mark.parametrize("sdk", NODE)
def test_a_node_sdk_sends_to_mailcheck(shared_daemon: Daemon, sdk: str) -> None:
    """An SDK for Node.js sends all its mail, and raises its own errors."""
    printed = run(shared_daemon, ["node", str(SCRIPTS / "send.mjs"), sdk])
    check(shared_daemon, f"node-{sdk}", printed, NODE[sdk])


@pytest.mark.parametrize("sdk", PYTHON)
def test_a_python_sdk_sends_to_mailcheck(shared_daemon: Daemon, sdk: str) -> None:
    """An SDK for Python, or a backend of django-anymail, does so too."""
    python = SDKS / "python" / "bin" / "python"
    printed = run(shared_daemon, [str(python), str(SCRIPTS / "send.py"), sdk])
    check(shared_daemon, sdk, printed, PYTHON[sdk])


VERIFIERS = {
    "svix": ("resend", ["email.delivered", "email.bounced"]),
    "sendgrid": ("sendgrid", ["delivered", "bounce"]),
    "anymail-resend": ("resend", ["delivered", "bounced"]),
    "anymail-mailgun": ("mailgun", ["delivered", "bounced"]),
    "anymail-postmark": ("postmark", ["delivered", "bounced"]),
    "anymail-brevo": ("brevo", ["delivered", "bounced"]),
    "anymail-mailtrap": ("mailtrap", ["delivered", "bounced"]),
    "mailtrap": ("mailtrap", ["delivery", "bounce"]),
    "anymail-amazon_ses": ("ses", ["delivered", "bounced"]),
}
"""The libraries that verify events: the provider, and the names of two events."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A web server that events are sent to."""
    with listening() as listener:
        yield listener


@pytest.fixture(scope="module")
def telling_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may send events to this machine."""
    folder = tmp_path_factory.mktemp("events")
    with running_daemon(folder, webhooks_allow=["developer=127.0.0.0/8"]) as daemon:
        yield daemon


@pytest.mark.parametrize("library", VERIFIERS)
def test_a_library_verifies_events(
    telling_daemon: Daemon, listener: Listener, library: str
) -> None:
    """Events of a delivered and of a bounced mail are verified by the provider's library."""
    provider, names = VERIFIERS[library]
    wanted = {"url": listener.url, "provider": provider}
    made = telling_daemon.post("/inbox/webhooks", json.dumps(wanted).encode()).json
    with smtplib.SMTP("127.0.0.1", telling_daemon.smtp_port, timeout=60) as smtp:
        for tag in ("", "event.bounce"):
            mail = "From: shop@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nhi\r\n"
            smtp.sendmail("shop@example.com", [telling_daemon.address(tag)], mail)
    telling_daemon.wait_until(lambda: len(listener.got) >= 2)
    telling_daemon.request("DELETE", f"/inbox/webhooks/{made['id']}")
    for event, name in zip(listener.got, names, strict=True):
        given = json.dumps({**event, "key": made["verificationKey"] or made["secret"]})
        ended = subprocess.run(
            [str(SDKS / "python" / "bin" / "python"), str(SCRIPTS / "verify.py"), library],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        shown, recipient = json.loads(ended.stdout)
        assert shown == name
        assert recipient.endswith("@mailcheck.example")
