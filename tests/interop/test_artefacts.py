"""The files of a release: each is installed where nothing is, receives a mail, and prints its code.

``make release`` tries the files in ``dist/``. Other runs build them from the checkout first.
"""

import configparser
import contextlib
import hashlib
import json
import os
import shutil
import smtplib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailcheck.cli.inbox_commands import SAMPLE_CODE
from tests.interop.test_debian_package import start
from tests.interop.test_image import Ports
from tests.servers.booted_debian import booted_debian
from tests.servers.containers import require_containers, run, running_container
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.debian_packages import commit, copy_checkout, debian_root

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
MAIL = "Subject: Welcome\r\n\r\nYour code is 482913\r\n"
CODE = "482913\n"
RELEASES = {"bookworm": 12, "trixie": 13}

SEND = """
printf 'Subject: Welcome\\n\\nYour code is 482913\\n' |
    curl -sf --crlf -T - smtp://127.0.0.1:25 --mail-from shop@example.com --mail-rcpt {address}
"""


def version() -> str:
    """Return the version of the checkout."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup["metadata"]["version"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of the release."""
    if "RELEASE_FOLDER" in os.environ:
        return Path(os.environ["RELEASE_FOLDER"])
    folder = tmp_path_factory.mktemp("release")
    sources = folder / "sources"
    sources.mkdir()
    copy_checkout(sources)
    news = sources / "NEWS.md"
    if f"## mailcheck {version()} " not in news.read_text():
        news.write_text(f"{news.read_text()}\n## mailcheck {version()} (today)\n")
        commit(sources)
    done = build(sources, folder / "dist")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def build(sources: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Build a release from a repository."""
    return subprocess.run(
        ["bash", "scripts/build-release", into],
        cwd=sources,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon of the checkout, for clients."""
    with running_daemon(tmp_path_factory.mktemp("service") / "daemon") as daemon:
        yield daemon


def only(dist: Path, pattern: str) -> Path:
    """Return the one file that matches."""
    (found,) = dist.glob(pattern)
    return found


def test_a_release_is_refused(tmp_path: Path) -> None:
    """Changed files, missing notes, a version that exists, and old results stop it at once."""
    copy_checkout(tmp_path)
    tag = ["git", "tag", f"v{version()}"]

    def refusal() -> str:
        done = build(tmp_path, tmp_path / "build" / "dist")
        assert done.returncode == 1, done.stdout
        assert not list((tmp_path / "build").rglob("*.whl"))
        return done.stderr

    (tmp_path / "README.md").write_text("changed")
    assert "not committed" in refusal()
    commit(tmp_path)
    (tmp_path / "NEWS.md").write_text("# News\n")
    commit(tmp_path)
    assert f"no notes of version {version()}" in refusal()
    subprocess.run(tag, cwd=tmp_path, check=True)
    assert f"version {version()} exists" in refusal()


def test_the_checksums(dist: Path) -> None:
    """Every file is listed with its SHA-256."""
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in (line.split("  ") for line in lines)}
    files = {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    assert listed.keys() == files
    for name, checksum in listed.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == checksum


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_the_python_package(dist: Path, tmp_path: Path, pattern: str) -> None:
    """In an empty environment, it receives a mail and prints its code."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment)
    run(
        environment / "bin" / "pip", "install", "--quiet", only(dist, f"mailcheck_daemon-{pattern}")
    )
    mailcheck = environment / "bin" / "mailcheck"
    twistd = (str(environment / "bin" / "twistd"), "--nodaemon", "--pidfile=")
    assert run(mailcheck, "--version") == f"mailcheck {version()}\n"
    with running_daemon(tmp_path / "daemon", command=[*twistd, "mailcheck"]) as daemon:
        described = json.loads(daemon.open("/api/v1/openapi.json").body)
        assert described["info"]["version"] == version()
        assert daemon.open("/docs/").status in (200, 302)
        send(daemon)
        printed = subprocess.run(
            [mailcheck, "wait", "--tag", "new", "--after", "c0", "--code"],
            cwd=tmp_path,
            env=daemon.client_environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert printed.stdout == CODE


SUITE = """
import smtplib

def test_a_mail(mailcheck_inbox):
    with smtplib.SMTP(mailcheck_inbox.smtp_host, mailcheck_inbox.smtp_port) as smtp:
        text = "Subject: Welcome\\n\\nYour code is 482913"
        smtp.sendmail("shop@example.com", [mailcheck_inbox.address], text)
    assert mailcheck_inbox.wait().code == "482913"
"""


def test_a_suite_of_pytest(dist: Path, tmp_path: Path) -> None:
    """With the wheel and pytest in an empty environment, a suite needs nothing else."""
    environment, suite = tmp_path / "environment", tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    run(sys.executable, "-m", "venv", environment)
    wheel = only(dist, "mailcheck_daemon-*.whl")
    run(environment / "bin" / "pip", "install", "--quiet", wheel, "pytest")
    ours = ("MAILCHECK", "PYTEST")
    done = subprocess.run(
        [environment / "bin" / "python", "-m", "pytest", "-q", f"--basetemp={tmp_path / 'base'}"],
        cwd=tmp_path,
        env={name: one for name, one in os.environ.items() if not name.startswith(ours)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def send(daemon: Daemon) -> None:
    """Send a mail with a code to the tag ``new``."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        client.sendmail("shop@example.com", [daemon.address("new")], MAIL)


@pytest.mark.parametrize("release", RELEASES)
def test_the_debian_package(dist: Path, tmp_path: Path, release: str) -> None:
    """On an empty Debian, it receives a mail and prints its code."""
    root = debian_root(release)
    package = only(dist, f"*+deb{RELEASES[release]}_*.deb")
    (tmp_path / "packages").mkdir()
    os.link(package, tmp_path / "packages" / package.name)
    with booted_debian(root, tmp_path / "packages", tmp_path / "layers") as debian:
        debian.run(f"apt-get install --yes /packages/{package.name}")
        assert debian.run("mailcheck --version") == f"mailcheck {version()}\n"
        address, key = start(debian)
        debian.run(SEND.format(address=address))
        wait = "mailcheck wait --after c0 --code"
        assert debian.run(f"MAILCHECK_API_KEY={key} {wait}") == CODE


def test_the_npm_package(dist: Path, service: Daemon, tmp_path: Path) -> None:
    """In an empty folder of npm, it waits for a mail and prints its code."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")
    package = only(dist, "mailcheck-client-*.tgz")
    assert package.name == f"mailcheck-client-{version()}.tgz"
    run("npm", "install", "--offline", "--omit=peer", "--no-audit", "--prefix", tmp_path, package)
    script = tmp_path / "wait.mjs"
    script.write_text(WAIT)
    send(service)
    printed = subprocess.run(
        ["node", script],
        env=service.client_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.stdout == CODE, printed.stderr


WAIT = """
import { Mailcheck } from "mailcheck-client";
const message = await new Mailcheck().wait({ tag: "new", after: "c0" });
console.log(message.codes[0]);
"""


def test_the_image(dist: Path, tmp_path: Path) -> None:
    """A container of it receives a mail and prints its code."""
    require_containers()
    archive = only(dist, "*-image.tar")
    image = run("podman", "load", "--quiet", f"--input={archive}").split()[-1]
    options = [*Ports().options, f"--volume={tmp_path}:/var/lib/mailcheck"]
    os.chown(tmp_path, 10001, 10001)
    try:
        with running_container(image, *options, network="host") as container:
            until_ready = "until mailcheck send-sample; do sleep 0.5; done > /dev/null 2>&1"
            wait = "mailcheck wait --tag sample --after c0 --code"
            printed = container.run("timeout", "120", "sh", "-c", f"{until_ready}; {wait}")
            assert printed == f"{SAMPLE_CODE}\n"
            assert container.run("mailcheck", "--version") == f"mailcheck {version()}\n"
    finally:
        with contextlib.suppress(AssertionError):
            run("podman", "rmi", "--force", image)


def test_the_documents(dist: Path) -> None:
    """The documentation and the bill of materials are there, with the version in their names."""
    assert only(dist, f"mailcheck-{version()}-docs.zip").stat().st_size > 100_000
    bill = json.loads(only(dist, f"mailcheck-{version()}-sbom.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert "twisted" in {part["name"].lower() for part in bill["components"]}
