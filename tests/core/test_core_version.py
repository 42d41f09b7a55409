"""The installed version, and an earlier distribution beside it."""

from pathlib import Path

from mailcheck.core.version import has_older_distribution


def test_an_older_distribution_is_found(tmp_path: Path) -> None:
    """A distribution called mailcheck counts only if it has files of mailcheck."""
    info = tmp_path / "mailcheck-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mailcheck\nVersion: 0.1.0\n")
    assert not has_older_distribution([str(tmp_path)])
    (info / "RECORD").write_text("mailcheck/tap.py,,\nmailcheck-0.1.0.dist-info/RECORD,,\n")
    assert has_older_distribution([str(tmp_path)])
