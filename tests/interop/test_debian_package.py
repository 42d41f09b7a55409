"""The Debian package on an empty Debian, with systemd, from its installation to its removal.

The tests run the commands of docs/how-to/install-the-debian-package.md. ``scripts/build-deb``
builds the package from the checkout. Its successor is a copy with a higher version and a line more
in its configuration. ``scripts/make-debian-root`` makes the empty Debian, which has no network: all
packages that mailcheck needs are there already.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, read_blocks
from tests.servers.booted_debian import BootedDebian, booted_debian

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(600)]

RUNNER = "tests/interop/test_debian_package.py"
PAGE = ROOT / "docs" / "how-to" / "install-the-debian-package.md"
INSTALL, START, UPGRADE, DELETE_MAIL = [
    block.text for block in read_blocks(PAGE) if block.runner == RUNNER
]

PASSWORD = "a-password-of-alice\n"
CONFIGURATION = "/etc/mailcheck/mailcheck.toml"
NEW_LINE = "# A line of the next version."
NEXT_VERSION = "9.0.0"

POST = """
printf 'Subject: {subject}\\n\\nHello\\n' |
    curl -sf --crlf -T - smtp://127.0.0.1:25 --mail-from shop@example.com --mail-rcpt {address}
"""
PURGE = "apt-get purge mailcheck-daemon"
CONTINUE = "Do you want to continue?"
QUESTION = "Delete all accounts and mail of mailcheck?"
LIST = "curl -sf -H 'X-API-Key: {key}' http://127.0.0.1:8080/api/v1/inbox/messages"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the checkout."""
    for program in ("dpkg-buildpackage", "dh", "po2debconf", "lintian"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    folder = tmp_path_factory.mktemp("package")
    command = ["bash", "scripts/build-deb", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHON": sys.executable}, check=True)
    (built,) = folder.glob("*.deb")
    return built


@pytest.fixture(scope="module")
def next_package(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with a higher version and another configuration file."""
    folder = tmp_path_factory.mktemp("next")
    files = folder / "files"
    subprocess.run(["dpkg-deb", "--raw-extract", package, files], check=True)
    control = files / "DEBIAN" / "control"
    text = re.sub(r"^Version: .*$", f"Version: {NEXT_VERSION}", control.read_text(), flags=re.M)
    control.write_text(text)
    configuration = files / CONFIGURATION.lstrip("/")
    configuration.write_text(f"{configuration.read_text()}{NEW_LINE}\n")
    built = folder / f"mailcheck-daemon_{NEXT_VERSION}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(files), str(built)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(files)
    return built


@pytest.fixture
def debian(package: Path, next_package: Path, tmp_path: Path) -> Iterator[BootedDebian]:
    """An empty Debian with the packages in /packages/first and /packages/next."""
    command = ["bash", "scripts/make-debian-root"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    root = Path(made.stdout.strip())
    if os.geteuid() != 0 or not root.exists():
        pytest.skip("root with debootstrap is needed")
    for name, file in (("first", package), ("next", next_package)):
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


def exists(debian: BootedDebian, path: str) -> bool:
    """Return whether a file or a folder exists."""
    return debian.start(f"test -e {path}").returncode == 0


def daemon_process(debian: BootedDebian) -> int:
    """Return the process ID of the daemon, or 0 if none runs."""
    return int(debian.run("systemctl show --property=MainPID --value mailcheck.service"))


def test_lintian_finds_no_error(package: Path) -> None:
    """The package has no error and no warning of lintian except those listed with their reasons."""
    command = ["lintian", "--allow-root", "--fail-on=error,warning", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_upgrade_keeps_the_mail_and_the_configuration(debian: BootedDebian) -> None:
    """The installation creates no account and starts no daemon.

    The page's commands start it as the user mailcheck. A reload does not restart it. An upgrade
    restarts it and keeps the administrator's configuration; the new one is beside it. No start
    logs a warning about Twisted's list of plugins.
    """
    printed = install(debian, "first")
    assert "systemctl enable --now mailcheck.service" in printed
    assert daemon_process(debian) == 0
    assert not exists(debian, "/var/lib/mailcheck/mailcheck.db")

    address, key = start(debian)
    post(debian, address, "first")
    assert subjects(debian, key) == ["first"]
    before = daemon_process(debian)
    assert debian.run(f"stat --format=%U:%a /proc/{before} /var/lib/mailcheck").split() == [
        *("mailcheck:555", "mailcheck:700"),
    ]
    debian.run("systemctl reload mailcheck.service")
    assert daemon_process(debian) == before
    assert debian.run(f"stat --format=%U:%G:%a {CONFIGURATION}") == "root:mailcheck:640\n"

    install(debian, "next", UPGRADE)
    assert daemon_process(debian) not in (0, before)
    assert debian.run("dpkg-query --show --showformat='${Version}' mailcheck-daemon") == (
        NEXT_VERSION
    )
    assert 'domain = "inbox.example.com"' in debian.run(f"cat {CONFIGURATION}")
    assert NEW_LINE in debian.run(f"cat {CONFIGURATION}.dpkg-dist")
    post(debian, address, "second")
    assert subjects(debian, key) == ["second", "first"]
    assert "plugin cache" not in debian.run("journalctl --unit=mailcheck.service --output=cat")


def test_a_purge_deletes_mail_only_after_yes(debian: BootedDebian) -> None:
    """A removal stops the daemon, and keeps the configuration and the mail.

    A purge asks before it deletes the mail. After "no", the next installation has the mail.
    """
    install(debian, "first")
    address, key = start(debian)
    post(debian, address, "first")

    debian.run("apt-get remove --yes mailcheck-daemon")
    assert debian.start("curl -s smtp://127.0.0.1:25").returncode == 7  # connection refused
    assert not exists(debian, "/usr/lib/mailcheck")
    assert exists(debian, CONFIGURATION)

    debian.answer(PURGE, (CONTINUE, "y"), (QUESTION, "no"))
    assert not exists(debian, CONFIGURATION)
    install(debian, "next")
    debian.run("systemctl start mailcheck.service")
    assert subjects(debian, key) == ["first"]

    debian.answer(PURGE, (CONTINUE, "y"), (QUESTION, "yes"))
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
