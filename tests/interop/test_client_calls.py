"""Each call of other products' clients does what the client documents, or is refused with a reason.

The results are those that `make client-calls` has recorded, from which the reference pages follow.
"""

import json
import os
import smtplib
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.interop.clients import (
    CLIENTS,
    ROOT,
    CallResult,
    Client,
    ClientRun,
    Outcome,
    recorded_run,
    route_of,
    routes_of,
)
from tests.interop.like_mailpit import LikeMailpit
from tests.interop.recorder import Recorder
from tests.interop.tls_proxy import HTTPS_HOST, TlsProxy
from tests.servers.daemon import HOST, Daemon
from tests.web.compatible.mailosaur import sign_up

pytestmark = pytest.mark.end_to_end

IS_RECORDED = bool(os.environ.get("RECORD_CLIENT_CALLS"))
"""Whether the results are written in place of being compared."""

OPEN = ("mailpit", "mailhog")
"""The products that are used on a listener of their own, without a key."""


def name_of(client: Client) -> str:
    """Return the name of a client."""
    return client.name


def installed_version(client: Client) -> str:
    """Return the version of a client that is installed."""
    home = ROOT / client.home
    if client.is_python:
        folders = [str(one) for one in home.glob("python/lib/python*/site-packages")]
        (found,) = distributions(name=client.package, path=folders)
        return found.version
    package = json.loads((home / "node_modules" / client.package / "package.json").read_text())
    version: str = package["version"]
    return version


def send(port: int, address: str) -> None:
    """Send the sample mail to an address. It has no Message-ID."""
    with smtplib.SMTP(HOST, port, timeout=60) as smtp:
        head = f"Date: Sat, 21 Nov 2026 10:00:00 +0100\r\nDelivered-To: {address}\r\n"
        smtp.sendmail("shop@example.com", [address], head.encode() + sign_up(address))


def run(client: Client, recorder: Recorder, environment: Mapping[str, str]) -> ClientRun:
    """Do all calls of a client, whose requests go to the recorder."""
    if not (ROOT / client.home / "installed").exists():
        pytest.skip("the clients are not installed: run `make inbox-clients provider-sdks`")
    ended = subprocess.run(
        client.command,
        env={
            **os.environ,
            "RECORDER": recorder.url,
            "CLIENTS": str(ROOT / client.home),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    if os.environ.get("SHOW_ERRORS"):
        print(ended.stderr)
    routes = routes_of(client.product)
    calls = []
    for one in json.loads(ended.stdout.splitlines()[-1]):
        asked = recorder.calls.get(one["call"])
        route = route_of(routes, *asked[0]) if asked else ""
        calls.append(CallResult(one["call"], Outcome(one["outcome"]), route, one.get("why", "")))
    calls.sort(key=lambda one: one.call)
    return ClientRun(client.name, installed_version(client), tuple(calls))


def compare(client: Client, found: ClientRun) -> None:
    """Compare a run with the recorded one, or record it."""
    if IS_RECORDED:
        found.write()
    assert found == recorded_run(client), "the results are new: run `make client-calls`"


@pytest.fixture(scope="module")
def like_mailpit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LikeMailpit]:
    """A daemon that listens as Mailpit does."""
    daemon = LikeMailpit(tmp_path_factory.mktemp("mailpit"))
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.kill()


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.product in OPEN], ids=name_of)
def test_a_client_of_an_open_listener(like_mailpit: LikeMailpit, client: Client) -> None:
    """Each call of a client of Mailpit or MailHog has the recorded result."""
    recorder = Recorder(like_mailpit.api_port, lambda to: send(like_mailpit.mail_port, to))
    try:
        compare(client, run(client, recorder, {"MAIL_PORT": str(like_mailpit.mail_port)}))
    finally:
        recorder.close()


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.product not in OPEN], ids=name_of)
def test_a_client_with_a_key(shared_daemon: Daemon, tmp_path: Path, client: Client) -> None:
    """Each call of a client with an API key has the recorded result."""
    recorder = Recorder(shared_daemon.http_port, lambda to: send(shared_daemon.smtp_port, to))
    proxy = TlsProxy(recorder.server_port, tmp_path)
    mailbox, _, domain = shared_daemon.address().partition("@")
    environment = {
        "API_KEY": shared_daemon.key,
        "MAILBOX": mailbox,
        "DOMAIN": domain,
        "HTTPS_URL": f"https://{HTTPS_HOST}",
        "TLS_PROXY": proxy.url,
        "NODE_EXTRA_CA_CERTS": proxy.authority,
        "MAILOSAUR_SMTP_HOST": f"{mailbox}.{domain}",
    }
    try:
        compare(client, run(client, recorder, environment))
    finally:
        proxy.close()
        recorder.close()
