"""The Debian package on an empty Debian, with systemd, from its installation to its removal.

The tests run the commands of docs/how-to/install-the-debian-package.md on Debian 12 and 13. Two
packages are built from the checkout, in a Debian with the tools that the page names: the second one
from a later commit, with a step of the schema and a line in the configuration.
``scripts/make-debian-root`` makes both kinds of Debian. The one that boots has no network: all
packages that mailcheck needs are there already.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.blocks import ROOT, read_blocks
from tests.servers.booted_debian import BootedDebian, booted_debian
from tests.servers.debian_packages import build_package, commit, copy_checkout, debian_root

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(1800)]

RUNNER = "tests/interop/test_debian_package.py"
PAGE = ROOT / "docs" / "how-to" / "install-the-debian-package.md"
INSTALL, START, UPGRADE, DELETE_MAIL = [
    block.text for block in read_blocks(PAGE) if block.runner == RUNNER
]

PASSWORD = "a-password-of-alice\n"
CONFIGURATION = "/etc/mailcheck/mailcheck.toml"
NEW_LINE = "# A line of the next version."
NEXT_STEP = Path("mailcheck", "store", "schema", "9999_next.sql")

POST = """
printf 'Subject: {subject}\\n\\nHello\\n' |
    curl -sf --crlf -T - smtp://127.0.0.1:25 --mail-from shop@example.com --mail-rcpt {address}
"""
HARD_TO_READ = """\
From: =?utf-8?Q?J=C3=BCrgen?= <shop@example.com>
To: {address}
Subject: =?koi8-r?B?68/E?=
 =?utf-8?B?IDEy?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="a b"

--a b
Content-Type: text/plain; charset=utf-8

Confirm here: <https://example.com/confirm?t=1>
--a b
Content-Type: application/pdf; name="a.pdf"
Content-Disposition: attachment; filename="a.pdf"

%PDF
--a b--
"""
POST_HARD = """
curl -sf --crlf -T - smtp://127.0.0.1:25 --mail-from shop@example.com --mail-rcpt {address}
"""
TAKE_NEW = "--option=Dpkg::Options::=--force-confnew"
PURGE = "apt-get purge mailcheck-daemon"
CONTINUE = "Do you want to continue?"
QUESTION = "Delete all accounts and mail of mailcheck?"
LIST = "curl -sf -H 'X-API-Key: {key}' http://127.0.0.1:8080/api/v1/inbox/messages"
VERSION = "dpkg-query --show --showformat='${Version}' mailcheck-daemon"
LOG = "journalctl --unit=mailcheck.service --output=cat"


class Packages(NamedTuple):
    """A package, its successor, and the release of Debian that they are for."""

    release: str
    first: Path
    next: Path


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def packages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Two packages of the checkout, from two commits."""
    release: str = request.param
    debian_root(release, "build")
    folder = tmp_path_factory.mktemp(release)
    sources = folder / "sources"
    sources.mkdir()
    copy_checkout(sources)
    first = build_package(release, sources, folder / "first")
    with (sources / "debian" / "mailcheck.toml").open("a") as configuration:
        configuration.write(f"{NEW_LINE}\n")
    (sources / NEXT_STEP).write_text("CREATE TABLE of_the_next_version (id INTEGER);\n")
    commit(sources)
    return Packages(release, first, build_package(release, sources, folder / "next"))


@pytest.fixture
def debian(packages: Packages, tmp_path: Path) -> Iterator[BootedDebian]:
    """An empty Debian with the packages in /packages/first and /packages/next."""
    root = debian_root(packages.release)
    for name, file in (("first", packages.first), ("next", packages.next)):
        (tmp_path / "packages" / name).mkdir(parents=True)
        os.link(file, tmp_path / "packages" / name / file.name)
    with booted_debian(root, tmp_path / "packages", tmp_path / "layers") as machine:
        yield machine


def install(debian: BootedDebian, version: str, commands: str = INSTALL) -> str:
    """Install a package as the page says, without changes of the configuration."""
    return debian.run(f"cd /packages/{version}\n{commands}", "N\n")


