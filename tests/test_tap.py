"""The plugin of twistd: what it costs to ask it, and what it leaves behind."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from mailcheck.daemon.listening import CannotStart
from mailcheck.tap import Options, makeService

_MODULES = "import sys, mailcheck.tap; print('\\n'.join(sys.modules))"


def test_options_cost_nothing() -> None:
    """Whoever asks ``twistd mailcheck --help`` does not wait for the daemon to be imported."""
    done = subprocess.run(
        [sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True, timeout=60
    )
    ours = {name for name in done.stdout.split() if name.startswith("mailcheck")}
    assert ours == {"mailcheck", "mailcheck.tap"}


def test_a_wrong_configuration(tmp_path: Path) -> None:
    """A configuration that can't be read ends the start with its name; garbage is collected on."""
    options = Options()
    options.parseOptions(["--config", str(tmp_path / "missing.toml")])
    with pytest.raises(CannotStart, match=r"missing\.toml"):
        makeService(options)
    assert gc.isenabled()
