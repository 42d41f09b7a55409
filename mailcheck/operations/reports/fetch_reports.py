"""Fetching reports from the mailboxes of the configuration, each by one daemon at a time.

Mails are fetched in batches. The reports of a batch are stored, then its mails are marked or moved,
and then the place in the mailbox is stored. A crash in between repeats a batch, in which all
reports are known. A server that ends the connection after some progress is asked again at once.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from mailcheck.core.domains.report_mailboxes import (
    BATCH_MAILS,
    FEWEST_MAILS,
    FIRST_RETRY,
    LONGEST_RETRY,
    OPERATOR_RETRY,
    MailboxState,
    ReportMailbox,
    digest_token,
    token_to_use,
)
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.operations.queue_worker import QueueWorker
from mailcheck.ports.identity_provider import (
    ProviderRefused,
    ProviderSilent,
    ProviderUnusable,
    TokenEndpoint,
)
from mailcheck.ports.report_mailboxes import (
    MailboxFailed,
    MailboxOpener,
    Place,
    Remedy,
)
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore

LOOK_INTERVAL = 30.0
"""Seconds between looks for mailboxes that are due."""

LEASE = 10 * MINUTE
"""Duration of a claim. Each batch renews it."""

MARGIN = 300.0
"""Seconds before its end in which an access token is not used any more."""

SHORTEST_LIFE, USUAL_LIFE = 60, 3_600
"""Lifetime in seconds of an access token at least, and if the answer does not say it."""


class ImportedMail(NamedTuple):
    """The outcome of a fetched mail: whether it is a report, and the number of new reports."""

    is_report: bool
    new: int


UNEXPECTED = "The mailbox gave an answer that was not expected. The log of mailcheck has it."

ImportMails = Callable[[AccountId, Sequence[bytes]], Awaitable[Sequence[ImportedMail]]]
"""Stores the reports in fetched mails, and returns what each contained. A report that is known is
not new."""

FindAccount = Callable[[str], Awaitable[AccountId | None]]
"""Returns the id of the account or the project with a name, or `None`."""


class _Access(Struct, frozen=True):
    token: str
    ends_at: float


class AccessTokens(Struct, eq=False):
    """Obtains access tokens, and stores refresh tokens that replace earlier ones."""

    endpoint: TokenEndpoint
    store: ReportMailboxStore
    clock: IReactorTime
    _held: dict[ReportMailbox, _Access] = field(default_factory=dict)

    async def get(self, mailbox: ReportMailbox, *, is_new: bool = False) -> str:
        """Return an access token, or an empty string for a mailbox with a password.

        :param is_new: an earlier token does not work any more.
        :raises MailboxFailed: there is none.
        """
        grant = mailbox.grant
        if grant is None:
            return ""
        held = self._held.get(mailbox)
        if held is not None and not is_new and held.ends_at - MARGIN > self.clock.seconds():
            return held.token
        form = {"client_id": grant.client_id, "grant_type": "client_credentials"}
        # Read now, since an earlier answer may have replaced it.
        states = await self.store.states([mailbox.id])
        refresh = token_to_use(grant, states.get(mailbox.id))
        if refresh:
            form |= {"grant_type": "refresh_token", "refresh_token": refresh}
        form |= {"client_secret": grant.client_secret} if grant.client_secret else {}
        form |= {"scope": grant.scope} if grant.scope else {}
        try:
            answer = await self.endpoint.post(grant.url, form, None)
        except ProviderRefused as failure:
            said = ": ".join(filter(None, (failure.error, failure.description)))
            problem = f"The token endpoint refused a token: {_line(said) or failure}"
            raise MailboxFailed(problem, Remedy.OPERATOR) from failure
        except ProviderUnusable as failure:
            problem = f"The token endpoint cannot be used: {failure}"
            raise MailboxFailed(problem, Remedy.OPERATOR) from failure
        except ProviderSilent as failure:
            raise MailboxFailed(f"The token endpoint gave no token: {failure}") from failure
        token, replacement = answer.get("access_token"), answer.get("refresh_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise MailboxFailed("The answer of the token endpoint has no access token.")
        if isinstance(replacement, str) and replacement not in ("", refresh):
            origin = digest_token(grant.refresh_token)
            await self.store.keep_token(mailbox.id, replacement, origin)
        life = answer.get("expires_in")
        seconds = int(life) if isinstance(life, int | float | str) and _is_number(life) else 0
        seconds = max(SHORTEST_LIFE, seconds or USUAL_LIFE)
        self._held[mailbox] = _Access(token, self.clock.seconds() + seconds)
        return token


def _is_number(value: float | str) -> bool:
    return not isinstance(value, str) or (value.isascii() and value.isdigit())


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class ClaimedMailbox(Struct, frozen=True):
    """A mailbox that this daemon reads now, with the state before."""

    mailbox: ReportMailbox
    state: MailboxState
    opener: MailboxOpener

    @property
    def id(self) -> str:
        """The id of the mailbox."""
        return self.state.id


class ShownMailbox(Struct, frozen=True):
    """A mailbox for its owner; ``state`` is `None` before the first attempt."""

    name: str
    state: MailboxState | None


class _ClaimLost(Exception):
    """Another daemon reads the mailbox now."""


class FetchReports(QueueWorker[str, ClaimedMailbox], eq=False):
    """Reads the mailboxes that are due.

    :param open_mailbox: returns what opens a mailbox.
    """

    jobs = "mailboxes with reports"
    max_jobs = 4
    lease = LEASE

    store: ReportMailboxStore
    open_mailbox: Callable[[ReportMailbox], MailboxOpener]
    tokens: AccessTokens
    import_mails: ImportMails
    find_account: FindAccount
    _openers: dict[ReportMailbox, MailboxOpener] = field(default_factory=dict)
    _hurried: set[ReportMailbox] = field(default_factory=set)

    def change(self, mailboxes: Sequence[ReportMailbox]) -> None:
        """Use these mailboxes. Failing mailboxes that are new or changed are tried at once.

        So are Maildirs: their folders or rights may be corrected, and no server counts attempts.
        """
        known = self._openers
        self._hurried |= {one for one in mailboxes if one.maildir or one not in known}
        self._openers = {
            mailbox: known.get(mailbox) or self.open_mailbox(mailbox) for mailbox in mailboxes
        }
        self.wake()

    async def of_account(self, name: str) -> list[ShownMailbox]:
        """Return the mailboxes of an account, with their states."""
        own = [mailbox for mailbox in self._openers if mailbox.account_name == name]
        states = await self.store.states([mailbox.id for mailbox in own]) if own else {}
        return [ShownMailbox(mailbox.name, states.get(mailbox.id)) for mailbox in own]

    async def claim(self, limit: int) -> Sequence[ClaimedMailbox]:
        """Claim mailboxes that are due."""
        claimed: list[ClaimedMailbox] = []
        for mailbox, opener in tuple(self._openers.items()):
            if len(claimed) == limit:
                break
            if mailbox.id in self._under_way:
                continue
            is_hurried = mailbox in self._hurried
            self._hurried.discard(mailbox)
            state = await self.store.claim(
                mailbox.id, self.holder, self.clocks.now(), LEASE, is_hurried=is_hurried
            )
            if state is not None:
                claimed.append(ClaimedMailbox(mailbox, state, opener))
        return claimed

    async def release(self, *, is_attempt: bool) -> None:
        """Release the mailboxes of this daemon."""
        await self.store.release(self.holder)

    async def process(self, job: ClaimedMailbox) -> None:
        """Read a mailbox, and record the outcome."""
        mailbox, state = job.mailbox, job.state
        try:
            account_id = await self.find_account(mailbox.account_name)
            if account_id is None:
                problem = f"There is no account or project {mailbox.account_name!r}."
                raise MailboxFailed(problem, Remedy.OPERATOR)
            await self._read_all(job, account_id)
        except _ClaimLost:
            self._log.info("another daemon reads {mailbox}", mailbox=mailbox.name)
        except MailboxFailed as failure:
            await self._put_off(job, failure)
        except ExpectedFailure as failure:
            await self._put_off(job, MailboxFailed(f"The reports could not be stored: {failure}."))
        except CancelledError:
            raise
        except Exception:
            # A server may answer anything, which the client library does not expect.
            self._log.failure("{mailbox} could not be read", mailbox=mailbox.name)
            await self._put_off(job, MailboxFailed(UNEXPECTED))
        else:
            now = self.clocks.now()
            if state.problem:
                self._log.info("{mailbox} can be read again", mailbox=mailbox.name)
            next_at = Instant(now + mailbox.interval)
            await self.store.finish(job.id, self.holder, next_at, succeeded_at=now)
            self.outcomes.add("read")

    async def _put_off(self, job: ClaimedMailbox, failure: MailboxFailed) -> None:
        """Record a failure, with the time of the next attempt."""
        failures, problem = job.state.failures + 1, str(failure)
        is_for_operator = failure.remedy is Remedy.OPERATOR or (
            failure.remedy is Remedy.RETRY_ONCE and failures > 1
        )
        backoff = min(FIRST_RETRY * 2 ** min(failures - 1, 10), LONGEST_RETRY)
        pause = OPERATOR_RETRY if is_for_operator else max(backoff, failure.wait)
        if problem != job.state.problem:
            name = job.mailbox.name
            self._log.warn("reports of {mailbox} are not fetched: {why}", mailbox=name, why=problem)
        next_at = Instant(self.clocks.now() + pause)
        await self.store.finish(job.id, self.holder, next_at, problem=problem, failures=failures)
        self.outcomes.add("failed")

    async def _read_all(self, job: ClaimedMailbox, account_id: AccountId) -> None:
        """Read all new mails, over several connections if the server ends them.

        :raises MailboxFailed: the mailbox cannot be read.
        :raises _ClaimLost: another daemon reads it now.
        """
        reading = _Reading(Place(job.state.uid_validity, job.state.last_uid))
        token, is_renewed = await self.tokens.get(job.mailbox), False
        while True:
            reading.has_progress = False
            try:
                return await self._read(job, account_id, token, reading)
            except MailboxFailed as failure:
                has_ended = failure.remedy is Remedy.RENEW and job.mailbox.grant is not None
                is_lost = failure.remedy is Remedy.RETRY and not failure.wait
                if has_ended and (reading.has_progress or not is_renewed):
                    is_renewed = True
                elif not (is_lost and reading.has_progress):
                    raise
            if has_ended:
                token = await self.tokens.get(job.mailbox, is_new=True)

    async def _read(
        self, job: ClaimedMailbox, account_id: AccountId, token: str, reading: "_Reading"
    ) -> None:
        """Read the mails after a place over one connection."""
        opened = await job.opener.open(token, reading.place)
        limit = max(FEWEST_MAILS, BATCH_MAILS >> min(job.state.failures, 5))
        try:
            while (batch := await opened.next_batch(limit)) is not None:
                mails = [mail for mail in batch.mails if mail.raw_message is not None]
                found = await self.import_mails(
                    account_id, [mail.raw_message or b"" for mail in mails]
                )
                reports = [
                    mail.key
                    for mail, outcome in zip(mails, found, strict=True)
                    if outcome.is_report
                ]
                await opened.finish(reports)
                new, place = sum(outcome.new for outcome in found), batch.place
                count = sum(not mail.is_known for mail in batch.mails)
                now = self.clocks.now()
                if not await self.store.advance(
                    job.id, self.holder, place, count, new, now, milliseconds=LEASE
                ):
                    raise _ClaimLost
                reading.place, reading.has_progress = place, True
        finally:
            await opened.close()


class _Reading:
    """How far a mailbox is read, and whether the last connection has made progress."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.has_progress = False
