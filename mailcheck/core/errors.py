"""Expected failures: one exception each, named after the condition.

The message of each is one readable sentence. One table per protocol defines the
reply to clients: ``web/site/failures.py`` for HTTP and MCP, ``smtp/replies.py`` for SMTP,
``imap/failures.py`` for IMAP, and ``imap/pop3.py`` for POP3. Any other exception is a bug.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar


class ExpectedFailure(Exception):
    """Base class of expected failures. The message may be shown to the client.

    ``reference`` identifies the cause in the log. It is empty if the log has no more details.
    """

    reference = ""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, exceptions are unpickled by calling the class with ``args``.
        # Some of these classes take other arguments.
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


def cause_of(error: Exception) -> str:
    """Return the cause of an error in words, without the number and the path of the system."""
    return getattr(error, "strerror", None) or str(error)


Row = TypeVar("Row")


def nearest(
    failure: BaseException | None, table: Mapping[type[ExpectedFailure], Row]
) -> Row | None:
    """Return the row of the failure's class or of the nearest class that it inherits from.

    The order of the rows does not matter. Without a row, which a bug has, the result is `None`.
    """
    return next((table[kind] for kind in type(failure).__mro__ if kind in table), None)


class InvalidParameter(ExpectedFailure):
    """A parameter is missing or has an invalid value. ``name`` is the parameter."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(problem)
        self.name = name


class InvalidCredentials(ExpectedFailure):
    """The API key is missing, unknown or revoked, or two keys contradict each other."""


class NotPermitted(ExpectedFailure):
    """The request needs an account, or an API key with other scopes or tags."""


class AccountDisabled(ExpectedFailure):
    """The account is disabled: it cannot sign in or become the operator's."""


class AccountIsOperator(ExpectedFailure):
    """The account has the operator's role, so it can be neither disabled nor deleted."""


class OnlyOwner(ExpectedFailure):
    """A person is the only owner of a project, which needs one."""


class MemberNotFound(ExpectedFailure):
    """The project has no such member."""


class TooManyProjects(ExpectedFailure):
    """The person owns the maximum number of projects."""


class TooManyInvitations(ExpectedFailure):
    """The project has the maximum number of invitations that can still be used."""


class InboxDisabled(ExpectedFailure):
    """The account of an inbox is disabled, so the inbox accepts no mail."""


class MessageNotFound(ExpectedFailure):
    """The account has no such message: it never existed, was deleted, or has expired."""

    def __init__(
        self, why: str = "there is no such message: it never existed, was deleted, or has expired"
    ) -> None:
        super().__init__(why)


class DeliverabilityTestNotFound(ExpectedFailure):
    """The account has no such deliverability test: it never existed, or was deleted."""


class NoMailYet(ExpectedFailure):
    """The deliverability test has not received a mail yet."""


class PageNotFound(ExpectedFailure):
    """A page of the dashboard does not exist."""


class AttachmentNotFound(ExpectedFailure):
    """The message has no such attachment."""


class ShareNotFound(ExpectedFailure):
    """No such share link: it never existed, was revoked, or its target is gone."""


class LimitExceeded(ExpectedFailure):
    """A limit is used up. ``retry_after`` is in whole seconds."""

    def __init__(self, problem: str, retry_after: int) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class TooManyPendingTests(LimitExceeded):
    """The account has the maximum number of tests that wait for their mail."""


class TooMuchHeldMail(LimitExceeded):
    """The mails of the account's deliverability tests use the maximum of storage."""


class TooManyPreflights(LimitExceeded):
    """The account has the maximum number of preflights running."""


class TooManyChecks(LimitExceeded):
    """The account has the maximum number of checks running and queued."""


class TooManyWaits(LimitExceeded):
    """The API key has the maximum number of waits."""


class FaultMet(ExpectedFailure):
    """A mail triggered a simulated failure. ``reply`` has the SMTP code and enhanced code."""

    def __init__(self, problem: str, reply: tuple[int, str]) -> None:
        super().__init__(problem)
        self.reply = reply


class ConnectionDropped(ExpectedFailure):
    """A mail triggered a simulated failure: the connection is closed instead of an answer."""


class MailTooLarge(ExpectedFailure):
    """The mail that a request describes has more bytes than the maximum."""


class RequestRepeated(ExpectedFailure):
    """An idempotency key was used before, for another request."""


class RequestRunning(RequestRepeated):
    """The request with the same idempotency key is not answered yet."""


class ReleaseOff(ExpectedFailure):
    """The operator does not allow mail to leave this service."""


class RelayRejected(ExpectedFailure):
    """The relay rejected a mail or all of its recipients. The same request will fail again."""


class RelayUnavailable(ExpectedFailure):
    """The relay cannot take a mail now, or does not answer. A retry may succeed."""


class OutOfSpace(ExpectedFailure):
    """The disk has less free space than the configured minimum."""


class StoreUnavailable(ExpectedFailure):
    """The store cannot answer now (disk full, locked, unreachable). No data was changed.

    Inside the engine, the message is for the operator and may name hosts, roles and files.
    Failures that leave the engine of a daemon have `PUBLIC` and a reference instead.
    """

    PUBLIC = "the database cannot answer now; try again in a moment"

    @property
    def cause(self) -> str:
        """The message for the operator."""
        return str(self if self.__cause__ is None or not self.reference else self.__cause__)


