"""From the sources to a running daemon: sdist, wheel, and every step of the Dockerfile.

One environment serves all tests: the sdist is built from the checkout, the steps of the Dockerfile
build a wheel from the sdist and install it, and the daemon runs as in a container.
"""

import configparser
import contextlib
import json
import os
import shutil
import smtplib
import socket
import ssl
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.servers.daemon import ANSWER_DEADLINE, API, HOST, POLL, PREFIX, STOPPED_WELL, Daemon
from tests.servers.dockerfile import Image, build_image
from tests.servers.name_server import has_address
from tests.servers.web_proxies import FILES as PROXIES
from tests.servers.web_proxies import NAME, running_proxy

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

CHECKOUT = Path(__file__).parents[2]
FOLDERS = ("docs", "etc", "systemd", "mailcheck", "twisted")
FILES = (
    *("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "NEWS.md", "LICENSE"),
    *("Dockerfile", ".dockerignore", "compose.yaml", "requirements.lock"),
)
MADE = {"PKG-INFO", "mailcheck_daemon.egg-info"}
CLIENTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
INSTALL_DEADLINE = 300.0  # seconds
KEY = "key-of-tests-that-ends-with-the-job"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users than that of the tests can read."""
    with tempfile.TemporaryDirectory(prefix="mailcheck-installation-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def sdist(folder: Path) -> Path:
    """Build an sdist from a copy of the sources, and return the unpacked folder."""
    sources = folder / "sources"
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "dropin.cache")
        shutil.copytree(CHECKOUT / name, sources / name, ignore=ignored)
    for name in FILES:
        shutil.copy(CHECKOUT / name, sources / name)
    built = folder / "dist"
    # The Dockerfile's steps build the wheel, and the environment has the build backend.
    options = ("--sdist", "--no-isolation", f"--outdir={built}")
    run(sys.executable, "-m", "build", *options, sources)
    [archive] = built.iterdir()
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    return folder / "unpacked" / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def image(sdist: Path, folder: Path) -> Image:
    """Run the steps of the Dockerfile with the files of the sdist."""
    # Only the cache of downloads differs from a container.
    variables = {**clean_variables(), "PIP_NO_CACHE_DIR": ""}
    return build_image(sdist / "Dockerfile", sdist, folder / "image", variables)


class ContainerDaemon(Daemon):
    """A daemon in the image, with its user and environment, except for the ports."""

    def __init__(self, image: Image, logs: Path) -> None:
        super().__init__(logs)
        self._image = image
        self._key = KEY

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the image, and the variables of a CI job."""
        listen = {
            f"{PREFIX}SMTP_LISTEN": self.smtp_port,
            f"{PREFIX}SMTP_SUBMISSION_LISTEN": self.submission_port,
            f"{PREFIX}WEB_LISTEN": self.http_port,
        }
        assert all(self._image.environment[name].startswith("0.0.0.0:") for name in listen)
        return {
            **self._image.environment,
            **{name: f"{HOST}:{port}" for name, port in listen.items()},
            f"{PREFIX}OPS_LISTEN": "",
            f"{PREFIX}STORAGE_MIN_FREE": "0",
            f"{PREFIX}SPAMASSASSIN_SPAMD": "off",
            f"{PREFIX}ACCOUNTS_BOOTSTRAP": "true",
            f"{PREFIX}ACCOUNTS_BOOTSTRAP_KEY": KEY,
            f"{PREFIX}WEB_TRUSTED_PROXIES": HOST,
        }

    def launch(self, terminal: int | None = None) -> None:
        """Start the entry point with its default arguments."""
        image = self._image
        self.starts += 1
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                image.command(*image.entry_point, *image.default_arguments),
                cwd=image.path(image.folder),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def when_logged(self, words: str) -> None:
        """Wait until the daemon logs the words."""
        deadline = time.monotonic() + ANSWER_DEADLINE
        while words not in self.output():
            assert time.monotonic() < deadline, self.output()
            time.sleep(POLL)

    def health(self) -> int:
        """Run the health check of the image, and return its exit status."""
        command = [word.replace("8080", str(self.http_port)) for word in self._image.health_command]
        # An unreachable proxy, which the check must not use.
        return self._image.run(*command, http_proxy="http://127.0.0.1:1").returncode


@pytest.fixture(scope="module")
def daemon(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerDaemon]:
    """Run the image."""
    daemon = ContainerDaemon(image, tmp_path_factory.mktemp("logs"))
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.kill()


def clean_variables() -> dict[str, str]:
    """Return environment variables without those that affect Python or a daemon."""
    ours = ("PYTHON", PREFIX)
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run(*command: str | Path) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(
        command,
        env=clean_variables(),
        capture_output=True,
        text=True,
        timeout=INSTALL_DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_below(folder: Path) -> set[str]:
    """Return all files below a folder except those that running it creates."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", "dropin.cache"} & set(path.parts)
    }


def test_every_file_is_in_the_sdist(sdist: Path) -> None:
    """An sdist contains the package, its documents, and the files for operators, and no more."""
    packed = {path for path in files_below(sdist) if path.partition("/")[0] not in MADE}
    ours = {f"{name}/{path}" for name in FOLDERS for path in files_below(CHECKOUT / name)}
    assert packed == ours | set(FILES)


def test_every_file_is_installed(image: Image) -> None:
    """Modules, data files and files for operators are installed and used from there."""
    prefix = image.path("/opt/mailcheck")
    done = image.run(
        str(prefix / "bin/python"), "-c", "import mailcheck; print(mailcheck.__file__)"
    )
    installed = Path(done.stdout.strip()).parent
    assert installed.is_relative_to(prefix)
    assert files_below(installed) == files_below(CHECKOUT / "mailcheck")
    for name in ("etc", "systemd"):
        assert files_below(prefix / "share/mailcheck" / name) == files_below(CHECKOUT / name)
    [licence] = installed.parent.glob("mailcheck_daemon-*.dist-info/**/LICENSE")
    assert licence.read_text() == (CHECKOUT / "LICENSE").read_text()


def test_version(image: Image) -> None:
    """Command, wheel and package have the version of ``setup.cfg``."""
    setup = configparser.ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    version = setup["metadata"]["version"]
    assert image.run("mailcheck", "--version").stdout == f"mailcheck {version}\n"
    [wheel] = image.path("/wheels").glob("*.whl")
    assert wheel.name == f"mailcheck_daemon-{version}-py3-none-any.whl"


def test_image(image: Image) -> None:
    """A container has an unprivileged user, one volume, and the ports that it listens on."""
    assert image.user == "10001:10001"
    assert image.volumes == ["/var/lib/mailcheck"] == [image.folder]
    listening = {
        int(value.rpartition(":")[2])
        for name, value in image.environment.items()
        if name.startswith(PREFIX) and name.endswith("_LISTEN")
    }
    assert set(image.ports) == listening
    assert image.health_options.keys() >= {"interval", "timeout", "start-period", "retries"}
    if os.geteuid() == 0:
        state = image.path("/var/lib/mailcheck").stat()
        assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (10001, 10001, 0o700)
        assert "mailcheck:x:10001:" in image.path("/etc/passwd").read_text()


def test_container(image: Image, daemon: ContainerDaemon) -> None:
    """The entry point runs the daemon: a mail has its code and link, and commands use its store."""
    assert daemon.health() == 0
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        mail = b"Subject: Welcome\r\n\r\nYour code is 482913: https://example.com/confirm\r\n"
        client.sendmail("shop@example.com", [daemon.address("signup")], mail)
    message = daemon.get("/inbox/wait", tag="signup", since="2020-01-01T00:00:00Z").json
    assert (message["codes"], message["bestLink"]) == (["482913"], "https://example.com/confirm")
    assert "developer" in image.run("mailcheck", "key", "list").stdout
    written = files_below(image.path("/var/lib/mailcheck"))
    assert {"mailcheck.db", "api-key", "dashboard-password"} <= written
    if os.geteuid() == 0:
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        assert "Uid:\t10001\t10001\t10001\t10001" in status


@pytest.mark.parametrize(("program", "client"), list(zip(PROXIES, CLIENTS, strict=True)))
def test_behind_a_proxy(daemon: ContainerDaemon, tmp_path: Path, program: str, client: str) -> None:
    """Behind each proxy clients are distinguished, a wait ends, and links lead to the proxy."""
    if not has_address(client):
        pytest.skip(f"{client} is not an address of this machine: sudo ifconfig lo0 alias {client}")
    with running_proxy(program, daemon.http_port, tmp_path) as port:
        lies = {"X-Forwarded-For": "203.0.113.9", "X-API-Key": "no-key-of-anybody"}
        with asking(port, client, "/inbox", lies) as guess:
            assert guess.getresponse().status == 401
        daemon.when_logged(f"failed key: client={client} ")
        path = f"/inbox/wait?tag={program}&after={daemon.cursor()}&timeout=60"
        with (
            asking(port, client, path, {"X-API-Key": KEY}) as wait,
            smtplib.SMTP(HOST, daemon.smtp_port) as sender,
        ):
            mail = b"Subject: Welcome\r\n\r\nYour code is 482913\r\n"
            sender.sendmail("shop@example.com", [daemon.address(program)], mail)
            message = json.load(wait.getresponse())
        assert message["codes"] == ["482913"]
        assert message["shareUrl"].startswith(f"https://{NAME}:{port}/share/")


@contextlib.contextmanager
def asking(
    port: int, client: str, path: str, headers: Mapping[str, str]
) -> Iterator[HTTPConnection]:
    """Send a request through a proxy from an address, and yield the connection of the response."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((HOST, port), ANSWER_DEADLINE, (client, 0))
    connection = HTTPConnection(NAME, port)
    connection.sock = context.wrap_socket(plain, server_hostname=NAME)
    with contextlib.closing(connection):
        connection.request("GET", API + path, headers=dict(headers))
        yield connection


def test_stop(daemon: ContainerDaemon) -> None:
    """SIGTERM stops the container cleanly; it is unhealthy then, and a start finds all data."""
    kept = daemon.total()
    assert daemon.stop() in STOPPED_WELL
    assert daemon.health() != 0
    daemon.start()
    assert daemon.total() == kept


def test_installed_command(image: Image) -> None:
    """`mailcheck` explains its configuration without a daemon."""
    example = image.run("mailcheck", "config", "example").stdout
    assert example == (CHECKOUT / "etc" / "mailcheck.toml").read_text()
