"""Trusted certificate authorities."""

from pathlib import Path

import pytest

from mailcheck.probes.trust import NoAuthorities, find_trust_roots
from tests.servers.certificates import Authority
from tests.table import rows


def test_a_file_with_authorities_is_read(tmp_path: Path) -> None:
    """All certificates of a PEM file are used, whatever text is between them."""
    path = tmp_path / "ca.pem"
    pems = [
        Path(Authority(name).write_to(tmp_path / f"{name}.pem")).read_text()
        for name in ("one", "two")
    ]
    path.write_text("# ours\n" + pems[0] + "\n# and theirs\n" + pems[1])
    assert len(find_trust_roots(str(path)).certificates) == 2


@rows(
    None,
    "",
    "no certificate",
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
)
def test_a_file_that_is_no_use_is_an_error(tmp_path: Path, content: str | None) -> None:
    """An unusable file raises an error with its name; no other file is used instead."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(NoAuthorities, match=r"ca\.pem"):
        find_trust_roots(str(path))


def test_the_authorities_of_the_system_are_found(tmp_path: Path) -> None:
    """Without a file, the authorities of the system are used."""
    kept = Authority().write_to(tmp_path / "cert.pem")
    nowhere = str(tmp_path / "nowhere.pem")
    assert len(find_trust_roots("", [nowhere, kept]).certificates) == 1
    with pytest.raises(NoAuthorities, match=r"ca-certificates.*ca_file"):
        find_trust_roots("", [nowhere])
