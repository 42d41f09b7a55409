"""The client libraries as their users get them: downloaded from the daemon, and used."""

import importlib.util
import json
import shutil
import smtplib
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

import pytest

from tests.servers.daemon import HOST, Daemon, running_daemon

pytestmark = pytest.mark.end_to_end

SIGN_UPS = 200


def download(daemon: Daemon, name: str, folder: Path) -> Path:
    """Fetch a client library from the daemon."""
    path = folder / name
    with urlopen(f"http://{HOST}:{daemon.http_port}/clients/{name}", timeout=10) as response:
        path.write_bytes(response.read())
    return path


@pytest.fixture
def library(daemon: Daemon, tmp_path: Path) -> ModuleType:
    """The Python client, imported from the file that the daemon served."""
    path = download(daemon, "mailcheck_client.py", tmp_path)
    spec = importlib.util.spec_from_file_location("downloaded_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def connect(library: ModuleType, daemon: Daemon) -> Any:
    """Give a client of the daemon."""
    return library.Mailcheck(f"http://{HOST}:{daemon.http_port}", daemon.key)


def sign_up(daemon: Daemon, email: str, code: str) -> None:
    """Do what a program under test does."""
    body = (
        f"From: Shop <shop@example.com>\r\nTo: {email}\r\nSubject: Confirm your address\r\n\r\n"
        f"Your verification code is {code}.\r\n\r\n"
        f"Or confirm here: https://shop.example.com/confirm?code={code}\r\n"
    )
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as smtp:
        smtp.sendmail("shop@example.com", [email], body)


def test_many_sign_ups_at_once_each_get_their_own_mail(daemon: Daemon, library: ModuleType) -> None:
    """200 tests at the same time, each with its own tag: each reads its own code and link."""
    inbox = connect(library, daemon)

    def one_test(number: int) -> None:
        code = f"{number * 4_561 + 100_003:06d}"[-6:]
        address = inbox.new_address("signup")
        sending = threading.Thread(target=sign_up, args=(daemon, address.email, code))
        sending.start()
        mail = address.wait(timeout=50)
        sending.join()
        assert mail.code == code
        assert mail.link == f"https://shop.example.com/confirm?code={code}"

    with ThreadPoolExecutor(SIGN_UPS) as pool:
        assert list(pool.map(one_test, range(SIGN_UPS))) == [None] * SIGN_UPS


def test_a_wait_in_vain_says_what_did_arrive(daemon: Daemon, library: ModuleType) -> None:
    """The error of the client names the mail that came to another tag."""
    inbox = connect(library, daemon)
    address, other = inbox.new_address(), inbox.address("other")
    sign_up(daemon, other.email, "482913")
    with pytest.raises(library.NoMail, match=r"Confirm your address.*its tag is 'other'"):
        address.wait(timeout=1)


def test_a_client_waits_as_long_as_the_service_asks(tmp_path: Path) -> None:
    """Over its limit the client raises the service's own sentence where it may not wait longer."""
    with running_daemon(tmp_path, limits_requests_per_minute=2) as daemon:
        path = download(daemon, "mailcheck_client.py", tmp_path)
        program = (
            "from mailcheck_client import Mailcheck, MailcheckError\n"
            f"inbox = Mailcheck('http://{HOST}:{daemon.http_port}', {daemon.key!r})\n"
            "import time\n"
            "try:\n"
            "    for _ in range(6):\n"
            "        inbox.request('GET', '/inbox', deadline=time.monotonic() + 0.01)\n"
            "except MailcheckError as error:\n"
            "    print(error.status, error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=path.parent, capture_output=True, text=True
        )
    assert done.stdout.startswith("429 the limit of 2 requests per minute is reached")


def test_the_pytest_fixture_gives_each_test_an_address(daemon: Daemon, tmp_path: Path) -> None:
    """A test-suite that takes the fixture passes, with an address of its own in every test."""
    download(daemon, "mailcheck_client.py", tmp_path)
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['mailcheck_client']\n")
    (tmp_path / "test_it.py").write_text(
        "import smtplib, pytest\n"
        "seen = set()\n"
        "@pytest.mark.parametrize('code', ['111222', '333444'])\n"
        "def test_sign_up(mail_address, code):\n"
        "    assert mail_address.email not in seen\n"
        "    seen.add(mail_address.email)\n"
        f"    with smtplib.SMTP('{HOST}', {daemon.smtp_port}) as smtp:\n"
        "        smtp.sendmail('a@example.com', [mail_address.email],\n"
        "                      f'Subject: x\\r\\n\\r\\nYour code is {code}\\r\\n')\n"
        "    assert mail_address.wait().code == code\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={
            **daemon.environment,
            "MAILCHECK_URL": f"http://{HOST}:{daemon.http_port}",
            "MAILCHECK_API_KEY": daemon.key,
        },
        capture_output=True,
        text=True,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def node() -> str:
    """Give the Node that runs the JavaScript client; in CI there must be one."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is missing: sudo apt-get install nodejs")
    return program


@pytest.fixture
def run_script(daemon: Daemon, tmp_path: Path) -> Callable[[str], Any]:
    """Run JavaScript beside the downloaded client; gives what it prints, as JSON."""
    download(daemon, "mailcheck.mjs", tmp_path)

    def run(body: str) -> Any:
        (tmp_path / "script.mjs").write_text(
            'import { Mailcheck, NoMail } from "./mailcheck.mjs";\n'
            "const inbox = new Mailcheck();\n" + body
        )
        done = subprocess.run(
            [node(), "script.mjs"],
            cwd=tmp_path,
            env={
                **daemon.environment,
                "MAILCHECK_URL": f"http://{HOST}:{daemon.http_port}",
                "MAILCHECK_API_KEY": daemon.key,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_javascript_client_waits_for_code_and_link(
    daemon: Daemon, run_script: Callable[[str], Any]
) -> None:
    """An address, two mails, two waits: each gives its own mail, in order."""
    sign_up(daemon, daemon.address("js"), "135790")
    sign_up(daemon, daemon.address("js"), "246801")
    answer = run_script(
        'const address = await inbox.address("js");\n'
        'address.cursor = "c0";\n'
        "const first = await address.wait(), second = await address.wait();\n"
        "console.log(JSON.stringify([first.code, first.link, second.code]));\n"
    )
    assert answer == ["135790", "https://shop.example.com/confirm?code=135790", "246801"]


def test_the_javascript_client_says_what_did_arrive(
    daemon: Daemon, run_script: Callable[[str], Any]
) -> None:
    """A wait in vain throws NoMail, which names the mail that came to another tag."""
    sign_up(daemon, daemon.address("other"), "135790")
    answer = run_script(
        "const address = await inbox.newAddress();\n"
        "const error = await address.wait({ timeout: 1 }).catch((error) => error);\n"
        "console.log(JSON.stringify([error instanceof NoMail, error.message]));\n"
    )
    assert answer[0] is True
    assert "its tag is 'other'" in answer[1]
