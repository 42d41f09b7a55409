"""All operations on the developer inbox, for those who serve them."""

from dataclasses import dataclass

from mailcheck.operations.inbox.authenticate_message import AuthenticateMessage
from mailcheck.operations.inbox.delete_messages import DeleteMessages
from mailcheck.operations.inbox.read_inbox import ReadInbox
from mailcheck.operations.inbox.share_message import ShareMessage
from mailcheck.operations.inbox.wait_for_message import WaitForMessage


@dataclass(frozen=True, slots=True)
class InboxOperations:
    """What an account can do with its inbox; each operation is a file."""

    read: ReadInbox
    wait: WaitForMessage
    delete: DeleteMessages
    share: ShareMessage
    authenticate: AuthenticateMessage
