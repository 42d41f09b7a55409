"""The folder that a private spamd runs in: its configuration, its home, its socket."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

PROGRAM = "spamd"
PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")
"""Where it lies, beside those of ``PATH``: daemons seldom have the ``sbin`` folders there."""

SITE_FOLDERS = (
    "/etc/spamassassin",
    "/etc/mail/spamassassin",
    "/usr/local/etc/mail/spamassassin",
    "/opt/homebrew/etc/mail/spamassassin",
)
"""Where the machine's ``*.pre`` files lie, which say which plugins are loaded."""

MAX_SOCKET_PATH = 100
"""Octets: a Unix socket's path has room for 108 on Linux and 104 on macOS."""

LOCAL_CF = """\
# What was learned from other mail would give the same mail another score.
use_bayes 0
bayes_auto_learn 0
report_contact the operator of this server
# Seconds; it then stops in the middle and says so.
time_limit 20
# Ours is on top. A mail may bring others of this kind.
envelope_sender_header Return-Path
# Nobody hands mail in for others, and nothing is to be guessed from the names of hosts.
clear_trusted_networks
trusted_networks 255.255.255.255
"""


class SpamdSettings(Struct, frozen=True):
    """How the private spamd runs. ``user`` counts where the daemon is root."""

    user: str = "nobody"
    network_tests: bool = False
    children: int = 2
    """Mails judged at a time; each child holds about 120 MB."""


class SpamdFolder(Struct, frozen=True):
    """A folder made for one spamd; nobody else can look into it."""

    path: Path

    @property
    def socket(self) -> str:
        """Give the path of the socket."""
        return str(self.path / "socket")

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def command(self, program: str, settings: SpamdSettings) -> list[str]:
        """Give what starts a spamd here, in the foreground."""
        site = self.path / "site"
        # Without any plugin it judges nothing: it then finds its configuration by itself.
        own_site = [f"--siteconfigpath={site}"] if any(site.glob("*.pre")) else []
        return [
            program,
            *([] if settings.network_tests else ["--local"]),
            "--nouser-config",
            f"--max-children={settings.children}",
            "--min-children=1",
            "--max-spare=1",
            # Before we give up: a child must not go on with a mail nobody waits for.
            "--timeout-child=25",
            *own_site,
            f"--helper-home-dir={self.path}",
            f"--socketpath={self.socket}",
            "--socketmode=0600",
            "--syslog=stderr",
        ]


def find_spamd() -> str | None:
    """Give the path of the program, if it is installed."""
    return shutil.which(PROGRAM, path=os.pathsep.join([os.environ.get("PATH", ""), *PLACES]))


def user_to_become(settings: SpamdSettings) -> str:
    """Give the user that spamd is to run as; empty: the daemon's own.

    :raises KeyError: there is no such user.
    """
    if os.geteuid() != 0:
        return ""
    pwd.getpwnam(settings.user)
    return settings.user


def make_folder(user: str, site_folders: Iterable[str] = SITE_FOLDERS) -> SpamdFolder:
    """Make the folder, which belongs to ``user`` (empty: ours).

    It lies among temporary files and not in the state directory, into which
    another user than the daemon's need not be able to look.

    :raises OSError: it can't be made.
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
