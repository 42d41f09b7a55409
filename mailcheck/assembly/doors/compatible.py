"""Builds the APIs of other mail testers, and the listeners of Mailpit's clients."""

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from twisted.web.resource import IResource
from twisted.web.server import Request

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import body_limits, connection_limits, public_url, smtp_settings
from mailcheck.assembly.doors.access import build_access, client_addresses, posted_size
from mailcheck.connections.policies import TlsPolicy
from mailcheck.core.accounts import Caller
from mailcheck.operations.content_filters import CountedFilter
from mailcheck.operations.inbox.keywords import Keywords
from mailcheck.operations.inbox.open_inbox import Chaos, OpenInbox, OpenReceiver, Passwords
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.operations.inbox.spam import CheckSpam
from mailcheck.operations.inbox.submit_mail import SubmitMail
from mailcheck.ops.journal import MailJournal
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.verbs import VERBS
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailhog import MAILHOG, MailHog
from mailcheck.web.compatible.mailosaur.repeats import Repeats, admit_repeats
from mailcheck.web.compatible.mailosaur.routes import MAILOSAUR, Mailosaur
from mailcheck.web.compatible.mailosaur.servers import KeepServers
from mailcheck.web.compatible.mailpit.admission import OpenAdmission
from mailcheck.web.compatible.mailpit.events import EventSockets
from mailcheck.web.compatible.mailpit.routes import MAILPIT, PROBES, Mailpit
from mailcheck.web.compatible.mailslurp.facade import MAILSLURP
from mailcheck.web.compatible.mailslurp.handlers import MailSlurp
from mailcheck.web.compatible.mailslurp.names import KeepNames
from mailcheck.web.compatible.reading import HeldMails, Messages
from mailcheck.web.providers.conversion import Conversion
from mailcheck.web.site.access_control import AccessControl
from mailcheck.web.site.application import Admit, Application, Door, OpenDoor, admit_with_key
from mailcheck.web.site.requests import ClientAddresses, RequestUrls
from mailcheck.web.site.server import BoundedSite

FACADES: Sequence[Door] = (MAILPIT, MAILHOG, MAILOSAUR, MAILSLURP)
"""The products whose APIs are offered, in the order of the documentation."""


def build_operations(daemon: Daemon) -> Mapping[str, object]:
    """Return the handlers of each facade that is below a path, by its name."""
    runtime, inbox = daemon.runtime, daemon.inbox
    messages = Messages(inbox, daemon.mail.mail_bytes)
    random_bytes = runtime.clocks.random_bytes
    servers = KeepServers(inbox.read, messages, runtime.persistent_state.memory, random_bytes)
    mailosaur = Mailosaur(
        inbox.read,
        messages,
        servers,
        daemon.tests.operations,
        inbox.release,
        _hold=build_hold(daemon),
        repeats=Repeats(runtime.persistent_state.memory),
        _turns=runtime.turns,
    )
    mailslurp = MailSlurp(
        inbox.read,
        inbox.webhooks,
        messages,
        daemon.mail.mail_bytes,
        KeepNames(runtime.persistent_state.memory),
        _hold=build_hold(daemon),
        _turns=runtime.turns,
        _domain=runtime.config.inbox.domain,
        _random_bytes=random_bytes,
    )
    return {MAILOSAUR.name: mailosaur, MAILSLURP.name: mailslurp}


def build_facades(
    daemon: Daemon, access: AccessControl, addresses: ClientAddresses, urls: RequestUrls
) -> IResource:
    """Build the APIs of other products that are below a path."""
    operations = build_operations(daemon)
    hosted = [door for door in FACADES if door.base]

    def base_of(facade: Door, request: Request) -> str:
        return urls.of(request).public_url + facade.base

    def admission(facade: Door, handlers: object) -> Admit:
        if isinstance(handlers, Mailosaur):
            return admit_repeats(access, facade.read_key, handlers.repeats, Mailosaur.search)
        return admit_with_key(access, facade.read_key)

    opened = [
        OpenDoor(
            door,
            admission(door, operations[door.name]),
            urls.of,
            partial(base_of, door),
            operations[door.name],
        )
        for door in hosted
    ]
    return Application(opened, addresses, daemon.runtime.now)


def build_hold(daemon: Daemon) -> Hold:
    """Build the hold of searches that find nothing."""
    inbox = daemon.inbox
    return Hold(inbox.follow, inbox.read, daemon.runtime.config.compatible.hold)


class OpenListeners(Struct, frozen=True):
    """What listens for Mailpit's clients."""

    site: BoundedSite
    mail: MailFactory


