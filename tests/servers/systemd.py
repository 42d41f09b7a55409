"""A replacement for systemd: passes sockets, receives notifications, and reloads a daemon."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.servers.daemon import HOST, POLL, Daemon

FIRST_DESCRIPTOR = 3  # sd_listen_fds(3)
PATIENCE = 60.0  # seconds

# The descriptors get their numbers, and LISTEN_PID is set, between fork and exec, as by systemd.
LAUNCHER = """
import os, sys
given = [int(number) for number in sys.argv[1].split(",")]
high = [os.dup(number) for number in given]
for number, descriptor in enumerate(high, 3):
    os.dup2(descriptor, number)
    os.set_inheritable(number, True)
os.closerange(3 + len(high), 1000)
os.environ["LISTEN_PID"] = os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class SupervisedDaemon(Daemon):
    """A daemon under the replacement; ``heard`` contains all notifications.

    Mail arrives on a socket for IPv6 and IPv4, as systemd creates it for ``ListenStream=25``.
    """

    def __init__(self, folder: Path, watchdog: float, **options: Any) -> None:
        super().__init__(folder, **options)
        mail = socket.socket(socket.AF_INET6)
        mail.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        mail.bind(("::", 0))
        submission, http = socket.socket(), socket.socket()
        for one in (submission, http):
            one.bind((HOST, 0))
        self.sockets = {"mail": mail, "submission": submission, "http": http}
        for one in self.sockets.values():
            one.listen(100)
        ports = [one.getsockname()[1] for one in self.sockets.values()]
        self.smtp_port, self.submission_port, self.http_port = ports
        self.heard: list[str] = []
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear_path = f"\0mailcheck-test-{os.getpid()}-{self.smtp_port}"
        self._ear.bind(self._ear_path)
        self._watchdog = watchdog
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the daemon, with systemd's variables."""
        return {
            **super().environment,
            "MAILCHECK_SMTP_LISTEN": "systemd:domain=INET6:name=mail",
            "MAILCHECK_SMTP_SUBMISSION_LISTEN": "systemd:domain=INET:name=submission",
            "MAILCHECK_WEB_LISTEN": "systemd:domain=INET:name=http",
            "LISTEN_FDS": str(len(self.sockets)),
            "LISTEN_FDNAMES": ":".join(self.sockets),
            "NOTIFY_SOCKET": "@" + self._ear_path[1:],
            "WATCHDOG_USEC": str(int(self._watchdog * 1e6)),
        }

    def launch(self, terminal: int | None = None) -> None:
        """Start the daemon with the sockets, without waiting."""
        self.starts += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        numbers = [one.fileno() for one in self.sockets.values()]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, ",".join(map(str, numbers)), *self._command],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=numbers,
                start_new_session=True,
            )

    def wait_for(self, word: str, count: int = 1) -> str:
        """Wait for the n-th notification with a word; return the whole message."""
        deadline = time.monotonic() + PATIENCE
        while True:
            said = [message for message in self.heard if word in message.split("\n")]
            if len(said) >= count:
                return said[count - 1]
            assert self.process.poll() is None or word == "STOPPING=1", self.output()
            assert time.monotonic() < deadline, f"no {word} in {self.heard}:\n{self.output()}"
            time.sleep(POLL)

    def wait_for_line(self, text: str) -> None:
        """Wait until its log contains a text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.output():
            assert time.monotonic() < deadline, f"no {text!r}:\n{self.output()}"
            time.sleep(POLL)

    def reload(self) -> None:
        """Do what ``systemctl reload`` does, and wait until it is done."""
        before = self.output().count("reloaded:") + self.output().count("stays as it was")
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while self.output().count("reloaded:") + self.output().count("stays as it was") <= before:
            assert time.monotonic() < deadline, self.output()
            time.sleep(POLL)

    def close(self) -> None:
        """Close the sockets of the replacement."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._ear_path)
        for one in (*self.sockets.values(), self._ear):
            one.close()

    def _listen(self) -> None:
        # Read continuously: a daemon drops notifications that are not received.
        with contextlib.suppress(OSError):
            while message := self._ear.recv(4_096):
                self.heard.append(message.decode())


@contextlib.contextmanager
def supervised_daemon(folder: Path, watchdog: float, **options: Any) -> Iterator[SupervisedDaemon]:
    """Run a daemon under the replacement as long as the context lasts."""
    daemon = SupervisedDaemon(folder, watchdog, **options)
    try:
        daemon.launch()
        yield daemon
    finally:
        daemon.kill()
        daemon.close()
