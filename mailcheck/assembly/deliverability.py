"""Builds deliverability tests: their operations, analyses, and the mail to their addresses."""

from twisted.application.service import Service

from mailcheck.assembly.cluster import Cluster, share_work
from mailcheck.assembly.deployment import own_domains, public_url
from mailcheck.config.options import Config
from mailcheck.core.instants import DAY
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import INTERVAL, DeliverabilityRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.concurrency import MailTraffic
from mailcheck.operations.deliverability.manage_tests import (
    ManageTests,
)
from mailcheck.operations.deliverability.offered import DeliverabilityOperations
from mailcheck.operations.deliverability.receive_for_tests import ReceiveForTests
from mailcheck.operations.deliverability.run_test_checks import RENEWAL, Analyse, RunTestChecks
from mailcheck.operations.deliverability.wait_for_test import DeliverabilityFeeds, WaitForTest
from mailcheck.operations.places import WaitSlots
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.engine import Engine
from mailcheck.store.deliverability_store import DeliverabilityStore


class DeliverabilityAssembly:
    """Everything of deliverability tests, built once.

    ``analyse`` is what a mail is judged with, ``holder`` the name under which this process does.
    """

    def __init__(
        self,
        config: Config,
        engine: Engine,
        cluster: Cluster,
        slots: WaitSlots,
        analyse: Analyse,
        traffic: MailTraffic,
        holder: str,
        time_and_chance: TimeAndChance,
    ) -> None:
        self._time_and_chance = time_and_chance
        expiry_now = time_and_chance.expiry_now
        self.store = DeliverabilityStore(engine)
        self.feeds = DeliverabilityFeeds()
        self.wake_ups = cluster.wake_ups("tests")
        self.wake_ups.listen(self.feeds.hear)
        self.runner = RunTestChecks(
            self.store, analyse, self.wake_ups, traffic, holder, time_and_chance
        )
        look = share_work(cluster, "waiting tests", self.runner.look)
        cluster.when_hints_are_lost(self.feeds.look_everywhere)
        retention = config.tests.retention_days * DAY
        manage = ManageTests(self.store, self.wake_ups, look, retention, time_and_chance)
        wait = WaitForTest(manage, self.feeds, slots, time_and_chance)
        self.operations = DeliverabilityOperations(manage, wait)
        self.mail = ReceiveForTests(
            self.store, self.wake_ups, look, own_domains(config), public_url(config), expiry_now
        )

    def services(self) -> list[Service]:
        """Give the services of the tests; parked waits are ended before them."""
        clock = self._time_and_chance.clock
        retention = DeliverabilityRetention(self.store, self._time_and_chance.expiry_now)
        return [
            LeasedWorkService(self.runner),
            # Stopped before it: a round under way would begin new analyses.
            PeriodicService("renewing leases", RENEWAL, self.runner.renew, clock),
            retention_service("retention of tests", INTERVAL, retention.sweep, clock),
        ]
