"""Builds the pages of the inbox, its messages and their share links."""

from collections.abc import Callable

from mailcheck.config.options import Config
from mailcheck.core.instants import HOUR
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.operations.concurrency import Turns
from mailcheck.operations.inbox.messages import ShowMessage
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.operations.inbox.send_sample import SendSample
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.web.dashboard.inbox.live import LivePages
from mailcheck.web.dashboard.inbox.message_pages import MessagePages
from mailcheck.web.dashboard.inbox.pages import InboxFacts, InboxList, InboxPages
from mailcheck.web.dashboard.inbox.share_pages import SharePages
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page


def inbox_pages(
    config: Config,
    inbox: InboxOperations,
    receiver: ReceiveMail,
    show: ShowMessage,
    turns: Turns,
    time_and_chance: TimeAndChance,
) -> Callable[[Renderer], list[Page]]:
    """Give what makes the pages, once there is a renderer."""
    sample = SendSample(receiver, config.inbox.domain, time_and_chance)
    addresses = [parse_listen_address(text) for text in config.smtp.listen]
    facts = InboxFacts(
        config.inbox.domain,
        next((address.port for address in addresses if address.port), None),
        int(config.inbox.retention_hours * HOUR),
    )

    listed = InboxList(inbox.read, facts)

    def make(renderer: Renderer) -> list[Page]:
        return [
            *InboxPages(listed, inbox.read, inbox.delete, sample, renderer).pages(),
            *LivePages(inbox.follow, renderer, time_and_chance.clock).pages(),
            *MessagePages(
                inbox.read, listed, inbox.authenticate, show, inbox.share, inbox.delete, renderer
            ).pages(),
            *SharePages(inbox.share, inbox.authenticate, show, renderer, turns).pages(),
        ]

    return make
