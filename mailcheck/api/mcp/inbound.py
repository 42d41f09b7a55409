"""Mail into applications for agents: sending a mail, and what the application answered."""

from typing import Annotated

from msgspec import field

from mailcheck.api.mcp.untrusted import PUBLISHED_NOTICE, Summarized, defuse
from mailcheck.api.requests.fields import LONGEST_WAIT, SECONDS, TEXT, one_of
from mailcheck.api.requests.inbound import FAULTS, OPEN_TEXT
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.api.shapes import ABSENT, Absent, Shape, Timestamp, doc, shape_from
from mailcheck.core.identifiers import MessageId
from mailcheck.core.inbound import InboundAttempt, InboundMailId, ReadyMail
from mailcheck.operations.inbound.read_attempts import AttemptPage
from mailcheck.operations.inbound.send_mail import Letter

SHOWN_ATTEMPTS = 5
"""Maximum number of attempts in a result, the newest."""

SHOWN_ANSWER = 300
"""Maximum number of characters of an answer in a result. REST has the whole one."""

DEFAULT_PATIENCE = 10.0
"""Default number of seconds in which the application can take a mail."""

_READY_RULE = f"{{name}} must be one of {', '.join(ReadyMail)}; got {{sent}}"


def _read_ready(text: str) -> str:
    return ReadyMail(text).value


class SendInboundArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``send_inbound``."""

    route: Annotated[
        Annotated[str, TEXT] | None, Description(brief="id; omit if there is one route")
    ] = None
    author: Annotated[Annotated[str, TEXT] | None, Description(brief="author")] = field(
        name="from", default=None
    )
    to: Annotated[Annotated[str, TEXT] | None, Description(brief="recipient")] = None
    subject: Annotated[str | None, OPEN_TEXT] = None
    text: Annotated[str | None, OPEN_TEXT] = None
    html: Annotated[str | None, OPEN_TEXT] = None
    ready: Annotated[
        str | None,
        # The names would be a tenth of the list of tools. The error has all of them.
        FieldType({"type": "string"}, _read_ready, _READY_RULE),
        Description(brief="bounce-hard, out-of-office, reply-outlook-above, empty, injection, ..."),
    ] = None
    message_id: Annotated[
        Annotated[str, TEXT] | None, Description(brief="message to answer, or to send again")
    ] = None
    fault: Annotated[str | None, one_of(FAULTS[1:])] = None
    wait: Annotated[
        float, SECONDS, Description(brief="seconds for the answer", low=0, high=LONGEST_WAIT - 10)
    ] = DEFAULT_PATIENCE

    @property
    def letter(self) -> Letter:
        """The mail to write or to send."""
        return Letter(
            author=self.author or "",
            to=() if self.to is None else (self.to,),
            subject=self.subject,
            text=self.text,
            html=self.html,
            ready=None if self.ready is None else ReadyMail(self.ready),
            message_id=None if self.message_id is None else MessageId(self.message_id),
            fault=self.fault,
        )


class GetInboundArguments(Request, frozen=True, kw_only=True):
    """Arguments of ``get_inbound``."""

    route: Annotated[Annotated[str, TEXT] | None, Description(brief="id of a route")] = None
    mail_id: Annotated[Annotated[str, TEXT] | None, Description(brief="id of a mail")] = None


class AttemptForAgents(Shape):
    """What the application answered to one attempt."""

    at: Timestamp
    mail_id: str
    status: int | None
    problem: str
    answer: Annotated[str | Absent, doc(f"at most {SHOWN_ANSWER} characters")] = ABSENT


class InboundResult(Summarized):
    """Whether the application took the mail, and its newest answers."""

    delivered: bool
    pending: Annotated[int, doc("deliveries with a next attempt")]
    attempts: tuple[AttemptForAgents, ...]
    mail_id: str | Absent = ABSENT


def render_inbound(page: AttemptPage, mail_id: InboundMailId | None) -> InboundResult:
    """Render attempts, of one mail if there is an id."""
    state = "taken" if page.is_delivered else "not taken"
    last = page.attempts[0] if page.attempts else None
    answered = f", last status {last.status}" if last is not None else ", no attempt yet"
    more = f", {page.pending} pending" if page.pending else ""
    return defuse(
        InboundResult(
            untrusted=PUBLISHED_NOTICE,
            summary=f"{state}{answered}{more}",
            delivered=page.is_delivered,
            pending=page.pending,
            attempts=tuple(map(_render_attempt, page.attempts[:SHOWN_ATTEMPTS])),
            mail_id=ABSENT if mail_id is None else mail_id,
        )
    )


def _render_attempt(attempt: InboundAttempt) -> AttemptForAgents:
    answer = attempt.answer.decode("utf-8", "replace")[:SHOWN_ANSWER]
    return shape_from(AttemptForAgents, attempt, answer=answer or ABSENT)
