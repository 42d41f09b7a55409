"""The directory of a private spamd: its configuration, home directory and socket."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

PROGRAM = "spamd"
PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")
"""Directories to search after ``PATH``, which for daemons often lacks the ``sbin`` directories."""

SITE_FOLDERS = (
    "/etc/spamassassin",
    "/etc/mail/spamassassin",
    "/usr/local/etc/mail/spamassassin",
    "/opt/homebrew/etc/mail/spamassassin",
)
"""Directories with the machine's ``*.pre`` files, which load plugins."""

MAX_SOCKET_PATH = 100
"""Maximum octets of the path. Unix sockets are limited to 108 on Linux and 104 on macOS."""

LOCAL_CF = """\
# The score of a mail must not depend on earlier mail.
use_bayes 0
bayes_auto_learn 0
report_contact the operator of this server
# Seconds. An incomplete check is marked as such.
time_limit 20
# mailcheck adds this field at the top. A mail may already have others.
envelope_sender_header Return-Path
# All hosts are clients: no relay is trusted, and none is guessed from host names.
clear_trusted_networks
trusted_networks 255.255.255.255
"""


class SpamdSettings(Struct, frozen=True):
    """Settings of the private spamd. ``user`` applies if the daemon runs as root."""

    user: str = "nobody"
    network_tests: bool = False
    children: int = 2
    """Number of mails checked at a time. Each child uses about 120 MB. 0: there is no memory
    for a private spamd."""


class SpamdFolder(Struct, frozen=True):
    """A directory for one spamd that no other user can read."""

    path: Path

    @property
    def socket(self) -> str:
        """The path of the socket."""
        return str(self.path / "socket")

    def remove(self) -> None:
        """Delete the directory."""
        shutil.rmtree(self.path, ignore_errors=True)

    def command(self, program: str, settings: SpamdSettings) -> list[str]:
        """Return the command that starts spamd here, in the foreground."""
        site = self.path / "site"
        # Without plugins there are no checks, so spamd then uses its default configuration.
        own_site = [f"--siteconfigpath={site}"] if any(site.glob("*.pre")) else []
        return [
            program,
            *([] if settings.network_tests else ["--local"]),
            "--nouser-config",
            f"--max-children={settings.children}",
            "--min-children=1",
            "--max-spare=1",
            # Shorter than the timeout of the check, so that no child works on an abandoned mail.
            "--timeout-child=25",
            *own_site,
            f"--helper-home-dir={self.path}",
            f"--socketpath={self.socket}",
            "--socketmode=0600",
            "--syslog=stderr",
        ]


def find_spamd() -> str | None:
    """Return the path of the program, or `None` if it is not installed."""
    return shutil.which(PROGRAM, path=os.pathsep.join([os.environ.get("PATH", ""), *PLACES]))


def user_to_become(settings: SpamdSettings) -> str:
    """Return the user that spamd runs as; empty for the daemon's own user.

    :raises KeyError: there is no such user.
    """
    if os.geteuid() != 0:
        return ""
    pwd.getpwnam(settings.user)
    return settings.user


def make_folder(user: str, site_folders: Iterable[str] = SITE_FOLDERS) -> SpamdFolder:
    """Create the directory, owned by ``user`` (empty: the daemon's own user).

    It is a temporary directory and not in the state directory, since that may not be
    accessible for another user.

    :raises OSError: it cannot be created.
    """
    path = Path(tempfile.mkdtemp(prefix="mailcheck-spamd-"))
    if len(os.fsencode(path)) > MAX_SOCKET_PATH - len("/socket"):
        path.rmdir()
        path = Path(tempfile.mkdtemp(prefix="mailcheck-spamd-", dir="/tmp"))
    try:
        site = path / "site"
        site.mkdir()
        for source in _plugin_files(site_folders):
            shutil.copyfile(source, site / source.name)
        (site / "local.cf").write_text(LOCAL_CF, "ascii")
        if user:
            _give_to(path, user)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return SpamdFolder(path)


def _plugin_files(site_folders: Iterable[str]) -> list[Path]:
    for folder in site_folders:
        if found := sorted(Path(folder).glob("*.pre")):
            return found
    return []


def _give_to(path: Path, user: str) -> None:
    owner = pwd.getpwnam(user)
    for each in [path, *path.rglob("*")]:
        os.chown(each, owner.pw_uid, owner.pw_gid)
