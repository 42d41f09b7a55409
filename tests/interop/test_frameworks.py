"""Test runners of frameworks, with the code of docs/how-to/wait-for-mail.md."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from tests.docs.blocks import code_with
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]
GUIDE = CHECKOUT / "docs" / "how-to" / "wait-for-mail.md"
SETTINGS = CHECKOUT / "docs" / "how-to" / "connect-your-software.md"
NODE_MODULES = CHECKOUT / "node_modules"
DEADLINE = 120.0  # seconds

MANAGE = """
import os, sys
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
"""

SHOP = """
from django.core.mail import send_mail

def sign_up(email):
    send_mail("Welcome", "Your code is 482913", "shop@example.com", [email])

"""

PYTEST_TEST = """
def test_sign_up(mail_address):
    sign_up(mail_address.email)
    assert mail_address.wait(timeout=20).code == "482913"
"""

SHOP_IN_JAVASCRIPT = """
const nodemailer = require("nodemailer");
const port = process.env.SMTP_PORT;
const transport = nodemailer.createTransport({ host: "127.0.0.1", port, ignoreTLS: true });
const signUp = (to) =>
  transport.sendMail({ from: "shop@example.com", to, text: "Your code is 482913" });
"""


@pytest.fixture
def folder(shared_daemon: Daemon, tmp_path: Path) -> Path:
    """A folder with the client libraries and a Django project with the settings of the guide."""
    for name, library in CLIENT_LIBRARIES.items():
        (tmp_path / name).write_bytes(library.read())
    settings = code_with(SETTINGS, "EMAIL_HOST, EMAIL_PORT")
    settings = settings.replace("2587", str(shared_daemon.submission_port))
    (tmp_path / "settings.py").write_text(f'{settings}SECRET_KEY = "secret"\n')
    (tmp_path / "manage.py").write_text(MANAGE)
    return tmp_path


def run(
    folder: Path, daemon: Daemon, *command: str, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a test runner to its end, with the inbox in its environment."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**daemon.client_environment, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def test_the_runner_of_django(folder: Path, shared_daemon: Daemon) -> None:
    """``manage.py test`` runs the guide's test, which gets no mail without its first line."""
    test = code_with(GUIDE, "class SignUpTest")
    (folder / "tests.py").write_text(SHOP + test)
    done = run(folder, shared_daemon, sys.executable, "manage.py", "test")
    assert done.returncode == 0, done.stderr
    assert "Ran 1 test" in done.stderr
    without, lines = re.subn(r"^@override_settings.*\n", "", test, flags=re.MULTILINE)
    assert lines == 1
    (folder / "tests.py").write_text(SHOP + without.replace("timeout=20", "timeout=1"))
    done = run(folder, shared_daemon, sys.executable, "manage.py", "test")
    assert "mailcheck_client.NoMail: no matching message arrived" in done.stderr


def test_pytest_django(folder: Path, shared_daemon: Daemon) -> None:
    """The guide's conftest lets pytest-django send mail; without it, a test gets no mail."""
    (folder / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = settings\n")
    (folder / "test_shop.py").write_text(SHOP + PYTEST_TEST)
    plugins = ("-p", "pytest_django.plugin", "-p", "no:cacheprovider")
    command = (sys.executable, "-m", "pytest", "-q", *plugins)
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    conftest = code_with(GUIDE, "def smtp_backend(settings)")
    (folder / "conftest.py").write_text(conftest)
    done = run(folder, shared_daemon, *command, environment=environment)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    (folder / "conftest.py").write_text(conftest.replace("autouse=True", "autouse=False"))
    (folder / "test_shop.py").write_text(SHOP + PYTEST_TEST.replace("timeout=20", "timeout=1"))
    done = run(folder, shared_daemon, *command, environment=environment)
    assert "NoMail: no matching message arrived" in done.stdout


def test_jest(folder: Path, shared_daemon: Daemon) -> None:
    """Jest runs the guide's test with the CommonJS client, without options."""
    node, jest = shutil.which("node"), NODE_MODULES / "jest" / "bin" / "jest.js"
    if node is None or not jest.exists():
        pytest.skip("jest is not installed: run scripts/install-test-needs as root")
    (folder / "node_modules").symlink_to(NODE_MODULES)
    (folder / "package.json").write_text('{"private": true}')
    test = code_with(GUIDE, 'require("./mailcheck.cjs")')
    (folder / "sign-up.test.js").write_text(SHOP_IN_JAVASCRIPT + test)
    done = run(folder, shared_daemon, node, str(jest), "--ci")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Tests: +1 passed, 1 total$", done.stderr, re.MULTILINE)
