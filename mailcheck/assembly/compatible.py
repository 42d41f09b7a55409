"""Builds what handles the requests of other products' clients."""

from collections.abc import Mapping

from mailcheck.assembly.daemon import Daemon
from mailcheck.web.compatible.hold import Hold
from mailcheck.web.compatible.mailosaur.facade import MAILOSAUR
from mailcheck.web.compatible.mailosaur.handlers import Mailosaur
from mailcheck.web.compatible.mailosaur.servers import KeepServers
from mailcheck.web.compatible.mailslurp.facade import MAILSLURP
from mailcheck.web.compatible.mailslurp.handlers import MailSlurp
from mailcheck.web.compatible.reading import ReadMessages


def build_operations(daemon: Daemon) -> Mapping[str, object]:
    """Return the handlers of each facade that is below a path, by its name."""
    runtime, inbox = daemon.runtime, daemon.inbox
    hold = Hold(inbox.follow, inbox.read, runtime.config.compatible.hold)
    messages = ReadMessages(inbox.read, daemon.mail.mail_bytes)
    servers = KeepServers(
        inbox.read,
        inbox.delete,
        runtime.persistent_state.memory,
        runtime.clock_and_randomness.random_bytes,
    )
    mailosaur = Mailosaur(
        inbox.read,
        inbox.delete,
        messages,
        servers,
        daemon.tests.operations,
        hold,
        runtime.turns,
    )
    mailslurp = MailSlurp(
        inbox.read,
        inbox.delete,
        inbox.webhooks,
        messages,
        daemon.mail.mail_bytes,
        hold,
        runtime.turns,
        runtime.config.inbox.domain,
        runtime.clock_and_randomness.random_bytes,
    )
    return {MAILOSAUR.name: mailosaur, MAILSLURP.name: mailslurp}
