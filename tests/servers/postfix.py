"""A real Postfix on loopback that relays its mail to a daemon.

    with running_postfix(daemon.smtp_port, {"mailcheck.example": "127.0.0.6"}) as postfix:
        ...  # postfix.port, postfix.flush()

Its queue, data and configuration are in a temporary folder, independent of the machine's own
Postfix. It can only be started as root.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.servers.daemon import free_ports
from tests.servers.programs import find_program

HOST = "127.0.0.1"
DEADLINE = 60.0  # seconds
POLL = 0.02  # seconds

_MAIN = """\
compatibility_level = 3.6
myhostname = relay.example
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtputf8_enable = yes
disable_dns_lookups = yes
smtpd_peername_lookup = no
alias_maps =
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
relay_domains = {domains}
transport_maps = inline:{{ {transports} }}
smtp_send_xforward_command = yes
# All mail uses one open connection: facts about a client must not apply to the next mail.
default_destination_concurrency_limit = 1
smtp_connection_cache_destinations = 127.0.0.1
smtp_connection_cache_time_limit = 60s
"""

# service, type, private, unprivileged, chroot, wakeup, maximum, command
_MASTER = """\
{host}:{port} inet n - n - - smtpd
postlog unix-dgram n - n - 1 postlogd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
showq unix n - n - - showq
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
"""


class Postfix:
    """A running Postfix; ``port`` accepts mail."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder

    def log(self) -> str:
        """Return its log."""
        return (self._folder / "log").read_text()

    def start(self) -> None:
        """Start it and wait until it accepts mail."""
        command = [find_program("postfix"), "-c", str(self._folder), "start"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr + self.log()

    def stop(self) -> None:
        """Stop its master, which ends all other processes."""
        with (self._folder / "queue" / "pid" / "master.pid").open("r+") as file:
            os.kill(int(file.read()), signal.SIGTERM)
            fcntl.flock(file, fcntl.LOCK_EX)  # the master holds the lock as long as it lives


@contextlib.contextmanager
def running_postfix(
    relay_port: int, sources: Mapping[str, str], settings: str = ""
) -> Iterator[Postfix]:
    """Run Postfix as long as the context lasts.

    ``sources`` maps the relayed domains to the local addresses from which it connects for them.
    ``settings`` are more lines of main.cf.
    """
    find_program("postfix")
    if os.getuid() != 0:
        pytest.skip(
            "Postfix starts as root only: sudo .venv/bin/pytest tests/interop/test_proxies.py"
        )
    with tempfile.TemporaryDirectory(prefix="mailcheck-postfix-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # Postfix processes run as another user
        postfix = Postfix(folder, free_ports(1)[0])
        _configure(folder, postfix.port, relay_port, sources, settings)
        postfix.start()
        try:
            yield postfix
        finally:
            postfix.stop()


def _configure(
    folder: Path, port: int, relay_port: int, sources: Mapping[str, str], settings: str
) -> None:
    services = {domain: f"from-{address}" for domain, address in sources.items()}
    transports = [
        f"{{ {domain} = {service}:[{HOST}]:{relay_port} }}" for domain, service in services.items()
    ]
    main = _MAIN.format(folder=folder, domains=", ".join(sources), transports=", ".join(transports))
    master = _MASTER.format(host=HOST, port=port)
    for domain, address in sources.items():
        master += f"{services[domain]} unix - - n - - smtp -o smtp_bind_address={address}\n"
    (folder / "main.cf").write_text(main + settings)
    (folder / "master.cf").write_text(master)
    for directory in ("queue", "data"):
        (folder / directory).mkdir()
    shutil.chown(folder / "data", "postfix")
