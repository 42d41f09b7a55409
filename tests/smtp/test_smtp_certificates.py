"""Certificates for STARTTLS."""

import contextlib
import ssl
import stat
from pathlib import Path

import pytest
from OpenSSL import SSL

from mailcheck.connections.certificates import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    ensure_self_signed,
    load_certificate,
)
from mailcheck.core.instants import DAY, Instant

NOW = Instant(1_795_000_000_000)
NAMES = ("mx.example", "localhost", "127.0.0.1")


def content(folder: Path) -> tuple[bytes, bytes]:
    """Return the content of both files."""
    return (folder / CERTIFICATE_FILE).read_bytes(), (folder / KEY_FILE).read_bytes()


def test_a_certificate_is_signed_once(tmp_path: Path) -> None:
    """The first start creates it, later starts load it; other users cannot read the key."""
    ensure_self_signed(tmp_path, NAMES, NOW)
    first = content(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    ensure_self_signed(tmp_path, NAMES, Instant(NOW + 3600 * DAY))
    assert content(tmp_path) == first


@pytest.mark.parametrize(
    ("host_name", "days"), [("other.example", 0), ("mx.example", 3621), ("mx.example", 5000)]
)
def test_it_is_signed_anew_when_it_no_longer_fits(
    tmp_path: Path, host_name: str, days: int
) -> None:
    """A new one is created for another name, and from a month before it expires."""
    ensure_self_signed(tmp_path, NAMES, NOW)
    first = content(tmp_path)
    ensure_self_signed(tmp_path, [host_name], Instant(NOW + days * DAY))
    second = content(tmp_path)
    assert second != first
    ensure_self_signed(tmp_path, [host_name], Instant(NOW + days * DAY))
    assert content(tmp_path) == second


@pytest.mark.parametrize("file", [CERTIFICATE_FILE, KEY_FILE])
def test_half_of_a_pair_is_made_whole(tmp_path: Path, file: str) -> None:
    """If one file is lost, both are created again."""
    ensure_self_signed(tmp_path, NAMES, NOW)
    (tmp_path / file).unlink()
    ensure_self_signed(tmp_path, NAMES, NOW)
    load_certificate(tmp_path / CERTIFICATE_FILE, tmp_path / KEY_FILE)


def test_a_broken_certificate_is_replaced(tmp_path: Path) -> None:
    """A truncated file, as after a full disk, does not prevent the start."""
    ensure_self_signed(tmp_path, NAMES, NOW)
    (tmp_path / CERTIFICATE_FILE).write_bytes(b"-----BEGIN CERT")
    ensure_self_signed(tmp_path, NAMES, NOW)
    load_certificate(tmp_path / CERTIFICATE_FILE, tmp_path / KEY_FILE)


def test_local_clients_get_a_certificate_of_the_authority(tmp_path: Path) -> None:
    """The certificate for local clients has all names, and the authority beside it signed it."""
    ensure_self_signed(tmp_path, NAMES[:1], NOW)
    first = content(tmp_path)
    ensure_self_signed(tmp_path, NAMES, NOW)
    assert content(tmp_path) == first
    ensure_self_signed(tmp_path, NAMES, NOW, for_local_clients=True)
    second = content(tmp_path)
    assert second != first
    ensure_self_signed(tmp_path, NAMES, NOW, for_local_clients=True)
    assert content(tmp_path) == second
    (tmp_path / AUTHORITY_FILE).write_bytes(first[0])
    ensure_self_signed(tmp_path, NAMES, NOW, for_local_clients=True)
    assert content(tmp_path) != second


def test_a_strict_client_accepts_it(tmp_path: Path) -> None:
    """It passes OpenSSL's strict mode, which is Python 3.13's default."""
    server_context = ensure_self_signed(tmp_path, NAMES, NOW).getContext()
    client_context = ssl.create_default_context(cafile=tmp_path / AUTHORITY_FILE)
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in NAMES:
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
        server = SSL.Connection(server_context)
        server.set_accept_state()
        for _ in range(3):
            for step in (client.do_handshake, server.do_handshake):
                with contextlib.suppress(ssl.SSLWantReadError, SSL.WantReadError):
                    step()
                if sent := to_server.read():
                    server.bio_write(sent)
                with contextlib.suppress(SSL.WantReadError):
                    to_client.write(server.bio_read(65_536))
        assert client.version() == "TLSv1.3"


def test_a_configured_pair_must_fit(tmp_path: Path) -> None:
    """A key of another certificate, a missing file and an invalid file are rejected."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
        ensure_self_signed(folder, NAMES, NOW)
    with pytest.raises(ValueError, match="is not the key of"):
        load_certificate(ours / CERTIFICATE_FILE, theirs / KEY_FILE)
    with pytest.raises(FileNotFoundError):
        load_certificate(tmp_path / "missing.pem", ours / KEY_FILE)
    (tmp_path / "junk.pem").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r".+"):
        load_certificate(tmp_path / "junk.pem", ours / KEY_FILE)
    with pytest.raises(ValueError, match=r".+"):
        load_certificate(ours / CERTIFICATE_FILE, tmp_path / "junk.pem")


def test_the_chain_is_sent(tmp_path: Path) -> None:
    """The chain contains the certificates after the first one."""
    ensure_self_signed(tmp_path, NAMES, NOW)
    chain = tmp_path / "chain.pem"
    chain.write_bytes((tmp_path / CERTIFICATE_FILE).read_bytes() * 2)
    options = load_certificate(chain, tmp_path / KEY_FILE)
    assert len(options.extraCertChain) == 1