class StoreAway(StoreUnavailable):
    """The database does not accept connections now. A retry may succeed."""


class StoreFull(OutOfSpace, StoreUnavailable):
    """The disk of the database is full. No data was changed."""

    PUBLIC = "the server's disk is full; try again later"


class StoreDamaged(StoreUnavailable):
    """A page of the database is damaged. A backup must be restored."""


class WorkerDied(StoreUnavailable):
    """The worker process died while it ran this work or work queued before it."""


class WorkTooSlow(WorkerDied):
    """The work exceeded its time limit and was ended. A retry would take as long."""


class ShuttingDown(ExpectedFailure):
    """The daemon is stopping. A retry succeeds after its restart."""


class RecipientUnknown(ExpectedFailure):
    """No inbox has this address, or its domain is not one of this server."""


class InboxFull(ExpectedFailure):
    """The inbox has reached its quota. Mail that expires frees space."""


class AddressUsed(ExpectedFailure):
    """The test address has already received its mail, and this is a different one."""


class OperatorMissing(ExpectedFailure):
    """The mail is for postmaster, but no account exists yet that could read it."""


class PasskeyNeeded(ExpectedFailure):
    """The password is right, and the account requires a passkey too. ``account_id`` names it."""

    def __init__(self, problem: str, account_id: str) -> None:
        super().__init__(problem)
        self.account_id = account_id


class SignInUnavailable(ExpectedFailure):
    """The sign-in service of the company does not answer. Other ways to sign in work."""


class SignInMisconfigured(SignInUnavailable):
    """Signing in with the company fails until an operator changes something."""


class IdentityTaken(ExpectedFailure):
    """The identity of the company's sign-in service signs in to another account."""


class AccountNameTaken(ExpectedFailure):
    """The account name is taken, looks like a name that is taken, or is reserved."""


class AccountNotFound(ExpectedFailure):
    """No account has this name."""


class SignInFailed(ExpectedFailure):
    """The name or the password is wrong. The message does not say which."""


class RegistrationClosed(ExpectedFailure):
    """Registration is closed, or needs an invitation."""


class InvitationInvalid(ExpectedFailure):
    """The invitation is unknown, was used before, or has expired."""


class InvitationNotFound(ExpectedFailure):
    """The project has no valid invitation with this id."""


class NotOperator(ExpectedFailure):
    """Only the operator's account may do this."""


class FormExpired(ExpectedFailure):
    """The form was not issued to this visitor, or was open for too long."""


class TooManyKeys(ExpectedFailure):
    """The account has the maximum number of valid keys."""


class Overloaded(ExpectedFailure):
    """Too many operations of this kind are running. A retry may succeed."""


class KeyNotFound(ExpectedFailure):
    """No API key has this id."""


class ClientNotFound(ExpectedFailure):
    """No OAuth client with this id is registered."""


class WebhookNotFound(ExpectedFailure):
    """The account has no such webhook: it never existed, or was deleted."""


class TooManyWebhooks(ExpectedFailure):
    """The account has the maximum number of webhooks."""


class InboundRouteNotFound(ExpectedFailure):
    """The account has no such inbound route: it never existed, or was deleted."""


class InboundMailNotFound(ExpectedFailure):
    """The account has no such inbound mail: it never existed, or was deleted."""


class TooManyRoutes(ExpectedFailure):
    """The account has the maximum number of inbound routes."""


class InboundQueueFull(LimitExceeded):
    """Too many mails of the account wait for their delivery to applications."""


class WebhookEnded(ExpectedFailure):
    """The receiver has ended the webhook. It cannot be resumed."""


class ReportRefused(ExpectedFailure):
    """The content sent as a report cannot be processed."""


class ReportNotFound(ExpectedFailure):
    """The account has no such report of a receiver."""


class ReportBusy(ExpectedFailure):
    """The report is being processed now."""


class TooManyDecisions(ExpectedFailure):
    """The account has decided about the maximum number of senders."""


class WatchNotFound(ExpectedFailure):
    """The account has no such watch: it never existed, or was deleted."""


class AlertNotFound(ExpectedFailure):
    """The watch has no such alert."""


class WatchExists(ExpectedFailure):
    """The account already watches this domain or address."""


class TooManyWatches(ExpectedFailure):
    """The account has the maximum number of watches."""


class WatchBusy(ExpectedFailure):
    """The watch is already running."""


class WaitInterrupted(ExpectedFailure):
    """A wait was ended by a shutdown or a store failure.

    ``cursor`` continues the wait. It is `None` if the inbox could not be read.
    """

    def __init__(self, problem: str, cursor: str | None, reference: str = "") -> None:
        super().__init__(problem)
        self.cursor = cursor
        self.reference = reference


CLOSE = 0.5
"""Similarity from which a word is named, between 0 and 1."""


def nearest_word(word: str, words: Collection[str], close: float = CLOSE) -> str | None:
    """Return the most similar of some words, or `None` if none is similar."""
    from difflib import get_close_matches  # only loaded for errors

    return next(iter(get_close_matches(word, list(words), 1, close)), None)


def did_you_mean(word: str, words: Collection[str]) -> str:
    """Return the question that names the most similar word, or what there is if none is."""
    similar = nearest_word(word, words)
    return f"did you mean {similar}?" if similar else f"there are {', '.join(words)}"
