"""Debian's Dovecot, as another server for IMAP and POP3 with the same mails.

with running_dovecot() as dovecot:
    imaplib.IMAP4("127.0.0.1", dovecot.imap).login(USER, PASSWORD)
"""

import contextlib
import getpass
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.servers.daemon import free_ports
from tests.servers.programs import find_program

HOST = "127.0.0.1"
USER, PASSWORD = "reader", "secret"
START_SECONDS = 30
STOP_SECONDS = 10

CONFIG = """\
protocols = imap pop3
listen = {host}
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain
first_valid_uid = 1
{users}
mail_location = sdbox:~/mail
mail_attribute_dict =
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={owner} gid={group} home={folder}/home/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service pop3-login {{
  chroot =
  inet_listener pop3 {{
    port = {pop3}
  }}
  inet_listener pop3s {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
protocol imap {{
  mail_max_userip_connections = 2000
}}
"""


class Dovecot(NamedTuple):
    """The ports of a running server, and its process."""

    imap: int
    pop3: int
    folder: Path


@contextlib.contextmanager
def running_dovecot(more: str = "") -> Iterator[Dovecot]:
    """Run a server with an empty inbox, or skip the test if it is not installed.

    :param more: further settings, which override the others.
    """
    program = find_program("dovecot", package="dovecot-imapd dovecot-pop3d")
    imap, pop3 = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="mailcheck-test-dovecot-") as name:
        folder = Path(name)
        owner = "nobody" if os.geteuid() == 0 else getpass.getuser()
        group = "nogroup" if os.geteuid() == 0 else str(os.getgid())
        users = (
            ""
            if os.geteuid() == 0
            else (
                f"default_internal_user = {owner}\ndefault_login_user = {owner}\n"
                f"default_internal_group = {group}\n"
            )
        )
        folder.chmod(0o755)
        (folder / "home").mkdir()
        (folder / "home").chmod(0o777)
        config = folder / "dovecot.conf"
        config.write_text(
            CONFIG.format(
                host=HOST,
                folder=folder,
                users=users,
                password=PASSWORD,
                owner=owner,
                group=group,
                imap=imap,
                pop3=pop3,
            )
            + more
        )
        process = subprocess.Popen([program, "-F", "-c", str(config)])
        try:
            deadline = time.monotonic() + START_SECONDS
            for port in (imap, pop3):
                while not _answers(port):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise AssertionError((folder / "log").read_text())
                    time.sleep(0.05)
            yield Dovecot(imap, pop3, folder)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            return bool(connection.recv(1))
    except OSError:
        return False
