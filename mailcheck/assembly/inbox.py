"""Builds inboxes: the store of mails, the receipt of mail, and the owners' operations."""

from collections.abc import Callable

from msgspec import Struct

from mailcheck.assembly.accounts import AccountParts
from mailcheck.assembly.deliverability import DeliverabilityParts
from mailcheck.assembly.deployment import receive_settings, release_settings
from mailcheck.assembly.reports import ReportParts
from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import scoring_settings
from mailcheck.config.options import Config
from mailcheck.core.accounts import Quota
from mailcheck.core.identifiers import AccountId
from mailcheck.daemon.derivation import Derivation
from mailcheck.daemon.retention import Retention
from mailcheck.operations.accounts.log_in import LogIn
from mailcheck.operations.deliverability.authenticate_mail import AuthenticationCache
from mailcheck.operations.deliverability.reply_as_receiver import ReplyAsReceiver
from mailcheck.operations.inbox.all_operations import InboxOperations
from mailcheck.operations.inbox.check_message import AuthenticateMessage, CheckLinks, CheckMail
from mailcheck.operations.inbox.contents import MailBytes, MessageContents, MessageLoader
from mailcheck.operations.inbox.explain_wait import ExplainWait
from mailcheck.operations.inbox.feeds import InboxFeeds, MailHandoff
from mailcheck.operations.inbox.follow_inbox import FollowInbox
from mailcheck.operations.inbox.mailboxes import Mailboxes, MailboxSettings
from mailcheck.operations.inbox.mails import Mails
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox, ShareMessage
from mailcheck.operations.inbox.receive_mail import ReceiveMail, RequestedFaults
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.mailbox_store import MailboxStore
from mailcheck.store.mails import MailsStore
from mailcheck.store.messages import ExpiryStore


class MailParts(Struct, frozen=True):
    """The stored mails, and the waits for them.

    :param hand_over: passes a received mail to the waits of this process.
    """

    store: MailStore
    content_store: ContentStore
    mail_bytes: MailBytes
    contents: MessageContents
    loader: MessageLoader
    notifications: Notifications[AccountId]
    removals: Notifications[AccountId]
    feeds: InboxFeeds
    derivation: Derivation
    hand_over: MailHandoff
    faults: RequestedFaults
    retention: Retention


def default_quota(config: Config) -> Quota:
    """Return the quota of inboxes without their own."""
    return Quota(config.inbox.max_messages, config.inbox.max_bytes)


def build_mail(runtime: Runtime, learn: Callable[[tuple[tuple[str, str], ...]], None]) -> MailParts:
    """Build the stored mails, and the waits for them.

    :param learn: records the DKIM selectors of a mail.
    """
    config, cluster, engine = runtime.config, runtime.cluster, runtime.engine
    clocks, workers = runtime.clocks, runtime.workers
    store = MailStore(engine, default_quota(config))
    content_store = ContentStore(engine)
    mail_bytes = MailBytes(
        content_store, workers.content, workers.large, runtime.reactor, runtime.memory.large_mails
    )
    contents = MessageContents(content_store, mail_bytes, learn, runtime.clock)
    feeds = InboxFeeds(store, clocks.expiry_now)
    notifications, removals = cluster.notifications("inboxes"), cluster.notifications("removals")
    notifications.listen(feeds.on_hint)
    removals.listen(feeds.on_removal)
    cluster.when_hints_are_lost(feeds.check_all)
    is_alone = not config.storage.is_shared
    derivation = Derivation(contents, content_store, runtime.traffic, clocks, is_alone=is_alone)
    return MailParts(
        store=store,
        content_store=content_store,
        mail_bytes=mail_bytes,
        contents=contents,
        loader=MessageLoader(store, contents, clocks.expiry_now),
        notifications=notifications,
        removals=removals,
        feeds=feeds,
        derivation=derivation,
        hand_over=MailHandoff(feeds, contents, derivation.want, runtime.traffic.call_batched),
        faults=RequestedFaults(
            runtime.persistent_state.memory,
            cluster.counters,
            runtime.now,
            is_on=config.inbox.faults,
        ),
        retention=Retention(
            ExpiryStore(engine),
            runtime.retention,
            clocks.expiry_now,
            removals.publish,
        ),
    )


def build_inbox(
    runtime: Runtime,
    mail: MailParts,
    accounts: AccountParts,
    slots: WaitSlots,
    known: AuthenticationCache,
    webhooks: ManageWebhooks,
) -> InboxOperations:
    """Build the operations of an account on its inbox.

    :param known: results of analyses that were computed before.
    """
    clocks = runtime.clocks
    expiry_now = clocks.expiry_now
    store, loader = mail.store, mail.loader
    read = ReadInbox(
        store, mail.contents, loader, mail.mail_bytes, expiry_now, tell=mail.notifications.publish
    )
    delete = DeleteMessages(store, expiry_now, mail.removals.publish)
    authenticate = AuthenticateMessage(
        known,
        mail.content_store,
        runtime.resolvers.plain,
        runtime.workers.analysis,
        scoring_settings(runtime.config),
        clock=runtime.reactor,
    )
    return InboxOperations(
        read=read,
        mails=Mails(
            MailsStore(runtime.engine), mail.contents, loader, read, delete, now=expiry_now
        ),
        wait=WaitForMessage(
            store, mail.feeds, loader, slots, ExplainWait(store, loader, clocks), clocks=clocks
        ),
        follow=FollowInbox(store, mail.feeds, loader, slots, clocks),
        delete=delete,
        share=ShareMessage(store, loader, clocks),
        authenticate=authenticate,
        check=CheckMail(mail.mail_bytes),
        check_links=CheckLinks(runtime.probes, accounts.meter, runtime.clock),
        webhooks=webhooks,
        release=ReleaseMail(
            release_settings(runtime.config),
            runtime.probes,
            read,
            authenticate,
            WebhookStore(runtime.engine),
            counters=runtime.cluster.counters,
            audit=accounts.audit,
            clocks=clocks,
        ),
    )


def build_receiver(
    runtime: Runtime,
    mail: MailParts,
    log_in: LogIn,
    tests: DeliverabilityParts,
    reports: ReportParts,
) -> ReceiveMail:
    """Build the receipt of mail."""
    return ReceiveMail(
        store=mail.store,
        log_in=log_in,
        notifications=mail.notifications,
        traffic=runtime.traffic,
        hand_over=mail.hand_over,
        tests=tests.mail,
        replies=ReplyAsReceiver(
            mail.store.find_message_of_delivery,
            tests.operations.manage,
            tests.feeds,
            runtime.clocks,
        ),
        reports=reports.mail,
        faults=mail.faults,
        settings=receive_settings(runtime.config, runtime.retention),
        clocks=runtime.clocks,
    )


def build_mailboxes(runtime: Runtime, mail: MailParts, receiver: ReceiveMail) -> Mailboxes:
    """Build the mailboxes that IMAP and POP3 show."""
    config = runtime.config
    domains = receive_settings(config, runtime.retention).domains
    mailboxes = Mailboxes(
        store=MailboxStore(runtime.engine),
        mails=mail.store,
        mail_bytes=mail.mail_bytes,
        contents=mail.contents,
        receiver=receiver,
        notifications=mail.notifications,
        removals=mail.removals,
        settings=MailboxSettings(
            config.inbox.domain, tuple(sorted(domains)), config.smtp.max_message_size
        ),
        clock=runtime.clock,
        now=runtime.clocks.expiry_now,
    )
    runtime.cluster.when_hints_are_lost(mailboxes.wake_all)
    return mailboxes