def start(debian: BootedDebian) -> tuple[str, str]:
    """Run the page's commands after the installation. Return alice's address and key."""
    *before, doctor = START.strip().splitlines()
    printed = debian.run("\n".join(before), PASSWORD)
    # The machine has no Internet, so the doctor has findings.
    assert re.search(r"^database +ok$", debian.start(doctor).stdout, re.M)
    (address,) = re.findall(r"^\S+@inbox\.example\.com$", printed, re.M)
    (key,) = re.findall(r"^mck_\w+$", printed, re.M)
    return address, key


def post(debian: BootedDebian, address: str, subject: str) -> None:
    """Send a mail to port 25, and wait for the reply."""
    debian.run(POST.format(address=address, subject=subject))


def subjects(debian: BootedDebian, key: str) -> list[str]:
    """Return the subjects of the mails in the inbox of a key, the newest first."""
    return re.findall(r'"subject": ?"(\w+)"', debian.run(LIST.format(key=key)))


def require_python_to_read(debian: BootedDebian, address: str, key: str) -> None:
    """Send a mail with a boundary, words and names in quotes and charsets, and read it.

    Releases of Python differ in regular expressions: Python 3.11.2 of Debian 12 does not repeat a
    group possessively (https://github.com/python/cpython/issues/106052).
    """
    debian.run(POST_HARD.format(address=address), HARD_TO_READ.format(address=address))
    newest = json.loads(debian.run(LIST.format(key=key)))["messages"][0]
    shown = json.loads(debian.run(f"{LIST.format(key=key)}/{newest['id']}"))
    assert shown["subject"] == "Код 12"
    assert shown["from"] == {"address": "shop@example.com", "name": "Jürgen"}
    assert [file["filename"] for file in shown["attachments"]] == ["a.pdf"]
    assert shown["links"] == ["https://example.com/confirm?t=1"]


def exists(debian: BootedDebian, path: str) -> bool:
    """Return whether a file or a folder exists."""
    return debian.start(f"test -e {path}").returncode == 0


def daemon_process(debian: BootedDebian) -> int:
    """Return the process ID of the daemon, or 0 if none runs."""
    return int(debian.run("systemctl show --property=MainPID --value mailcheck.service"))


def is_later(debian: BootedDebian, version: str, other: str) -> bool:
    """Return whether a version of a package is later than another one."""
    return debian.start(f"dpkg --compare-versions {version} gt {other}").returncode == 0


