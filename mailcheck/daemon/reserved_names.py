"""Accounts that the configuration names and that may not exist yet."""

from collections.abc import Callable, Sequence
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure
from mailcheck.daemon.first_start import ACCOUNT_NAME
from mailcheck.operations.accounts.manage_accounts import ManageAccounts


class MissingAccounts(Service):
    """Logs which of these accounts do not exist, after startup and after a reload.

    Without any account, the first start creates that with `ACCOUNT_NAME` now.

    :param named: returns pairs of an option and the account that it names.
    """

    _log = Logger()

    def __init__(
        self,
        accounts: ManageAccounts,
        named: Callable[[], Sequence[tuple[str, str]]],
        reactor: Any,
    ) -> None:
        self._accounts = accounts
        self._named = named
        self._reactor = reactor

    def startService(self) -> None:
        """Check when the reactor runs."""
        super().startService()
        self._reactor.callWhenRunning(self.look)

    def look(self) -> Deferred[None]:
        """Check now. Fires when the warnings are logged."""
        if not self._named():
            return succeed(None)
        return Deferred.fromCoroutine(self._look()).addErrback(self._log_failure)

    async def _look(self) -> None:
        known = {account.name for account in await self._accounts.accounts()} or {ACCOUNT_NAME}
        for option, name in self._named():
            if name not in known:
                self._log.warn(
                    "{option} names the account {name!r}, which does not exist. The name is "
                    "reserved, so people cannot take it. Add it with `mailcheck account add` or "
                    "`mailcheck project add`, or remove the name from the option.",
                    option=option,
                    name=name,
                )

    def _log_failure(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure)
        self._log.warn("the accounts could not be listed: {why}", why=failure.getErrorMessage())
