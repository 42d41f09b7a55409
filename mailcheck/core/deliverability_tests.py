"""A deliverability test: its address, its states, and how it moves between them.

The only table of states (docs/reference/contract.md).
"""

from enum import Enum
from types import MappingProxyType

from msgspec import Struct

from mailcheck.core.content import HeaderSummary
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, is_test_id
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Session

ADDRESS_PREFIX = "test-"
"""Begins the local part of a test address; what follows is the test's id."""

ADDRESS_LIFETIME = HOUR
"""A test address takes mail for an hour (docs/reference/contract.md)."""

MAX_ATTEMPTS = 3
"""Analyses that may fail before a test ends in error."""

MAX_PENDING = 100
"""Tests of one account that may wait for their mail at a time."""

MAX_HELD_BYTES = 1024 * 1024 * 1024
"""Raw mail that the tests of one account may hold when a new one is made: an inbox's default."""


class State(Enum):
    """Where a test stands; the values are those of the API."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        """Tell whether clients may stop polling: only a recheck leads on from here."""
        return self in (State.COMPLETED, State.EXPIRED, State.ERROR)


class Trigger(Enum):
    """What moves a test."""

    MAIL_STORED = "mail stored"
    ADDRESS_EXPIRED = "address expired"
    CHECKS_DONE = "checks done"
    ANALYSIS_FAILED = "analysis failed"
    RECHECK = "recheck"


TRANSITIONS = MappingProxyType(
    {
        (State.PENDING, Trigger.MAIL_STORED): State.PROCESSING,
        (State.PENDING, Trigger.ADDRESS_EXPIRED): State.EXPIRED,
        (State.PROCESSING, Trigger.CHECKS_DONE): State.COMPLETED,
        (State.PROCESSING, Trigger.ANALYSIS_FAILED): State.ERROR,
        (State.COMPLETED, Trigger.RECHECK): State.PROCESSING,
        (State.ERROR, Trigger.RECHECK): State.PROCESSING,
    }
)
"""Every move there is. A test is created pending, or processing when a stored mail is scored."""


class IllegalTransition(Exception):
    """A move that the table does not have: a mistake of ours."""


def next_state(state: State, trigger: Trigger) -> State:
    """Give the state that a trigger leads to.

    :raises IllegalTransition: there is no such move.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        move = f"a test that is {state.value} can't move by {trigger.value}"
        raise IllegalTransition(move) from None


class DeliverabilityTest(Struct, frozen=True):
    """One test as it is kept.

    ``expires_at`` is when the address stops taking mail; ``received_at`` and
    ``delivery_id`` are there once a mail has come in. ``attempts`` counts the
    analyses of this run that have begun.
    """

    id: DeliverabilityTestId
    account_id: AccountId
    state: State
    created_at: Instant
    expires_at: Instant
    share_token: str
    received_at: Instant | None = None
    delivery_id: DeliveryId | None = None
    attempts: int = 0


def local_part_of(test_id: DeliverabilityTestId) -> str:
    """Give the local part of a test's address."""
    return ADDRESS_PREFIX + test_id


def parse_local_part(local_part: str) -> DeliverabilityTestId | None:
    """Read the id out of a test's address, in whatever case it is written; nothing without one.

    A subaddress makes it another address, that of nothing.
    """
    folded = local_part.lower()
    test_id = folded.removeprefix(ADDRESS_PREFIX)
    if not local_part.isascii() or test_id == folded or not is_test_id(test_id):
        return None
    return DeliverabilityTestId(test_id)


class ReceivedMail(Struct, frozen=True):
    """A mail as it came in: all that an analysis judges.

    ``transcript`` is the SMTP conversation up to the end of the message, a line
    of the client (``C: ...``) or of ours (``S: ...``) each; empty where it was
    not kept. ``delivery_id`` is there when it is one that is stored, ``account_id`` when it is
    judged for an account.
    """

    session: Session
    envelope_sender: str
    received_at: Instant
    raw_message: bytes
    transcript: tuple[str, ...] = ()
    delivery_id: DeliveryId | None = None
    account_id: AccountId = AccountId("")


class StoredReport(Struct, frozen=True):
    """A report as it is kept: the score in tenths, and the document as it was first shown.

    ``document`` is a JSON object with the fields that a completed test adds
    (docs/reference/contract.md): ``email``, ``checks``, ``report``, ``deductions``,
    ``scoringVersion``. Kept as shown, so that a later version of the scoring
    does not rewrite old results.
    """

    tenths: int
    document: str


class DeliverabilityResult(Struct, frozen=True):
    """A test with what is known of it.

    ``report`` is there when it is completed; ``failure`` says why it ended in error.
    """

    test: DeliverabilityTest
    report: StoredReport | None = None
    failure: str = ""


class ListedTest(Struct, frozen=True):
    """A test in a list: ``tenths`` when it is completed, the rest once it has a mail.

    ``is_content_only``: the score says nothing about whether the mail arrives.
    """

    test: DeliverabilityTest
    tenths: int | None = None
    header: HeaderSummary | None = None
    envelope_sender: str = ""
    is_content_only: bool = False
