"""The clients of other inboxes run unchanged against mailcheck.

Each test of a client waits for a sign-up mail, and uses its code, its link and its attachment; it
searches, is refused to forward, and deletes the mail. One such test runs alone, and 30 at once.
"""

import json
import shutil
import smtplib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.tls_proxy import HTTPS_HOST, TlsProxy
from tests.servers.daemon import HOST, Daemon
from tests.web.compatible.mailosaur import PNG, sign_up

pytestmark = pytest.mark.end_to_end

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / ".venv-inbox-clients"
SCRIPTS = Path(__file__).parent / "inbox_clients"

SUITE = CLIENTS / "mailosaur-8.1.1" / "tests"
"""The tests of Mailosaur's client for Python. Their sample mails are not in its package."""

SAMPLE_TEXT = """this is a test REPLACED_DURING_TEST text

this is a link: https://mailosaur.com/ and another: https://mailosaur.com/

Your code is 654321. Your code is 5H0Y2.
"""
SAMPLE_HTML = """<div dir="ltr"><p>REPLACED_DURING_TEST html</p>
<img src="https://mailosaur.com/logo.png" alt="Logo">
<a href="https://mailosaur.com/">mailosaur</a>
<a href="https://mailosaur.com/"><img src="cid:ii_1435fadb31d523f6" alt="Inline image 1"></a>
<a href="http://invalid/">invalid</a> this is a link
<p>Your code is 123456.</p><p>Your code is G3H1Y2.</p></div>
"""
PICTURES = {"cat.png": 82_138, "dog.png": 212_080}
"""The pictures that the tests expect, with their sizes in bytes."""

RESOLVER = """
import os
import socket

resolve = socket.getaddrinfo


def resolve_here(host, *rest, **named):
    is_server = host == os.environ["MAILOSAUR_SMTP_HOST"]
    return resolve("127.0.0.1" if is_server else host, *rest, **named)


socket.getaddrinfo = resolve_here
"""
"""A conftest that replaces the MX record of the inbox domain."""

LEFT_OUT = (
    "DevicesTest",
    "PreviewsTest",
    # A list does not count the pictures that the HTML shows.
    "EmailsTest and test_list and not received_after",
    # Searches look into the text of a mail that also has HTML.
    "test_search_by_body",
    # There are no text messages.
    "test_account_limits",
)
"""The tests of what mailcheck does not offer, or offers in another way."""

PYTHON, NODE = str(CLIENTS / "python" / "bin" / "python"), "node"


class Client(NamedTuple):
    """A client: the program that runs its script, and the script."""

    program: str
    script: str


ALL = {
    "mailosaur-python": Client(PYTHON, "mailosaur_client.py"),
    "mailosaur-node": Client(NODE, "mailosaur_client.mjs"),
    "mailslurp-python": Client(PYTHON, "mailslurp_python.py"),
    "mailslurp-node": Client(NODE, "mailslurp_client.mjs"),
}


@pytest.fixture(scope="module")
def proxy(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsProxy]:
    """A proxy for clients that speak only HTTPS on port 443."""
    proxy = TlsProxy(shared_daemon.http_port, tmp_path_factory.mktemp("proxy"))
    yield proxy
    proxy.close()


def environment(daemon: Daemon, proxy: TlsProxy) -> dict[str, str]:
    """Return the environment of a client."""
    mailbox, _, domain = daemon.address().partition("@")
    return {
        **daemon.client_environment,
        "CLIENTS": str(CLIENTS),
        "MAILCHECK_HTTPS_URL": f"https://{HTTPS_HOST}",
        "HTTPS_PROXY": proxy.url,
        "NODE_EXTRA_CA_CERTS": proxy.authority,
        "MAILOSAUR_SMTP_HOST": f"{mailbox}.{domain}",
        "MAILOSAUR_SMTP_PORT": str(daemon.smtp_port),
        "MAILOSAUR_BASE_URL": f"http://{HOST}:{daemon.http_port}/mailosaur/",
        "MAILOSAUR_API_KEY": daemon.key,
    }


def require_clients() -> None:
    """Skip the test if the clients are not installed."""
    if not (CLIENTS / "installed").exists():
        pytest.skip("the clients are not installed: run `make inbox-clients`")


def run(client: Client, daemon: Daemon, proxy: TlsProxy, count: int) -> list[dict[str, Any]]:
    """Run tests of a client at once, and send their mails when all of them wait."""
    require_clients()
    started = subprocess.Popen(
        [client.program, str(SCRIPTS / client.script), str(count)],
        env=environment(daemon, proxy),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with started:
        assert started.stdout is not None
        assert started.stderr is not None
        addresses = [started.stdout.readline().strip() for _ in range(count)]
        time.sleep(1.0)
        with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as smtp:
            for address in filter(None, addresses):
                smtp.sendmail("shop@example.com", [address], sign_up(address))
        printed, failed = started.stdout.read(), started.stderr.read()
    assert started.returncode == 0, failed
    results: list[dict[str, Any]] = json.loads(printed)
    return results


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("name", ALL)
def test_a_client_runs_unchanged(
    shared_daemon: Daemon, proxy: TlsProxy, name: str, count: int
) -> None:
    """A client waits for a mail, uses all of it, and deletes it, also in 30 tests at once."""
    results = run(ALL[name], shared_daemon, proxy, count)
    assert len(results) == count
    for result in results:
        assert 0.5 < result.pop("waited") < 20
        refused = result.pop("refused")
        assert "mailcheck sends no captured mail to the outside" in refused
        assert result == {
            "code": "482913",
            "link": "https://shop.example/verify?token=abc",
            "file": "one,two",
            "found": ["Welcome"],
            "left": 0,
        }


def test_the_tests_of_mailosaurs_own_client(
    shared_daemon: Daemon, proxy: TlsProxy, tmp_path: Path
) -> None:
    """The tests of Mailosaur's client for Python pass, except those of what is not offered."""
    require_clients()
    shutil.copytree(SUITE, tmp_path / "tests")
    resources = tmp_path / "tests" / "resources"
    resources.mkdir()
    (resources / "testEmail.html").write_text(SAMPLE_HTML)
    (resources / "testEmail.txt").write_text(SAMPLE_TEXT)
    for name, size in PICTURES.items():
        (resources / name).write_bytes(PNG.ljust(size, b"\0"))
    (tmp_path / "conftest.py").write_text(RESOLVER)
    with smtplib.SMTP(HOST, shared_daemon.smtp_port, timeout=60) as smtp:
        other = shared_daemon.address("zzzz9999-ann")
        smtp.sendmail("shop@example.com", [other], sign_up(other))
    wanted = " and ".join(f"not ({one})" for one in LEFT_OUT)
    command = [PYTHON, "-m", "pytest", "-q", "tests", "-p", "no:cacheprovider", "-k", wanted]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment(shared_daemon, proxy), "MAILOSAUR_SERVER": "abcd1234"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "25 passed, 11 skipped" in ended.stdout
