"""A real HAProxy in front of a daemon, on loopback.

    sections = {"mail": f"server daemon 127.0.0.1:{daemon.smtp_port} send-proxy"}
    with running_haproxy(sections) as haproxy:
        ...  # haproxy.ports["mail"]

It runs as an ordinary user (``nobody`` when the tests run as root), with its configuration in a
temporary folder, and is stopped afterwards.
"""

import contextlib
import os
import pwd
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers.daemon import Daemon
from tests.servers.programs import find_program

HOST = "127.0.0.1"
BACKLOG = 128
DEADLINE = 60.0  # seconds
POLL = 0.01  # seconds
SHIPPED = Path(__file__).parents[2] / "etc" / "haproxy.cfg"
OPTIONS = {
    "mail": "SMTP_LISTEN",
    "submission": "SMTP_SUBMISSION_LISTEN",
    "imap": "IMAP_LISTEN",
    "pop3": "POP3_LISTEN",
    "web": "WEB_LISTEN",
}
"""The options with the ports of the shipped sections."""
BALANCER = "127.0.0.9"
"""Source address of the shipped HAProxy; daemons trust PROXY headers from this address only."""

_CONFIGURATION = """\
global
    log stdout format raw local0
{user}
defaults
    log global
    timeout connect 5s
    timeout client 90s
    timeout server 90s
"""

_SECTION = """
listen {name}
    bind fd@{descriptor}
{lines}
"""


@dataclass(frozen=True, slots=True)
class HaProxy:
    """A running HAProxy: the port of each section, and its log."""

    ports: Mapping[str, int]
    _log: Path

    def log(self) -> str:
        """Return its log."""
        return self._log.read_text()

    def when_logged(self, words: str) -> None:
        """Wait until its log contains the words."""
        deadline = time.monotonic() + DEADLINE
        while words not in self.log():
            assert time.monotonic() < deadline, f"HAProxy did not log {words!r}:\n{self.log()}"
            time.sleep(POLL)


@contextlib.contextmanager
def running_haproxy(sections: Mapping[str, str], head: str = _CONFIGURATION) -> Iterator[HaProxy]:
    """Run HAProxy as long as the context lasts.

    A section contains the lines of its ``listen`` except ``bind``. The ports are opened here and
    passed on, so that no other process can take one and clients may connect at once.
    """
    haproxy = find_program("haproxy")
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-haproxy-") as name,
        _ports(sections) as ports,
    ):
        folder = Path(name)
        configuration, log = folder / "haproxy.cfg", folder / "log"
        configuration.write_text(_configure(head, sections, ports))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [haproxy, "-db", "-f", str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[port.fileno() for port in ports.values()],
            )
        numbers = {section: port.getsockname()[1] for section, port in ports.items()}
        running = HaProxy(numbers, log)
        for port in ports.values():
            port.close()  # without HAProxy clients are refused instead of waiting
        try:
            yield running
            assert process.poll() is None, f"HAProxy has ended:\n{running.log()}"
        finally:
            process.terminate()
            process.wait(DEADLINE)


@contextlib.contextmanager
def running_balancer(daemons: Sequence[Daemon]) -> Iterator[HaProxy]:
    """Run HAProxy with the shipped configuration, ``etc/haproxy.cfg``, in front of daemons.

    It connects to them from ``BALANCER``, to the ports on which they listen.
    """
    sections: dict[str, str] = {}
    head, *listens = re.split(r"^listen (\w+)\n", SHIPPED.read_text(), flags=re.MULTILINE)
    for name, lines in zip(listens[::2], listens[1::2], strict=True):
        option = f"MAILCHECK_{OPTIONS[name]}"
        if option not in daemons[0].environment:
            continue
        kept = [line for line in lines.splitlines() if not re.match(r" +(bind|server) ", line)]
        for number, daemon in enumerate(daemons):
            check = "" if name == "web" else f" port {daemon.http_port}"
            kept.append(f"    server d{number} {daemon.environment[option]}{check}")
        sections[name] = "\n".join(kept)
    head = re.sub(r"maxconn \d+", "maxconn 2000", head)
    head = re.sub(r"(default-server .*)", rf"\1 source {BALANCER}", head)
    with running_haproxy(sections, head.replace("\nglobal\n", "\nglobal\n{user}\n")) as haproxy:
        yield haproxy


@contextlib.contextmanager
def _ports(sections: Mapping[str, str]) -> Iterator[dict[str, socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield {
            section: stack.enter_context(socket.create_server((HOST, 0), backlog=BACKLOG))
            for section in sections
        }


def _configure(head: str, sections: Mapping[str, str], ports: Mapping[str, socket.socket]) -> str:
    listens = [
        _SECTION.format(name=section, descriptor=ports[section].fileno(), lines=lines)
        for section, lines in sections.items()
    ]
    return head.format(user=_ordinary_user()) + "".join(listens)


def _ordinary_user() -> str:
    if os.getuid() != 0:
        return ""
    nobody = pwd.getpwnam("nobody")
    return f"    uid {nobody.pw_uid}\n    gid {nobody.pw_gid}"
