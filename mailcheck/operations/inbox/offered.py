"""All operations on the developer inbox, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.inbox.authenticate_message import AuthenticateMessage
from mailcheck.operations.inbox.check_links import CheckLinks
from mailcheck.operations.inbox.check_mail import CheckMail
from mailcheck.operations.inbox.delete_messages import DeleteMessages
from mailcheck.operations.inbox.follow_inbox import FollowInbox
from mailcheck.operations.inbox.read_inbox import ReadInbox
from mailcheck.operations.inbox.share_message import ShareMessage
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.inbox.webhooks import KeepWebhooks


class InboxOperations(Struct, frozen=True):
    """What an account can do with its inbox; each operation is a file."""

    read: ReadInbox
    wait: WaitForMessage
    follow: FollowInbox
    delete: DeleteMessages
    share: ShareMessage
    authenticate: AuthenticateMessage
    check: CheckMail
    check_links: CheckLinks
    webhooks: KeepWebhooks
