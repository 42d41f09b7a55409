"""What the connections of IMAP and POP3 have in common: the login to an inbox and its failures."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from mailcheck.connections.sasl import PlainCredentials
from mailcheck.connections.server import PortSettings, ServedConnection, ServerFactory
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, InvalidCredentials, LimitExceeded, NotPermitted
from mailcheck.core.rights import Scope
from mailcheck.operations.accounts.log_in import LogIn
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.ports.journals import LoginJournal


class ProgramFactory(ServerFactory[PortSettings]):
    """Creates the connections of mail programs at one port."""

    def __init__(
        self,
        settings: PortSettings,
        clock: IReactorTime,
        log_in: LogIn,
        mailboxes: Mailboxes,
        journal: LoginJournal,
    ) -> None:
        super().__init__(settings, clock)
        self.log_in = log_in
        self.mailboxes = mailboxes
        self.journal = journal


class ProgramConnection(ServedConnection):
    """A connection of a mail program, which logs in to an inbox."""

    factory: Any

    def __init__(self, factory: ProgramFactory) -> None:
        super().__init__(factory.settings, factory.clock, factory.open)
        self.mailboxes = factory.mailboxes
        self.journal = factory.journal
        self._log_in = factory.log_in
        self._auth_failures = 0
        self._until_lost = ExitStack()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything."""
        super().connectionLost(reason)
        self._until_lost.close()

    def note_reply(self, line: bytes) -> None:
        """Do nothing: failed logins are in the journal."""

    async def identify(self, credentials: PlainCredentials) -> Caller:
        """Return the caller with a name and a password.

        :raises InvalidCredentials: nobody has them.
        """
        return await self._log_in.identify(
            credentials.user, credentials.password, self.client_ip, (Scope.INBOX_READ,)
        )

    def note_login(self, caller: Caller, end: Callable[[ExpectedFailure], None]) -> None:
        """Record a login. ``end`` is called when the access of the caller ends."""
        self._until_lost.enter_context(self._log_in.watched(caller, end))
        self.journal.note_login(self.client_ip, caller.account_id)

    def note_failed_login(self, failure: Failure) -> bool:
        """Record a failed login, and return whether there were too many."""
        if isinstance(failure.value, InvalidCredentials | NotPermitted | LimitExceeded):
            self.journal.note_failed_login(self.client_ip, str(failure.value))
            self._auth_failures += 1
        return self._auth_failures >= self.settings.auth_failures
