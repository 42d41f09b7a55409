"""The verdict of the content filter about a message of an inbox."""

from msgspec import Struct

from mailcheck.checks.deliverability.content_filter import FilterOutcome
from mailcheck.checks.deliverability.trace_fields import TraceFacts, with_trace_fields
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.content_filters import CountedFilter
from mailcheck.operations.inbox.contents import MailBytes


class CheckSpam(Struct, frozen=True, eq=False):
    """Passes messages to the content filter, as a receiver would.

    :param host: the name of this server in the trace fields.
    :param is_on: whether the operator has turned the filter on.
    """

    content_filter: CountedFilter
    mail_bytes: MailBytes
    host: str
    is_on: bool

    async def of_message(self, message: StoredMessage) -> FilterOutcome:
        """Return the verdict about a message, or the reason why there is none.

        :raises MessageNotFound: the message was deleted meanwhile.
        :raises Overloaded: too many large mails are being read.
        """
        summary, session = message.summary, message.session
        facts = TraceFacts(
            envelope_sender=message.envelope_sender,
            recipient=summary.recipient,
            helo_name=session.helo_name,
            client_ip=session.client_ip,
            client_name="",
            receiving_host=self.host,
            protocol="ESMTP" if session.tls is None else "ESMTPS",
            mail_id=summary.delivery_id,
            received_at=summary.received_at,
        )
        filtered = with_trace_fields(await self.mail_bytes.whole(summary), facts)
        return await self.content_filter.judge(filtered)
