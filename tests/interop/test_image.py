"""The image, built by buildah and run by podman: its size, its user, its end, and old data."""

import contextlib
import hashlib
import json
import os
import re
import smtplib
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mailcheck.core.identifiers import new_time_ordered_id
from mailcheck.core.instants import DAY, Instant
from mailcheck.engines.schema_upgrade import schema_steps, upgrade_schema
from tests.servers.containers import (
    Container,
    podman_service,
    require_containers,
    run,
    running_container,
)
from tests.servers.daemon import HOST, START_DEADLINE, free_ports
from tests.servers.debian_packages import copy_checkout

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / ".venv-inbox-clients"
SCRIPTS = Path(__file__).parent / "inbox_clients"
LARGEST = 110_000_000
"""Bytes of the archive, which is compressed."""

STEPS_OF_0_1 = 4
KEY = "mck_of_an_earlier_version_that_is_still_good"
HEALTH = re.compile(r'HEALTHCHECK.*?CMD (\[".*?"\])$', re.M | re.S)
CODE = re.compile(rb'"codes": ?\["482913"\]')

# What DDEV, Laravel Sail, devenv and testcontainers set for axllent/mailpit.
MAILPIT = (
    "--env=MP_WEBROOT=",
    "--env=MP_DATABASE=/var/lib/mailcheck/mailpit.db",
    "--env=MP_MAX_MESSAGES=5000",
    "--env=MP_SMTP_AUTH_ACCEPT_ANY=1",
    "--env=MP_SMTP_AUTH_ALLOW_INSECURE=1",
    "--env=MP_UI_BIND_ADDR=0.0.0.0:8025",
    "--env=MP_SMTP_BIND_ADDR=0.0.0.0:1025",
)

SEND_TO_MAILPIT = """
import smtplib, urllib.request as web
with smtplib.SMTP("127.0.0.1", 1025) as client:
    client.sendmail("a@example.com", ["b@example.com"], b"Subject: Welcome\\r\\n\\r\\nHello\\r\\n")
assert web.urlopen("http://127.0.0.1:8025/readyz").status == 200
print(web.urlopen("http://127.0.0.1:8025/api/v1/messages").read().decode())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image of the checkout."""
    require_containers()
    folder = tmp_path_factory.mktemp("image")
    (folder / "sources").mkdir()
    copy_checkout(folder / "sources")
    script = folder / "sources" / "scripts" / "build-image"
    return Path(run("bash", script, folder / "dist").split()[-1])