def test_lintian_finds_no_error(packages: Packages) -> None:
    """The package has no error and no warning of lintian except those listed with their reasons."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is missing")
    command = ["lintian", "--allow-root", "--fail-on=error,warning", str(packages.first)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_upgrade_keeps_the_mail_and_the_configuration(debian: BootedDebian) -> None:
    """The installation creates no account and starts no daemon.

    The page's commands start it as the user mailcheck. A reload does not restart it, and fails if
    the configuration is invalid. The page's command installs the successor, whose version is later.
    It restarts the daemon, which upgrades the store, and keeps the administrator's configuration;
    the new one is beside it. No start logs a warning about Twisted's list of plugins.

    The first package, installed again, refuses the upgraded store, and names the remedies. The
    backup that it made before is one.
    """
    printed = install(debian, "first")
    assert "systemctl enable --now mailcheck.service" in printed
    assert "Warning" not in printed
    assert daemon_process(debian) == 0
    assert not exists(debian, "/var/lib/mailcheck/mailcheck.db")

    address, key = start(debian)
    post(debian, address, "first")
    assert subjects(debian, key) == ["first"]
    require_python_to_read(debian, address, key)
    before = daemon_process(debian)
    assert debian.run(f"stat --format=%U:%a /proc/{before} /var/lib/mailcheck").split() == [
        *("mailcheck:555", "mailcheck:700"),
    ]
    assert debian.run(f"stat --format=%U:%G:%a {CONFIGURATION}") == "root:mailcheck:640\n"
    reload(debian, before)

    first = debian.run(VERSION)
    install(debian, "next", UPGRADE)
    assert daemon_process(debian) not in (0, before)
    assert is_later(debian, debian.run(VERSION), first)
    assert is_later(debian, first, "0.1.0+deb12")
    assert (
        debian.run("mailcheck --version") == f"mailcheck {debian.run(VERSION)[: -len('+deb12')]}\n"
    )
    assert 'domain = "inbox.example.com"' in debian.run(f"cat {CONFIGURATION}")
    assert NEW_LINE in debian.run(f"cat {CONFIGURATION}.dpkg-dist")
    post(debian, address, "second")
    assert subjects(debian, key) == ["second", "first"]
    assert "plugin cache" not in debian.run(LOG)

    debian.run("apt-get install --yes --allow-downgrades /packages/first/*.deb", "N\n")
    # systemd tries a few times.
    debian.run(
        f"until {LOG} | grep -q 'but this mailcheck supports versions up to'; do sleep 1; done"
    )
    assert "install the newer mailcheck again, or restore a backup" in debian.run(LOG)
    debian.run(RESTORE)
    assert subjects(debian, key) == ["first"]


RESTORE = """
systemctl stop mailcheck.service 'mailcheck-*.socket'
mailcheck store restore "$(ls -1 /var/lib/mailcheck/backup/mailcheck-*.db | tail -n 1)"
systemctl reset-failed
systemctl start mailcheck-{smtp,submission,http}.socket mailcheck.service
"""


def reload(debian: BootedDebian, process: int) -> None:
    """Reload a valid configuration, which makes a backup, and an invalid one."""
    with_backups = "printf '[backup]\\nevery = 24\\n' >> " + CONFIGURATION
    debian.run(f"{with_backups}; systemctl reload mailcheck.service")
    assert "reloaded: [backup] every" in debian.run(LOG)
    debian.run("until ls /var/lib/mailcheck/backup/mailcheck-*.db; do sleep 0.1; done")
    debian.run(f"cp {CONFIGURATION} /root/valid; echo nonsense >> {CONFIGURATION}")
    failed = debian.start("systemctl reload mailcheck.service")
    assert failed.returncode == 1
    assert f"{CONFIGURATION}: " in debian.run(LOG)
    debian.run(f"cp /root/valid {CONFIGURATION}; systemctl reload mailcheck.service")
    assert daemon_process(debian) == process


def test_a_purge_deletes_mail_only_after_yes(debian: BootedDebian) -> None:
    """A removal stops the daemon, and keeps the configuration and the mail.

    A purge asks before it deletes the mail. After "no", the next installation has the mail. No
    removal warns. An existing configuration becomes private.
    """
    debian.run(f"install -D -m 0644 /dev/null {CONFIGURATION}")
    install(debian, "first", INSTALL.replace(" install", f" install {TAKE_NEW}"))
    assert debian.run(f"stat --format=%U:%G:%a {CONFIGURATION}") == "root:mailcheck:640\n"
    address, key = start(debian)
    post(debian, address, "first")

    printed = debian.run("apt-get remove --yes mailcheck-daemon")
    assert "warning" not in printed
    assert debian.start("curl -s smtp://127.0.0.1:25").returncode == 7  # connection refused
    assert not exists(debian, "/usr/lib/mailcheck")
    assert exists(debian, CONFIGURATION)

    printed = debian.answer(PURGE, (CONTINUE, "y"), (QUESTION, "no"))
    assert "warning" not in printed
    assert not exists(debian, CONFIGURATION)
    install(debian, "next")
    debian.run("systemctl start mailcheck.service")
    assert subjects(debian, key) == ["first"]

    printed = debian.answer(PURGE, (CONTINUE, "y"), (QUESTION, "yes"))
    assert "warning" not in printed
    assert not exists(debian, "/var/lib/mailcheck")


def test_mail_is_kept_without_an_answer(debian: BootedDebian) -> None:
    """A purge that cannot ask keeps the mail, except after an answer in advance."""
    purge = "DEBIAN_FRONTEND=noninteractive apt-get purge --yes mailcheck-daemon"
    install(debian, "first")
    debian.run(purge)
    assert exists(debian, "/var/lib/mailcheck")

    install(debian, "first")
    debian.run(DELETE_MAIL)
    debian.run(purge)
    assert not exists(debian, "/var/lib/mailcheck")


def test_the_shell_inside_the_daemon_is_there(debian: BootedDebian) -> None:
    """The package contains the packages of the manhole, which no pip could add."""
    install(debian, "first")
    debian.run("ls /usr/lib/mailcheck/lib/python3*/site-packages/bcrypt")
    debian.run("/usr/lib/mailcheck/bin/python -c 'import mailcheck.ops.manhole'")
