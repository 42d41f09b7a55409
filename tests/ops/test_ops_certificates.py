"""Replacing the operator's certificate while the daemon runs."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from mailcheck.assembly.ops import Certificates
from mailcheck.config.options import Config, SmtpOptions
from mailcheck.config.reading import ConfigError
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Conditions
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.ops.watch import INTERVAL, Watch
from tests.servers.certificates import Authority

NAMES = ("first.example", "second.example")
FIRST, SECOND = (Authority().issue(name) for name in NAMES)


def certificates(folder: Path) -> Certificates:
    """Create the first certificate of a daemon."""
    paths = map(str, FIRST.write_to(folder))
    config = Config(smtp=SmtpOptions(certificate=next(paths), private_key=next(paths)))
    return Certificates(config, Conditions(), Instant(0))


def spoil_key(folder: Path) -> None:
    """Write half of a renewal: a certificate for another key."""
    replace(SECOND, key=ec.generate_private_key(ec.SECP256R1())).write_to(folder)


def spoil_certificate(folder: Path) -> None:
    """Write an invalid certificate."""
    (folder / "server.pem").write_text("x")


def remove(folder: Path) -> None:
    """Delete the certificate."""
    (folder / "server.pem").unlink()


@pytest.mark.parametrize("spoil", [spoil_key, spoil_certificate, remove])
def test_a_bad_one_changes_nothing(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """An invalid certificate is reported, and the old one stays in use."""
    ours = certificates(tmp_path)
    before = ours.policy("192.0.2.1")
    spoil(tmp_path)
    ((subject, problem),) = ours.look()
    assert subject == "certificate"
    assert "the old one stays" in problem
    assert ours.policy("192.0.2.1") is before
    SECOND.write_to(tmp_path)
    assert list(ours.look()) == [("certificate", "")]
    assert ours.policy("192.0.2.1") is not before


def test_a_bad_one_at_the_start(tmp_path: Path) -> None:
    """A daemon does not start with an invalid certificate, and names the option."""
    FIRST.write_to(tmp_path)
    spoil_certificate(tmp_path)
    paths = str(tmp_path / "server.pem"), str(tmp_path / "server-key.pem")
    config = Config(smtp=SmtpOptions(certificate=paths[0], private_key=paths[1]))
    with pytest.raises(ConfigError, match=r"\[smtp\] certificate"):
        Certificates(config, Conditions(), Instant(0))


def test_it_is_looked_at_by_itself(tmp_path: Path) -> None:
    """A replaced certificate is in use within a minute."""
    ours, clock, conditions = certificates(tmp_path), Clock(), Conditions()

    watch = Watch(conditions, [ours.look])
    service = PeriodicService("looking", INTERVAL, watch.look, clock)
    service.startService()
    before = ours.policy("192.0.2.1")
    SECOND.write_to(tmp_path)
    os.utime(tmp_path / "server.pem", (1, 1))
    with capturedLogs() as events:
        clock.pump([10.0] * 6)
    assert ours.policy("192.0.2.1") is not before
    assert [event["log_format"] for event in events] == ["a new certificate is in use"]
    assert ours.expiry() == SECOND.certificate.not_valid_after_utc.timestamp()
    service.stopService()
