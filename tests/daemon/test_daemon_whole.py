"""A whole daemon in one process."""

import os
import signal
import smtplib
import socket
import ssl
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
import pytest_twisted
from twisted.internet.threads import deferToThread

from mailcheck.core.identifiers import ADDRESS_FILE
from mailcheck.operations.reloads import control_socket, control_sockets
from tests.cli.command_line import run_command
from tests.house import mail
from tests.servers.certificates import self_signed
from tests.servers.daemon import HOST, Daemon, free_ports
from tests.servers.in_process_daemon import in_process_daemon
from tests.servers.redis import RedisServer

PATIENCE = 30.0

PARKED = 'mailcheck_waits_parked{kind="inbox"}'
"""The metric of waits in progress. A wait without a cursor begins when it has arrived."""


def send(daemon: Daemon, address: str, trusted: Path | None) -> None:
    """Send a mail, with TLS if a certificate is trusted."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        if trusted is not None:
            smtp.starttls(context=ssl.create_default_context(cafile=str(trusted)))
        smtp.sendmail("shop@example.com", [address], mail())


def metrics_at(port: int) -> dict[str, float]:
    """Return the metrics that are not zero."""
    with urlopen(f"http://{HOST}:{port}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    rows = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows if float(value)}


async def wake(daemon: Daemon, port: int, trusted: Path | None) -> dict[str, float]:
    """Send a mail for which a client waits. Return the metrics after the client has it."""
    address = await deferToThread(daemon.address, "here")
    waiting = await deferToThread(daemon.ask, "GET", "/inbox/wait?tag=here")
    await deferToThread(daemon.wait_until, lambda: PARKED in metrics_at(port))
    await deferToThread(send, daemon, address, trusted)
    found = await deferToThread(waiting.answer)
    assert found.json["codes"] == ["482913"]
    measured = await deferToThread(metrics_at, port)
    assert measured['mailcheck_waits_total{outcome="woken"}'] == 1
    return measured


@pytest_twisted.ensureDeferred
async def test_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mail over SMTP wakes a wait over HTTP, metrics and reloads work, and everything ends."""
    (port,) = free_ports(1)
    certificate, key = self_signed(HOST).write_to(tmp_path)
    options = {
        "ops_listen": f"{HOST}:{port}",
        "smtp_certificate": str(certificate),
        "smtp_private_key": str(key),
    }
    killed = control_socket(tmp_path / "house" / "var", 1)
    killed.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "house")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(killed))
    async with in_process_daemon(tmp_path / "house", **options) as daemon:
        measured = await wake(daemon, port, certificate)
        assert measured["mailcheck_certificate_expiry_timestamp_seconds"] > time.time()
        os.kill(os.getpid(), signal.SIGHUP)
        said = ""
        while "reloaded: no option has changed" not in said:
            await deferToThread(time.sleep, 0.01)
            said += capsys.readouterr().out
        assert (daemon.folder / "var" / ADDRESS_FILE).exists()
        (control,) = control_sockets(daemon.folder / "var")
        assert control.stat().st_mode & 0o777 == 0o600
        monkeypatch.setenv("MAILCHECK_LIMITS_WAITS_PER_KEY", "7")
        done = await deferToThread(run_command, "reload")
        assert (done.status, done.output) == (0, "reloaded: [limits] waits_per_key\n")
    assert control_sockets(daemon.folder / "var") == []
    assert run_command("reload").status == 3
    assert "with your certificate" in said
    assert not (daemon.folder / "var" / ADDRESS_FILE).exists()
    for taken in (port, daemon.http_port, daemon.smtp_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, taken))


@pytest_twisted.ensureDeferred
async def test_beside_others(
    tmp_path: Path, postgresql_database: str, redis_server: RedisServer
) -> None:
    """A daemon of a cluster receives mail, wakes waits and ends like a single one."""
    (port,) = free_ports(1)
    shared = {"storage_url": postgresql_database, "cluster_redis": redis_server.url}
    where = {"ops_listen": f"{HOST}:{port}"}
    async with in_process_daemon(tmp_path / "house", **shared, **where) as daemon:
        await wake(daemon, port, None)
