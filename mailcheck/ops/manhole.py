"""A Python shell inside the running daemon, over SSH: for looking at what no metric tells.

Whoever gets in can do all that the daemon can. So there is none unless the operator
asks for it, it listens on this machine alone, and it takes keys and no passwords.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from twisted.conch.checkers import IAuthorizedKeysDB, SSHPublicKeyChecker
from twisted.conch.manhole import ColoredManhole
from twisted.conch.manhole_ssh import ConchFactory, TerminalRealm, TerminalSession
from twisted.conch.ssh.keys import BadKeyError, Key
from twisted.cred.portal import Portal
from twisted.logger import Logger
from zope.interface import implementer

HOST_KEY_FILE = "manhole-host-key"

_log = Logger()


@implementer(IAuthorizedKeysDB)
class OperatorKeys:
    """The keys that open the shell, under any user name: read anew for each who asks.

    :raises OSError: the file can't be read.
    :raises ValueError: a line of it is no key, or it has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not self._read():
            raise ValueError(f"{path} has no key")

    def getAuthorizedKeys(self, username: bytes) -> list[Key]:  # noqa: N802
        """Give the keys; none where the file can't be read any more."""
        try:
            return self._read()
        except (OSError, ValueError) as error:
            _log.error("nobody gets into the manhole: {error}", error=error)
            return []

    def _read(self) -> list[Key]:
        lines = self._path.read_bytes().splitlines()
        keys = []
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith(b"#"):
                try:
                    keys.append(Key.fromString(line))
                except BadKeyError:
                    raise ValueError(f"{self._path}, line {number} is no public key") from None
        return keys


def ensure_host_key(folder: Path) -> Key:
    """Load the key by which clients know this daemon; make it where there is none.

    :raises OSError: the folder can't be read or written.
    """
    path = folder / HOST_KEY_FILE
    if not path.exists():
        written = ed25519.Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(written)
    key: Key = Key.fromFile(str(path))
    return key


class _Session(TerminalSession):
    """Twisted's, which would end where a window changes its size or no more is typed."""

    def windowChanged(self, newWindowSize: object) -> None:  # noqa: N802, N803
        """Keep the size that it began with."""

    def eofReceived(self) -> None:  # noqa: N802
        """Go on: what was typed before may still be worked on; the client hangs up in the end."""


class Manhole(ConchFactory):
    """The factory for its connections; ``namespace`` is what one finds inside."""

    noisy = False

    def __init__(self, keys: OperatorKeys, host_key: Key, namespace: Mapping[str, Any]) -> None:
        realm: Any = TerminalRealm()  # whose word that it is an IRealm no type checker sees
        realm.sessionFactory = _Session
        realm.chainedProtocolFactory.protocolFactory = lambda _: _open_shell(namespace)
        super().__init__(Portal(realm, [SSHPublicKeyChecker(keys)]))
        # Twisted's types say bytes here, and its code asks for keys.
        self.publicKeys: dict[bytes, Any] = {host_key.sshType(): host_key.public()}
        self.privateKeys: dict[bytes, Any] = {host_key.sshType(): host_key}


def _open_shell(namespace: Mapping[str, Any]) -> ColoredManhole:
    _log.warn("a shell was opened inside the daemon")
    return ColoredManhole(dict(namespace))


class Shown:
    """A list as it is at the moment, one line for each thing in it."""

    def __init__(self, name: str, read: Callable[[], list[Any]]) -> None:
        self._name = name
        self._read = read

    def __iter__(self) -> Iterator[Any]:
        """Give them one by one."""
        return iter(self._read())

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._read())

    def __getitem__(self, number: int) -> Any:
        """Give one of them."""
        return self._read()[number]

    def __repr__(self) -> str:
        """Write them out."""
        rows = [f"{number:4} {one!r}" for number, one in enumerate(self._read())]
        return "\n".join([f"{len(rows)} {self._name}", *rows])


_HELP = """\
You are inside the running mailcheck daemon. What you do here it does, and while you
compute it takes no mail. The result of a Deferred is shown as soon as it is there.

  services   its services, in the order in which they start; services[3] is one of them
  store      where mail is: store.find_inbox("dev-...") and others give Deferreds
  waiters    the waits that are parked: for which account, and for what
  conditions what the daemon stands on: conditions.problems
  help()     this text

Leave with Ctrl-D. Ctrl-C gives you a new line."""


class Help:
    """Says what one can do, called or not."""

    def __call__(self) -> None:
        """Print it."""
        print(_HELP)

    def __repr__(self) -> str:
        """Write it."""
        return _HELP
