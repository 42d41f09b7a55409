"""Expected failures, one exception each, named after the condition.

They say what happened in one readable sentence. What a client of HTTP, SMTP
or MCP gets for each is written in one table per wire: ``web/site/errors.py``,
``smtp/replies.py``. Anything that is not an `ExpectedFailure` is our own crash.
"""

from typing import Any


class ExpectedFailure(Exception):
    """Base of all expected failures: the message may be shown to the client.

    ``reference`` finds the cause in the log; empty if the log has no more than the message.
    """

    reference = ""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its arguments; not all of ours take them as they are.
        return _made_again, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else type(self).__name__


def _made_again(
    kind: type[ExpectedFailure], arguments: tuple[Any, ...], facts: dict[str, Any]
) -> ExpectedFailure:
    failure = kind.__new__(kind)
    failure.args = arguments
    vars(failure).update(facts)
    return failure


class InvalidParameter(ExpectedFailure):
    """A parameter is missing or can't be what it is; ``name`` is the parameter."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(problem)
        self.name = name


class InvalidCredentials(ExpectedFailure):
    """The API key is missing, unknown or revoked, or two keys contradict each other."""


class MessageNotFound(ExpectedFailure):
    """No such message in this account: never there, deleted, or expired."""

    def __init__(
        self, why: str = "there is no such message: never there, deleted, or expired"
    ) -> None:
        super().__init__(why)


class DeliverabilityTestNotFound(ExpectedFailure):
    """No such deliverability test in this account: never made, or forgotten."""


class NoMailYet(ExpectedFailure):
    """The deliverability test has got no mail that could be looked at."""


class AttachmentNotFound(ExpectedFailure):
    """The message has no such attachment."""


class ShareNotFound(ExpectedFailure):
    """Nothing has this share link: never made, revoked, or what it showed has gone."""


class LimitExceeded(ExpectedFailure):
    """A request limit is used up; ``retry_after`` is in whole seconds."""

    def __init__(self, problem: str, retry_after: int) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class TooManyPendingTests(LimitExceeded):
    """As many tests of the account wait for their mail as may."""


class TooMuchHeldMail(LimitExceeded):
    """The mails of the account's deliverability tests take as much room as they may."""


class TooManyPreflights(LimitExceeded):
    """The account has as many pre-flights under way as it may."""


class TooManyChecks(LimitExceeded):
    """The account has as many checks under way, and waiting for their turn, as it may."""


class TooManyWaits(LimitExceeded):
    """The key holds as many parked waits as it may."""


class FaultMet(ExpectedFailure):
    """Mail met a fault that was asked for; ``reply`` is code and enhanced code of SMTP."""

    def __init__(self, problem: str, reply: tuple[int, str]) -> None:
        super().__init__(problem)
        self.reply = reply


class OutOfSpace(ExpectedFailure):
    """The disk has less free space than the operator wants to keep."""


class StoreUnavailable(ExpectedFailure):
    """The store can't answer now (disk full, locked, gone); no data was changed.

    Below the engine the message is for the operator: it may name hosts, roles and files.
    Failures that leave the engine of a daemon have `PUBLIC` and a reference instead.
    """

    PUBLIC = "the database can't answer now; try again in a moment"

    @property
    def cause(self) -> str:
        """The message for the operator."""
        return str(self if self.__cause__ is None or not self.reference else self.__cause__)


class StoreAway(StoreUnavailable):
    """The database takes no connections, and may do so in a moment."""


class StoreFull(OutOfSpace, StoreUnavailable):
    """The disk of the database is full: nothing was changed."""

    PUBLIC = "the server's disk is full; try again later"


class StoreDamaged(StoreUnavailable):
    """A page of the database is damaged: a backup must be restored."""


class WorkerDied(StoreUnavailable):
    """The process that did the work has died with it, or with what was given to it before."""


class WorkTooSlow(WorkerDied):
    """The work exceeded its time and was ended. A retry would take as long again."""


class ShuttingDown(ExpectedFailure):
    """The daemon is stopping; the same request works again in a moment."""


class RecipientUnknown(ExpectedFailure):
    """No inbox has this address, or it is not one of our domains."""


class InboxFull(ExpectedFailure):
    """The inbox holds as much as it may; mail that expires makes room."""


class AddressUsed(ExpectedFailure):
    """A test address has got its mail already, and this is another one."""


class OperatorMissing(ExpectedFailure):
    """Mail to postmaster, but no account exists yet that could read it."""


class AccountNameTaken(ExpectedFailure):
    """An account of this name exists, or one whose name looks like it, or the name is reserved."""


class AccountNotFound(ExpectedFailure):
    """No account has this name."""


class SignInFailed(ExpectedFailure):
    """No account has this name and this password: which of them is wrong is not told."""


class RegistrationClosed(ExpectedFailure):
    """Nobody can make an account here for themselves, or not without an invitation."""


class InvitationInvalid(ExpectedFailure):
    """The invitation was used before, has expired, or never was one."""


class NotOperator(ExpectedFailure):
    """Only the operator's account may do this."""


class FormExpired(ExpectedFailure):
    """A form was not given out to this visitor, or was kept open for too long."""


class TooManyKeys(ExpectedFailure):
    """The account holds as many valid keys as it may."""


class Overloaded(ExpectedFailure):
    """Too much of the same is under way; it works again in a moment."""


class KeyNotFound(ExpectedFailure):
    """No API key has this id."""


class WebhookNotFound(ExpectedFailure):
    """The account has no such webhook: never made, or deleted."""


class TooManyWebhooks(ExpectedFailure):
    """The account has as many webhooks as it may."""


class WebhookEnded(ExpectedFailure):
    """The receiver has ended the webhook; nothing begins it again."""


class ReportRefused(ExpectedFailure):
    """What somebody sent as a report of a receiver is none that can be taken in."""


class ReportNotFound(ExpectedFailure):
    """The account has no such report of a receiver."""


class ReportBusy(ExpectedFailure):
    """A report is being read now."""


class WatchNotFound(ExpectedFailure):
    """The account has no such watch: never made, or deleted."""


class AlertNotFound(ExpectedFailure):
    """The watch has no such alert."""


class WatchExists(ExpectedFailure):
    """The account watches this already."""


class TooManyWatches(ExpectedFailure):
    """The account has as many watches as it may."""


class WatchBusy(ExpectedFailure):
    """The watch is being run already."""


class WaitInterrupted(ExpectedFailure):
    """A wait was cut short by a shutdown or a store failure.

    ``cursor`` goes on from here; ``None`` when the inbox could not be read at all.
    """

    def __init__(self, problem: str, cursor: str | None, reference: str = "") -> None:
        super().__init__(problem)
        self.cursor = cursor
        self.reference = reference
