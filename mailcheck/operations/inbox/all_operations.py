"""The operations on the developer inbox, grouped for the API and the pages."""

from msgspec import Struct

from mailcheck.operations.inbox.check_message import AuthenticateMessage, CheckLinks, CheckMail
from mailcheck.operations.inbox.follow_inbox import FollowInbox
from mailcheck.operations.inbox.mails import Mails
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox, ShareMessage
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks


class InboxOperations(Struct, frozen=True):
    """Everything an account can do with its inbox."""

    read: ReadInbox
    mails: Mails
    wait: WaitForMessage
    follow: FollowInbox
    delete: DeleteMessages
    share: ShareMessage
    authenticate: AuthenticateMessage
    check: CheckMail
    check_links: CheckLinks
    webhooks: ManageWebhooks
    release: ReleaseMail
