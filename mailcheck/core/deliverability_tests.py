"""Deliverability tests: their addresses and values, and the table of their states.

docs/reference/contract.md, "States of a test", describes the states.
"""

from enum import Enum
from types import MappingProxyType

from msgspec import Struct

from mailcheck.core.content import HeaderSummary
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, is_test_id
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Session

ADDRESS_PREFIX = "test-"
"""Prefix of the local part of a test address. The test's id follows."""

ADDRESS_LIFETIME = HOUR
"""How long a test address accepts mail (docs/reference/contract.md)."""

MAX_ATTEMPTS = 3
"""Number of failed analyses after which a test ends in an error."""

MAX_PENDING = 100
"""Maximum number of tests of one account that wait for their mail."""

MAX_HELD_BYTES = 1024 * 1024 * 1024
"""Maximum bytes of raw mail in the tests of one account. Above it, no new test can be created.
It is the default quota of an inbox."""


class State(Enum):
    """State of a test. The values are part of the API."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        """Whether clients may stop polling: only a recheck leaves this state."""
        return self in (State.COMPLETED, State.EXPIRED, State.ERROR)


class Trigger(Enum):
    """An event that changes the state of a test."""

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
"""All state transitions. A new test is pending, or processing if it scores a stored mail."""


class IllegalTransition(Exception):
    """A transition that is not in the table. It is a bug."""


def next_state(state: State, trigger: Trigger) -> State:
    """Return the state after a trigger.

    :raises IllegalTransition: the table has no such transition.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        move = f"a test that is {state.value} has no transition for {trigger.value}"
        raise IllegalTransition(move) from None


class DeliverabilityTest(Struct, frozen=True):
    """A stored test.

    ``expires_at`` is when the address stops accepting mail. ``received_at`` and ``delivery_id``
    are set once a mail has arrived. ``attempts`` counts the analyses started in this run.
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
    """Return the local part of a test's address."""
    return ADDRESS_PREFIX + test_id


def parse_local_part(local_part: str) -> DeliverabilityTestId | None:
    """Return the id in the local part of a test's address, or `None` if there is none.

    Case is ignored. A local part with a subaddress is not the address of a test.
    """
    folded = local_part.lower()
    test_id = folded.removeprefix(ADDRESS_PREFIX)
    if not local_part.isascii() or test_id == folded or not is_test_id(test_id):
        return None
    return DeliverabilityTestId(test_id)


class ReceivedMail(Struct, frozen=True):
    """A received mail: the input of an analysis.

    ``transcript`` is the SMTP conversation up to the end of the message. Its lines begin with
    ``C:`` (client) or ``S:`` (server). It is empty if it was not stored. ``delivery_id`` is set
    for a stored mail, ``account_id`` if the mail is analysed for an account.
    """

    session: Session
    envelope_sender: str
    received_at: Instant
    raw_message: bytes
    transcript: tuple[str, ...] = ()
    delivery_id: DeliveryId | None = None
    account_id: AccountId = AccountId("")


class StoredReport(Struct, frozen=True):
    """A stored report: the score in tenths, and the document as it was first shown.

    ``document`` is a JSON object with the fields that a completed test adds
    (docs/reference/contract.md): ``email``, ``checks``, ``report``, ``deductions``,
    ``scoringVersion``. It is stored, so that a later version of the scoring does not change
    old results.
    """

    tenths: int
    document: str


class DeliverabilityResult(Struct, frozen=True):
    """A test with its result.

    ``report`` is set if the test is completed. ``failure`` is the reason of an error.
    """

    test: DeliverabilityTest
    report: StoredReport | None = None
    failure: str = ""


class ListedTest(Struct, frozen=True):
    """A test in a list. ``tenths`` is set once it is completed, the other fields once it has mail.

    ``is_content_only``: the score does not cover whether the mail will be delivered.
    """

    test: DeliverabilityTest
    tenths: int | None = None
    header: HeaderSummary | None = None
    envelope_sender: str = ""
    is_content_only: bool = False
