"""Builds watches: what their owners do with them, and what runs them."""

from typing import Any

from twisted.application.service import Service

from mailcheck.assembly.cluster import Cluster, share_work
from mailcheck.config.options import Config
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import WATCHES_INTERVAL, WatchRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.domains.watches.look import LookAtWatched
from mailcheck.operations.domains.watches.manage_watches import AlertReceivers, KeepWatches
from mailcheck.operations.domains.watches.run import LOOK_INTERVAL, RunWatches
from mailcheck.operations.domains.watches.tell import TELL_INTERVAL, TellAlerts
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.operations.inbox.send_sample import SendToOwn
from mailcheck.operations.places import CheckTurns
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import Memory
from mailcheck.ports.engine import Engine
from mailcheck.store.domains.watch_store import WatchStore
from mailcheck.web.api.calls import Route
from mailcheck.web.api.watch_routes import WatchRoutes
from mailcheck.web.mcp.domain_tools import WatchTools
from mailcheck.web.mcp.tools import Tool


class WatchAssembly:
    """Everything of watches, built once; ``holder`` is the name under which this process runs them.

    :param alerted: those who are told of alerts.
    :param look: looks at a domain or an address.
    """

    def __init__(
        self,
        config: Config,
        engine: Engine,
        cluster: Cluster,
        look: LookAtWatched,
        turns: CheckTurns,
        receiver: ReceiveMail,
        alerted: AlertReceivers,
        memory: Memory,
        holder: str,
        time_and_chance: TimeAndChance,
    ) -> None:
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self._turns = turns
        self.store = WatchStore(engine)
        self.runner = RunWatches(self.store, look, holder, time_and_chance)
        self.keep = KeepWatches(
            self.store,
            self.runner,
            alerted,
            share_work(cluster, "due watches", self.runner.look),
            time_and_chance,
            allow_special_use=config.dns.allow_special_use,
            allow_private=config.network.allow_private,
        )

        send = SendToOwn(receiver, config.inbox.domain).send
        self.tell = TellAlerts(self.store, send, memory, time_and_chance)

    def routes(self) -> list[Route[Any]]:
        """List the routes of the REST API."""
        return WatchRoutes(self.keep, self._turns).routes()

    def agent_tools(self) -> list[Tool[Any]]:
        """List the tools of the MCP server."""
        return WatchTools(self.keep).tools()

    def services(self) -> list[Service]:
        """Give what runs watches, and what forgets."""
        retention = WatchRetention(self.store, self._now)
        return [
            LeasedWorkService(self.runner),
            # Stopped before it: a round under way would begin new runs.
            PeriodicService(
                "looking for due watches", LOOK_INTERVAL, self.runner.look_again, self._clock
            ),
            PeriodicService("telling alerts", TELL_INTERVAL, self.tell.tell, self._clock),
            retention_service(
                "retention of watches", WATCHES_INTERVAL, retention.sweep, self._clock
            ),
        ]
