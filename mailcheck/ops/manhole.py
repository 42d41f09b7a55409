"""A Python shell inside the running daemon, over SSH, for problems that no metric shows.

A user of the shell has all rights of the daemon. It is therefore off by default, listens on this
machine only, and accepts keys but not passwords.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from msgspec import Struct
from twisted.conch.checkers import IAuthorizedKeysDB, SSHPublicKeyChecker
from twisted.conch.manhole import ColoredManhole
from twisted.conch.manhole_ssh import ConchFactory, TerminalRealm, TerminalSession
from twisted.conch.ssh.keys import BadKeyError, EncryptedKeyError, Key
from twisted.cred.portal import Portal
from twisted.logger import Logger
from zope.interface import implementer

HOST_KEY_FILE = "manhole-host-key"

_log = Logger()


@implementer(IAuthorizedKeysDB)
class OperatorKeys:
    """The public keys that may open the shell, with any user name; read again for each connection.

    :raises OSError: the file cannot be read.
    :raises ValueError: a line is not a key, or the file contains no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not self._read():
            raise ValueError(f"{path} has no key")

    def getAuthorizedKeys(self, username: bytes) -> list[Key]:  # noqa: N802
        """Return the keys, or an empty list if the file cannot be read."""
        try:
            return self._read()
        except (OSError, ValueError) as error:
            _log.error("the manhole rejects all keys: {error}", error=error)
            return []

    def _read(self) -> list[Key]:
        lines = self._path.read_bytes().splitlines()
        keys = []
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith(b"#"):
                try:
                    keys.append(Key.fromString(line))
                except BadKeyError:
                    raise ValueError(f"{self._path}, line {number} is not a public key") from None
        return keys


def find_host_key(folder: Path) -> Key | None:
    """Return the host key of this daemon, or `None` if it has none yet.

    :raises OSError: it cannot be read.
    :raises ValueError: the file is not a private key.
    """
    path = folder / HOST_KEY_FILE
    if not path.exists():
        return None
    try:
        key: Key = Key.fromFile(str(path))
    except (BadKeyError, EncryptedKeyError):
        raise ValueError(f"{path} is not a private key") from None
    return key


def make_host_key(folder: Path | None) -> Key:
    """Create a host key, and write it to a folder if there is one.

    :raises OSError: the folder cannot be written.
    """
    written = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / HOST_KEY_FILE
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(written)
    key: Key = Key.fromString(written)
    return key


class _Session(TerminalSession):
    """Twisted's session, which would end at a change of the window size or at the end of input."""

    def windowChanged(self, newWindowSize: object) -> None:  # noqa: N802, N803
        """Ignore the new size."""

    def eofReceived(self) -> None:  # noqa: N802
        """Continue, since earlier input may still be running; the client closes the connection."""


class Manhole(ConchFactory):
    """The factory of its connections; ``namespace`` has the variables of the shell."""

    noisy = False

    def __init__(self, keys: OperatorKeys, host_key: Key, namespace: Mapping[str, Any]) -> None:
        realm: Any = TerminalRealm()  # type checkers do not see that it provides IRealm
        realm.sessionFactory = _Session
        realm.chainedProtocolFactory.protocolFactory = lambda _: _open_shell(namespace)
        super().__init__(Portal(realm, [SSHPublicKeyChecker(keys)]))
        # Twisted declares bytes here, but uses keys.
        self.publicKeys: dict[bytes, Any] = {host_key.sshType(): host_key.public()}
        self.privateKeys: dict[bytes, Any] = {host_key.sshType(): host_key}


def _open_shell(namespace: Mapping[str, Any]) -> ColoredManhole:
    _log.warn("a shell was opened inside the daemon")
    return ColoredManhole(dict(namespace))


class Shown(Struct, frozen=True, eq=False):
    """A live list, shown with one line for each item."""

    name: str
    read: Callable[[], list[Any]]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the current items."""
        return iter(self.read())

    def __len__(self) -> int:
        """Return the current number of items."""
        return len(self.read())

    def __getitem__(self, number: int) -> Any:
        """Return one of the current items."""
        return self.read()[number]

    def __repr__(self) -> str:
        """Return the current items as text."""
        rows = [f"{number:4} {row!r}" for number, row in enumerate(self.read())]
        return "\n".join([f"{len(rows)} {self.name}", *rows])


_HELP = """\
You are inside the running mailcheck daemon. Your commands run in its reactor, and it
accepts no mail while they run. The result of a Deferred is shown when it fires.

  services   the services, in the order of their start; services[3] is one of them
  store      the store of mail: store.find_inbox("dev-...") and others return Deferreds
  waiters    the parked waits, with their accounts and filters
  sessions   the connections of mail programs (IMAP, POP3), with their accounts and mailboxes
  conditions the state of store, disk and resolvers: conditions.problems
  help()     this text

Leave with Ctrl-D. Ctrl-C starts a new line."""


class Help:
    """Shows the help text, with or without a call."""

    def __call__(self) -> None:
        """Print the text."""
        print(_HELP)

    def __repr__(self) -> str:
        """Return the text."""
        return _HELP
