"""The first start: creates an account, an API key and a password, and prints the next steps.

The daemon is not ready before these exist, since a client that waits for `/readyz` uses the
key at once.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TextIO

from msgspec import Struct
from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.accounts import Account
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.audit import DAEMON
from mailcheck.core.errors import AccountNameTaken, ExpectedFailure
from mailcheck.core.identifiers import KEY_FILE, PASSWORD_FILE, RandomBytes, new_password
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.sign_in import SignIn
from mailcheck.operations.concurrency import stop_timer

ACCOUNT_NAME = "developer"


class Shown(Struct, frozen=True):
    """The file of a secret, if any, and the secret itself if it may be printed."""

    path: Path | None
    secret: str | None


RETRY = 2.0
"""Seconds between attempts while the store or the folder of the key cannot be written."""


Note = Callable[[str], object]
"""Called with the cause of a failure, or with an empty text once the first account exists."""


class FirstSteps(Protocol):
    """Renders the next steps for a new user."""

    def __call__(self, address: str, key: "Shown", name: str, password: "Shown") -> str:
        """Return the text. ``name`` and ``password`` are for the dashboard."""


class FirstStart(Service):
    """Create the first account if the options ask for it, and print the next steps.

    Steps that fail because of the store or the disk are retried until they succeed.

    :param note: called with the cause of each failure, and with an empty text on success.
    """

    _log = Logger()

    def __init__(
        self,
        accounts: ManageAccounts,
        sign_in: SignIn,
        random_bytes: RandomBytes,
        preset_key: str,
        state_directory: Path,
        domain: str,
        first_steps: FirstSteps,
        note: Note,
        reactor: Any,
        output: TextIO,
    ) -> None:
        self._accounts = accounts
        self._sign_in = sign_in
        self._random_bytes = random_bytes
        self._preset_key = preset_key
        self._key_path = state_directory / KEY_FILE
        self._password_path = state_directory / PASSWORD_FILE
        self._domain = domain
        self._first_steps = first_steps
        self._note = note
        self._reactor = reactor
        self._output = output
        self._issued: str | None = None
        self._retry: IDelayedCall | None = None

    def startService(self) -> None:
        """Start when the reactor runs."""
        super().startService()
        self._reactor.callWhenRunning(self._begin)

    def stopService(self) -> None:
        """Cancel a pending retry."""
        super().stopService()
        stop_timer(self._retry)

    def _begin(self) -> Deferred[None]:
        prepared = Deferred.fromCoroutine(self._prepare())
        return prepared.addErrback(self._try_again).addErrback(self._log_failure)

    async def _prepare(self) -> None:
        account = await self._first_account()
        if account is None:
            self._note("")
            return
        secret = await self._ensure_key(account)
        password = await self._ensure_password(account)
        self._note("")
        address = join_subaddress(account.mailbox_name, "", self._domain)
        if not self._output.isatty():
            secret, password = None, replace(password, secret=None)
        self._output.write(
            self._first_steps(address, Shown(self._key_path, secret), account.name, password)
        )
        self._output.flush()

    def _try_again(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure, OSError)
        self._note(failure.getErrorMessage())
        if self.running:
            self._retry = self._reactor.callLater(RETRY, self._begin)

    async def _first_account(self) -> Account | None:
        """Return the first account, and make it in an empty database. `None`: it was deleted."""
        first = await self._accounts.first()
        if first is None and not await self._accounts.accounts():
            try:
                return await self._accounts.add(ACCOUNT_NAME, by=DAEMON)
            except AccountNameTaken:
                return await self._accounts.first()  # another daemon has just created it
        return first

    async def _ensure_key(self, account: Account) -> str | None:
        """Return the key of the first account if it is new. Its file has mode 0600."""
        key_path = self._key_path
        if self._preset_key:
            if not await self._accounts.has_key(self._preset_key):
                await self._accounts.issue_key(
                    account, "preset", preset=self._preset_key, by=DAEMON
                )
            write_secret(key_path, self._preset_key)
            return None
        if key_path.exists() and await self._accounts.has_key(key_path.read_text().strip()):
            return None
        if self._issued is None:
            self._issued = (
                await self._accounts.issue_key(account, "first start", by=DAEMON)
            ).secret
        write_secret(key_path, self._issued)
        return self._issued

    async def _ensure_password(self, account: Account) -> Shown:
        """Set a password of the first account if it has none. Its file has mode 0600."""
        path = self._password_path
        if not await self._sign_in.has_password(account):
            secret = new_password(self._random_bytes)
            write_secret(path, secret)
            if await self._sign_in.set_first_password(account, secret, DAEMON):
                # Again, since another daemon may have written its own password meanwhile.
                write_secret(path, secret)
                return Shown(path, secret)
            if path.exists() and path.read_text().strip() == secret:
                path.unlink()
        kept = path.read_text().strip() if path.exists() else ""
        is_kept = bool(kept) and await self._sign_in.is_password(account, kept)
        return Shown(path if is_kept else None, None)

    def _log_failure(self, failure: Failure) -> None:
        self._note(failure.getErrorMessage())
        self._log.failure("the first account could not be created", failure)


def write_secret(path: Path, secret: str) -> None:
    """Write a secret to a file of mode 0600, replacing an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secret + "\n")