@pytest.fixture(scope="module")
def image(archive: Path) -> Iterator[str]:
    """The name of the loaded image."""
    name = run("podman", "load", "--quiet", f"--input={archive}").split()[-1]
    yield name
    run("podman", "rmi", "--force", name)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A folder for the data, which belongs to the user of the image."""
    folder = tmp_path / "volume"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


class Ports:
    """The ports of a container that shares the network of this machine."""

    def __init__(self) -> None:
        self.http, self.smtp = free_ports(2)

    @property
    def options(self) -> list[str]:
        """The options of podman for a daemon on these ports."""
        return [
            "--env=MAILCHECK_ACCOUNTS_BOOTSTRAP=true",
            f"--env=MAILCHECK_WEB_LISTEN={HOST}:{self.http}",
            f"--env=MAILCHECK_SMTP_LISTEN={HOST}:{self.smtp}",
            "--env=MAILCHECK_SMTP_SUBMISSION_LISTEN=",
            "--env=MAILCHECK_IMAP_LISTEN=",
            "--env=MAILCHECK_POP3_LISTEN=",
            "--env=MAILCHECK_OPS_LISTEN=",
            "--env=MAILCHECK_STORAGE_MIN_FREE=0",
            "--env=MAILCHECK_DNS_RESOLVERS=127.0.0.1:9",
        ]

    def get(self, path: str, key: str = "") -> bytes:
        """Return the body of an answer."""
        connection = HTTPConnection(HOST, self.http, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"X-API-Key": key})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            return body

    def wait_until_ready(self, container: Container) -> None:
        """Wait until the daemon is ready."""
        deadline = time.monotonic() + START_DEADLINE
        while True:
            with contextlib.suppress(OSError, HTTPException, AssertionError):
                self.get("/readyz")
                return
            assert time.monotonic() < deadline, container.output()
            time.sleep(0.1)

    def receive(self, key: str) -> None:
        """Send a mail, and wait for its code."""
        address = json.loads(self.get("/api/v1/inbox/address?tag=image", key))["address"]
        with smtplib.SMTP(HOST, self.smtp) as client:
            client.sendmail(
                "shop@example.com", [address], b"Subject: x\r\n\r\nYour code is 482913\r\n"
            )
        found = self.get("/api/v1/inbox/wait?tag=image&after=c0&timeout=20", key)
        assert CODE.search(found), found


def test_size_and_version(archive: Path, image: str) -> None:
    """The archive is small; label, package and command have one version."""
    assert archive.stat().st_size <= LARGEST
    (known,) = json.loads(run("podman", "image", "inspect", image))
    version = known["Labels"]["org.opencontainers.image.version"]
    assert archive.name == f"mailcheck-{version}-image.tar"
    with running_container(image, arguments=("--version",)) as container:
        run("podman", "wait", container.name)
        assert container.output() == f"mailcheck {version}\n"


@pytest.mark.parametrize("user", ["10001:10001", "12345:0"])
def test_a_daemon_in_a_container(image: str, volume: Path, user: str) -> None:
    """As its own user or another, it receives mail, is healthy, ends well, and keeps its mail."""
    os.chown(volume, int(user.partition(":")[0]), 0)
    ports = Ports()
    options = [*ports.options, f"--user={user}", f"--volume={volume}:/var/lib/mailcheck"]
    with running_container(image, *options, network="host") as container:
        ports.wait_until_ready(container)
        key = container.run("cat", "api-key").strip()
        ports.receive(key)
        (health,) = HEALTH.findall((ROOT / "Dockerfile").read_text())
        container.run(*json.loads(health.replace("8080", str(ports.http))))
        assert container.stop() == 0, container.output()
    with running_container(image, *options, network="host") as container:
        ports.wait_until_ready(container)
        assert CODE.search(ports.get("/api/v1/inbox/messages", key))


def test_data_of_0_1(image: str, volume: Path) -> None:
    """The image upgrades the store of version 0.1, whose keys and mails are still there."""
    path = volume / "mailcheck.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        upgrade_schema(connection, str(path), schema_steps()[:STEPS_OF_0_1])
        fill(connection)
    for file in volume.iterdir():
        os.chown(file, 10001, 10001)
    ports = Ports()
    options = [*ports.options, f"--volume={volume}:/var/lib/mailcheck"]
    with running_container(image, *options, network="host") as container:
        ports.wait_until_ready(container)
        assert CODE.search(ports.get("/api/v1/inbox/messages", KEY))
        ports.receive(KEY)


def fill(connection: sqlite3.Connection) -> None:
    """Store an account with a key and a mail in the tables of version 0.1."""
    now, raw = int(time.time() * 1000), b"Subject: old\r\n\r\nYour code is 482913\r\n"
    digest = hashlib.sha256(KEY.encode()).digest()
    delivery, message = (new_time_ordered_id(Instant(now), os.urandom) for _ in range(2))
    rows: list[tuple[str, dict[str, Any]]] = [
        ("account", {"id": "a" * 32, "name": "ann", "is_operator": 1, "created_at": now}),
        (
            "api_key",
            {"id": "k", "account_id": "a" * 32, "digest": digest, "name": "k", "hint": "mck_of"}
            | {"created_at": now},
        ),
        (
            "inbox",
            {"account_id": "a" * 32, "mailbox_name": "dev-abcdefghijklm", "last_position": 1}
            | {"message_count": 1, "byte_count": len(raw)},
        ),
        (
            "delivery",
            {"id": delivery, "received_at": now, "envelope_sender": "", "client_ip": "127.0.0.1"}
            | {"helo_name": "x", "is_extended": 1, "author_address": "", "author_name": ""}
            | {"subject": "old", "author_key": "", "subject_key": "old", "size": len(raw)}
            | {"raw_message": raw},
        ),
        (
            "message",
            {"id": message, "account_id": "a" * 32, "position": 1, "delivery_id": delivery}
            | {"recipient": "dev-abcdefghijklm@mailcheck.example"}
            | {"recipient_key": "dev-abcdefghijklm@mailcheck.example", "tag": "", "tag_key": ""}
            | {"received_at": now, "expires_at": now + DAY, "size": len(raw), "share_token": "s"},
        ),
        (
            "inbox_tag",
            {"account_id": "a" * 32, "tag_key": "", "tag": "", "message_count": 1}
            | {"latest_at": now},
        ),
    ]
    for table, row in rows:
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values())
        )


@pytest.fixture(scope="module")
def mailpit_image(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the image that takes the place of Mailpit's."""
    name = f"localhost/mailcheck-like-mailpit:{uuid4().hex}"
    run(
        *("buildah", "build", "--quiet", "--isolation=chroot", "--pull-never"),
        *(f"--build-arg=BASE={image}", f"--tag={name}"),
        *("--file", ROOT / "etc" / "like-mailpit.dockerfile", tmp_path_factory.mktemp("context")),
    )
    yield name
    run("podman", "rmi", "--force", name)


def test_an_image_like_mailpit(mailpit_image: str, volume: Path) -> None:
    """With the variables of Mailpit's image, its ports answer and its line is logged."""
    mount = f"--volume={volume}:/var/lib/mailcheck"
    with running_container(mailpit_image, *MAILPIT, mount) as container:
        deadline = time.monotonic() + START_DEADLINE
        while not re.search(r"accessible via http://\S+:8025/", container.output()):
            assert time.monotonic() < deadline, container.output()
            time.sleep(0.1)
        listed = container.run("python", "-c", SEND_TO_MAILPIT)
        assert json.loads(listed)["messages"][0]["Subject"] == "Welcome"


@pytest.mark.parametrize(
    "client",
    [
        pytest.param([CLIENTS / "python" / "bin" / "python", "testcontainers_mailpit.py"], id="py"),
        pytest.param(["node", "testcontainers.mjs"], id="node"),
    ],
)
def test_testcontainers(mailpit_image: str, tmp_path: Path, client: Sequence[str | Path]) -> None:
    """Testcontainers start the image like Mailpit's, reach its ports, and delete the container.

    The module for Python mounts a private key that nobody but its owner can read.
    """
    require_containers("iptables")  # publishes ports
    if not (CLIENTS / "installed").exists():
        pytest.skip("the clients are not installed: run `make inbox-clients`")
    program, script = client
    with podman_service(tmp_path) as url:
        done = subprocess.run(
            [program, SCRIPTS / script, mailpit_image],
            env={
                **os.environ,
                "CLIENTS": str(CLIENTS),
                "DOCKER_HOST": url,
                "TESTCONTAINERS_RYUK_DISABLED": "true",
                "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["messages"][0]["Subject"] == "Welcome"
    assert not run("podman", "ps", "--all", "--quiet", f"--filter=ancestor={mailpit_image}")