def build_open_listeners(
    daemon: Daemon,
    access: AccessControl,
    addresses: ClientAddresses,
    tls_for: TlsPolicy,
    body_size: int,
) -> OpenListeners:
    """Build the listeners that need no API key.

    :param body_size: maximum size of a request with a mail.
    """
    runtime, options = daemon.runtime, daemon.runtime.config.mailpit
    inbox = daemon.inbox
    owner = OpenInbox(daemon.accounts.keep, inbox.read, options.project, runtime.now)
    chaos = Chaos(
        runtime.persistent_state.memory,
        options.project,
        runtime.clocks.random_bytes,
        runtime.now,
        is_on=runtime.config.inbox.faults,
    )
    root = options.web_root
    admission = OpenAdmission(
        owner,
        Passwords(options.ui_password),
        access,
        addresses,
        [host.lower() for host in options.hosts],
        _probes=[f"{root}{path}".encode() for path in PROBES],
    )
    hold = build_hold(daemon)

    def base_of(request: Request) -> str:
        return admission.base(request) + root

    async def admit(request: Request, *_: object) -> Caller:
        return await admission.admit(request)

    opened = [
        OpenDoor(replace(facade, base=root), admit, base=base_of, operations=operations)
        for facade, operations in (
            (MAILPIT, _mailpit(daemon, hold, chaos)),
            (MAILHOG, _mailhog(daemon, hold, chaos)),
        )
    ]
    site = BoundedSite(
        Application(opened, addresses, runtime.now),
        connection_limits(runtime.config),
        addresses,
        runtime.reactor,
        runtime.clients,
        bodies=body_limits({f"{root}/api/v1/send".encode(): body_size}, runtime.memory),
        buffers=daemon.responses,
    )
    passwords = Passwords(options.smtp_password)
    mail = MailFactory(
        VERBS,
        OpenReceiver(daemon.receiver, owner, chaos, passwords),
        smtp_settings(
            runtime.config,
            tls_for,
            is_submission=True,
            is_auth_optional=not passwords,
            is_private=not passwords,
        ),
        runtime.reactor,
        daemon.journals["open"],
        memory=daemon.incoming,
    )
    return OpenListeners(site, mail)


def _mailhog(daemon: Daemon, hold: Hold, chaos: Chaos) -> MailHog:
    inbox, domain = daemon.inbox, daemon.runtime.config.inbox.domain
    return MailHog(inbox, daemon.mail.mail_bytes, HeldMails(inbox, hold), chaos, domain)


def _mailpit(daemon: Daemon, hold: Hold, chaos: Chaos) -> Mailpit:
    runtime, config = daemon.runtime, daemon.runtime.config
    submit = SubmitMail(
        daemon.receiver, daemon.journals["open"], runtime.reactor, config.smtp.max_message_size
    )
    spam = CheckSpam(
        CountedFilter(runtime.filters.content_filter, runtime.filters.rspamd),
        daemon.mail.mail_bytes,
        config.smtp.host_name or config.inbox.domain,
        is_on=config.spamassassin.spamd != "off" or bool(config.rspamd.url),
    )
    inbox, chance = daemon.inbox, runtime.clocks
    return Mailpit(
        _inbox=inbox,
        _mails=HeldMails(inbox, hold),
        _keywords=Keywords(daemon.mailboxes),
        _hold=hold,
        _mail_bytes=daemon.mail.mail_bytes,
        _conversion=Conversion(runtime.workers.requests),
        _submit=submit,
        _spam=spam,
        _show=ShowMessage(daemon.mail.mail_bytes, runtime.workers.content),
        _chaos=chaos,
        _sockets=EventSockets(inbox.follow, inbox.mails, chance.clock),
        _turns=runtime.turns,
        _pages=lambda: PublicUrls(public_url(config)),
        _received=partial(_received, daemon.journals["open"]),
        _domain=config.inbox.domain,
        _random_bytes=chance.random_bytes,
        _began=runtime.now(),
    )


def _received(journal: MailJournal) -> Mapping[str, int]:
    """Return the numbers of mails on a port since the start, as Mailpit names them."""
    counts = journal.replies.counts
    accepted = sum(count for (_, reply, _), count in counts.items() if reply == "250")
    return {
        "SMTPAccepted": accepted,
        "SMTPAcceptedSize": journal.accepted_size,
        "SMTPRejected": sum(counts.values()) - accepted,
    }


def build_open(daemon: Daemon, tls_for: TlsPolicy) -> OpenListeners:
    """Build the listeners of clients without an API key."""
    addresses = client_addresses(daemon)
    size = posted_size(daemon.runtime.config.smtp.max_message_size)
    return build_open_listeners(daemon, build_access(daemon, addresses), addresses, tls_for, size)
