"""The commands of README and docs/, run as a reader would: each page from top to bottom.

They run beside one daemon with a good domain, example.com, and a name server, blocklists and a
registry. Blocks that another program runs say so; see ``tests/docs/blocks.py``.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, SHELL, Block, code_with, list_pages, read_blocks
from tests.end_to_end.test_domain_checks import KEY
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import HOST, Daemon
from tests.servers.mail_host import running_mail_host
from tests.servers.name_server import running_name_server
from tests.servers.programs import find_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

DEADLINE = 300  # seconds for a page

RECORDS = {
    "example.com": {
        "A": [HOST],
        "MX": ["10 mx.example.com."],
        "TXT": ["v=spf1 mx ip4:192.0.2.7 -all"],
    },
    "mx.example.com": {"A": [HOST]},
    "_dmarc.example.com": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@example.com"]},
    "default._domainkey.example.com": {"TXT": [KEY]},
    "1.0.0.127.in-addr.arpa": {"PTR": ["mx.example.com."]},
    "7.2.0.192.in-addr.arpa": {"PTR": ["mx.example.com."]},
}

MAIL = b"From: shop@example.com\r\nTo: you@example.com\r\nSubject: Hello\r\n\r\nHello\r\n"

PAGES = [
    page for page in list_pages() if any(block.is_run_with_its_page for block in read_blocks(page))
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with an answer to each of its queries."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "mail.eml").write_bytes(MAIL)
    zone = MemoryZone(RECORDS)
    publish_list_test_entries(zone)
    dates = {"example.com": "1995-08-14T04:00:00Z"}
    with (
        running_name_server(zone) as dns,
        running_mail_host(folder, "mx.example.com", dns, dates, spamassassin_spamd="off") as daemon,
    ):
        yield daemon


def script_of(page: Path, daemon: Daemon) -> str:
    """Return the shell commands of a page, with the ports of a daemon instead of the usual ones."""
    pieces = [SHELL]
    for block in read_blocks(page):
        if block.is_run_with_its_page:
            pieces.append(f"echo; echo '--- {block.name}' | tee /dev/stderr\n{block.text}")
    script = "\n".join([*pieces, "exit 0"])
    for usual, port in (
        (8080, daemon.http_port),
        (2525, daemon.smtp_port),
        (2587, daemon.submission_port),
    ):
        script = re.sub(rf"(?<=127\.0\.0\.1:){usual}\b", str(port), script)
    return script


def outputs_of(page: Path) -> Iterator[tuple[Block, Block]]:
    """Yield the blocks of commands with the blocks below them, which show what they print."""
    commands: Block | None = None
    for block in read_blocks(page):
        if block.is_run_with_its_page:
            commands = block
        elif commands is not None and block.follows and block.language in ("text", "json"):
            yield commands, block
        else:
            commands = None


def is_like(shown: str, printed: str) -> bool:
    """Return whether lines have the same words; a shown number, time or address is any word."""
    pairs = list(zip_longest(shown.split(), printed.split(), fillvalue=""))
    return all(one == other or re.search(r"\d|@", one) for one, other in pairs)


def require_printed(printed: str, shown: Block) -> None:
    """Require that commands printed each line, or each field of the object, that a page shows."""
    if shown.language == "text":
        for line in shown.text.splitlines():
            found = any(is_like(line, other) for other in printed.splitlines())
            assert found, f"{shown.name} shows {line}, and not\n{printed}"
        return
    answer = json.loads(printed.strip().splitlines()[-1])
    for name, value in json.loads(shown.text).items():
        assert name == "..." or is_like(str(value), str(answer[name])), f"{shown.name}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_works_as_it_is_written(page: Path, world: Daemon) -> None:
    """Every command succeeds after those above it, and prints what the page shows below it."""
    for program in ("curl", "swaks"):
        find_program(program)
    url = f"http://{HOST}:{world.http_port}"
    done = subprocess.run(
        ["bash", "-c", script_of(page, world)],
        cwd=world.folder,
        env={
            **world.environment,
            "LC_ALL": "C.UTF-8",
            "MAILCHECK_URL": url,
            "MAILCHECK_API_KEY": world.key,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, f"{done.stderr}\n--- it printed\n{done.stdout}"
    assert '{"error"' not in done.stdout, done.stdout
    printed = dict(re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", done.stdout, re.M | re.S))
    for commands, shown in outputs_of(page):
        require_printed(printed[commands.name], shown)


PLUGIN = 'pytest_plugins = ["mailcheck_client"]'

SHOP = """
import os
import smtplib


