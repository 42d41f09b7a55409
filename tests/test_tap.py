"""The twistd plugin: the cost of its options, failed starts, and loaded modules."""

import os
import subprocess
import sys
from pathlib import Path

UNITS = sorted((Path(__file__).parents[1] / "systemd").glob("*.service"))

_MODULES = "import sys, mailcheck.tap; print('\\n'.join(sys.modules))"


def test_options_cost_nothing() -> None:
    """``twistd mailcheck --help`` does not import the daemon."""
    done = subprocess.run(
        [sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True, timeout=60
    )
    ours = {name for name in done.stdout.split() if name.startswith("mailcheck")}
    assert ours == {"mailcheck", "mailcheck.tap"}


_STARTED_WRONGLY = """
import gc, os, signal
from mailcheck.tap import Options, makeService
options = Options()
options.parseOptions(["--config", "missing.toml"])
try:
    makeService(options)
except SystemExit as error:
    os.kill(os.getpid(), signal.SIGHUP)
    print(gc.isenabled(), error)
"""


def test_a_start_that_fails(tmp_path: Path) -> None:
    """A missing configuration is named, its status prevents a restart, and SIGHUP is ignored."""
    done = subprocess.run(
        [sys.executable, "-c", _STARTED_WRONGLY],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.stdout == f"True {os.EX_CONFIG}\n"
    assert done.stderr.startswith("mailcheck: ")
    assert "missing.toml" in done.stderr
    for unit in UNITS:
        assert f"\nRestartPreventExitStatus={os.EX_CONFIG}\n" in unit.read_text(), unit


_BUILT = """
import os, sys
from pathlib import Path
from mailcheck.tap import Options, makeService
options = Options()
options.parseOptions(["--config", "mailcheck.toml"])
options.parent = {"nodaemon": True}
makeService(options)
children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
lines = [Path(f"/proc/{one}/cmdline").read_text().strip("\\0") for one in children]
print(*sorted(line.split("\\0")[-1] for line in lines))
print(*sys.modules)
"""


def test_a_daemon_loads_what_it_runs(tmp_path: Path) -> None:
    """The process imports no module that only child processes, pages, samples or unused ports need.

    The workers for writing and for parsing start first, so that they import modules meanwhile.
    """
    (tmp_path / "mailcheck.toml").write_text('[storage]\nurl = "sqlite:mail.sqlite3"\n')
    done = subprocess.run(
        [sys.executable, "-c", _BUILT],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )
    started, loaded = done.stdout.splitlines()
    assert started == "content writer"
    assert "mailcheck.assembly.daemon" in loaded.split()
    libraries = {"dkim", "nacl", "spf", "nh3", "jinja2", "klein", "txredisapi"}
    content = {f"mailcheck.checks.content.{name}" for name in ("derive", "links", "safe_html")}
    off = {"mailcheck.imap", "mailcheck.milter"}
    assert not (libraries | content | off) & set(loaded.split())
