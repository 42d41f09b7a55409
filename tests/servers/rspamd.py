"""The real rspamd of this machine with Debian's configuration, without DNS and shared state.

with running_rspamd() as url:  # "http://127.0.0.1:<port>"
...
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.servers.daemon import HOST, free_ports

START_SECONDS = 180
"""Seconds until it answers. It compiles patterns first, which takes 20 seconds of a core."""

CACHE = Path("/var/cache/mailcheck-tests/rspamd")
"""The compiled patterns, so that later runs of the tests start quickly. Only root can write it."""

STOP_SECONDS = 20
USER = "_rspamd"

CONFIGURATION = {
    # Fewer patterns are compiled at the start, and DNS is refused at once.
    "options.inc": (
        'disable_hyperscan = true; hs_cache_dir = "{cache}"; '
        'dns { nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; }'
    ),
    "worker-normal.inc": 'bind_socket = "{host}:{port}"; count = 1;',
    "worker-controller.inc": "enabled = false;",
    "worker-proxy.inc": "enabled = false;",
    "logging.inc": 'type = "console"; level = "error";',
    "fuzzy_check.conf": "enabled = false;",
    "classifier-bayes.conf": "enabled = false;",
    "rbl.conf": "enabled = false;",
}


@contextlib.contextmanager
def running_rspamd() -> Iterator[str]:
    """Run a server on a separate port; yield its URL."""
    program = shutil.which("rspamd")
    assert program, "rspamd is missing: apt-get install rspamd"
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="mailcheck-test-rspamd-") as name:
        folder = Path(name)
        (folder / "local.d").mkdir()
        cache = CACHE if os.geteuid() == 0 else folder
        cache.mkdir(parents=True, exist_ok=True)
        for file, text in CONFIGURATION.items():
            filled = text.replace("{host}", HOST).replace("{port}", str(port))
            filled = filled.replace("{cache}", str(cache))
            (folder / "local.d" / file).write_text(filled + "\n")
        command = [program, "--no-fork"]
        if os.geteuid() == 0:
            shutil.chown(folder, USER, USER)
            shutil.chown(cache, USER, USER)
            command += [f"--user={USER}", f"--group={USER}"]
        for variable in ("DBDIR", "RUNDIR", "LOGDIR", "LOCAL_CONFDIR"):
            command.append(f"--var={variable}={folder}")
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            url = f"http://{HOST}:{port}"
            _wait_until_it_answers(process, f"{url}/ping", folder / "output")
            yield url
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", url: str, output: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(URLError, OSError), urlopen(url, timeout=1) as answer:
            assert answer.read() == b"pong\r\n"
            return
        time.sleep(0.1)
    raise AssertionError(output.read_text("utf-8", "replace")[-5_000:])