def sign_up(email):
    mail = "Subject: Welcome\\r\\n\\r\\nYour code is 482913\\r\\n"
    with smtplib.SMTP("127.0.0.1", int(os.environ["SMTP_PORT"])) as smtp:
        smtp.sendmail("shop@example.com", [email], mail)


def confirm(code):
    assert code == "482913"


"""
"""The software under test of the pages."""

SHOP_IN_JAVASCRIPT = """
import nodemailer from "nodemailer";
const port = process.env.SMTP_PORT;
const transport = nodemailer.createTransport({ host: "127.0.0.1", port, ignoreTLS: true });
const mailOf = (to) => ({ from: "shop@example.com", to, text: "Your code is 482913" });
const signUp = (email) => transport.sendMail(mailOf(email));
"""


GUIDE = ROOT / "docs" / "how-to" / "wait-for-mail.md"


def run_in(folder: Path, daemon: Daemon, *command: str) -> str:
    """Run a program beside the clients, with the inbox in its environment."""
    for name in ("mailcheck_client.py", "mailcheck.mjs"):
        (folder / name).write_bytes((ROOT / "mailcheck" / "clients" / name).read_bytes())
    done = subprocess.run(
        command,
        cwd=folder,
        env={**daemon.client_environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_page_pass(shared_daemon: Daemon, tmp_path: Path) -> None:
    """The page's tests pass, with the package and with the file, for a shop that sends a code."""
    (tmp_path / "conftest.py").write_text(code_with(GUIDE, f"# conftest.py\n{PLUGIN}"))
    names = ("mailcheck_inbox", "mail_address")
    tests = [code_with(GUIDE, f"def test_sign_up({name})") for name in names]
    (tmp_path / "test_shop.py").write_text(
        SHOP + tests[0] + tests[1].replace("test_sign_up", "test_sign_in")
    )
    plugin = ("-p", "mailcheck.clients.pytest_plugin", "-p", "no:cacheprovider")
    pytest_here = (sys.executable, "-m", "pytest", "-q", *plugin, "--rootdir=.")
    assert "2 passed" in run_in(tmp_path, shared_daemon, *pytest_here, "test_shop.py")


def test_a_fixed_recipient_is_waited_for(shared_daemon: Daemon, tmp_path: Path) -> None:
    """The page's wait finds a mail to any recipient that was sent before it."""
    send = f"""
import smtplib
with smtplib.SMTP("{HOST}", {shared_daemon.submission_port}) as smtp:
    smtp.login("shop", "{shared_daemon.key}")
    smtp.sendmail("shop@example.com", ["ann@example.com"], "Subject: Hi\\n\\nYour code is 482913")
"""
    program = send + code_with(GUIDE, 'wait(to="ann@example.com"')
    said = run_in(tmp_path, shared_daemon, sys.executable, "-c", program)
    assert said.strip() == "482913"


def test_the_javascript_of_the_page_gets_its_mail(shared_daemon: Daemon, tmp_path: Path) -> None:
    """The page's JavaScript waits for the mail that the shop sends."""
    modules = ROOT / "node_modules"
    if not modules.exists():
        pytest.skip("nodemailer is not installed: run scripts/install-test-needs as root")
    (tmp_path / "node_modules").symlink_to(modules)
    program = code_with(GUIDE, 'import { Mailcheck } from "./mailcheck.mjs";')
    (tmp_path / "shop.mjs").write_text(f"{SHOP_IN_JAVASCRIPT}\n{program}\nconsole.log(mail.code);")
    said = run_in(tmp_path, shared_daemon, find_program("node"), "shop.mjs")
    assert said.strip() == "482913"
