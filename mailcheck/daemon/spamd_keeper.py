"""Supervises one spamd: starts it without privileges, and ends it when the input is closed.

Runs as ``python -m mailcheck.daemon.spamd_keeper FOLDER USER PROGRAM ARGUMENT...``.
An empty USER means the current user. The input is closed when the daemon is killed too, so
spamd never outlives it. FOLDER, the working directory and home of spamd, is
deleted at the end.
"""

import contextlib
import ctypes
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

END_SECONDS = 5.0
"""Seconds for spamd to end by itself, which takes about 0.1 s."""

REAP_ROUNDS, REAP_PAUSE = 40, 0.025  # seconds
"""Maximum number of checks that all processes have ended, and the pause between them."""

PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/opt/homebrew/bin"

PR_SET_CHILD_SUBREAPER = 36  # Linux, prctl(2)

CANNOT_START = 127
"""Exit status if spamd cannot be started, as in shells."""


def main(arguments: Sequence[str]) -> int:
    """Run spamd until it ends or the input is closed. Return its exit status."""
    folder, user, *command = arguments
    changes = _watch_signals()
    _adopt_orphans()
    # Signals to the daemon's process group are ignored: this process ends after the daemon.
    with contextlib.suppress(OSError):
        os.setsid()
    try:
        child = _start(folder, user, command)
        _wait(child, changes)
        return _end(child)
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        print(f"cannot keep {command[0]}: {error}", file=sys.stderr, flush=True)
        return CANNOT_START
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch_signals() -> int:
    """Return a descriptor that becomes readable when a child has ended."""
    changes, written = os.pipe()
    os.set_blocking(changes, False)
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    # Handled instead of ignored, since spamd would inherit ignored signals.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return changes


def _adopt_orphans() -> None:
    """Become the parent of orphans of spamd, since not every container has an init process."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _start(folder: str, user: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    rights: dict[str, Any] = {}
    if user:
        entry = pwd.getpwnam(user)
        rights = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        # The environment of the daemon may contain keys, so it is not passed on.
        env={"PATH": PATH, "HOME": folder, "TMPDIR": folder, "LC_ALL": "C"},
        process_group=0,
        umask=0o077,
        **rights,
    )


def _wait(child: "subprocess.Popen[bytes]", changes: int) -> None:
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin, changes], [], [])
        if changes in readable:
            os.read(changes, 4_096)
        if sys.stdin in readable and not os.read(sys.stdin.fileno(), 4_096):
            return


def _end(child: "subprocess.Popen[bytes]") -> int:
    child.terminate()
    try:
        status = child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        status = 1
    # Forked processes are killed too, also if spamd was killed.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    _reap_orphans()
    return status if status >= 0 else 128 - status


def _reap_orphans() -> None:
    """Reap killed processes. Processes that left the group are not waited for."""
    with contextlib.suppress(ChildProcessError):
        for _ in range(REAP_ROUNDS):
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(REAP_PAUSE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
