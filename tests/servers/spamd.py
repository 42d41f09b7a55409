"""The real SpamAssassin of this machine, without network tests.

    find_real_spamd()                 # skips the test if it is not installed
    with running_spamd() as address:  # "127.0.0.1:<port>"
        ...

The private spamd of the daemon is started through `assemble_filter`.
"""

import contextlib
import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailcheck.daemon.spamd_folder import find_spamd
from tests.servers.daemon import free_ports

HOST = "127.0.0.1"
STOP_SECONDS = 10
USER = "nobody"

GTUBE = b"XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X\r\n"
"""The GTUBE text, worth 1000 points: https://spamassassin.apache.org/gtube/."""


def find_real_spamd() -> str:
    """Return the path of the program, or skip the test."""
    program = find_spamd()
    if program is None:
        pytest.skip("spamd is missing: apt-get install spamassassin spamd")
    return program


@contextlib.contextmanager
def running_spamd() -> Iterator[str]:
    """Run a server on a separate port, configured as in Debian; yield ``host:port``."""
    program = find_real_spamd()
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory(prefix="mailcheck-test-spamd-") as name:
        folder = Path(name)
        rights: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam(USER)
            rights = {"user": owner.pw_uid, "group": owner.pw_gid}
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        process = subprocess.Popen(
            [
                program,
                "--local",
                "--nouser-config",
                "--max-children=1",
                f"--helper-home-dir={folder}",
                f"--listen={HOST}:{port}",
                f"--allowed-ips={HOST}",
                "--syslog=stderr",
            ],
            env={"PATH": "/usr/bin:/bin", "HOME": name, "TMPDIR": name},
            stderr=subprocess.PIPE,
            **rights,
        )
        try:
            _wait_until_it_listens(process)
            yield f"{HOST}:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=STOP_SECONDS)


def _wait_until_it_listens(process: "subprocess.Popen[bytes]") -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if b"server started on" in line:
            return
    raise AssertionError(b"".join(said).decode("utf-8", "replace"))
