"""Builds deliverability tests: operations, analyses, and receipt of their mail."""

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.assembly.cluster import share_work
from mailcheck.assembly.deployment import own_domains, public_url
from mailcheck.assembly.runtime import Runtime
from mailcheck.assembly.scoring import Scoring
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import DAY
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import INTERVAL, DeliverabilityRetention, retention_service
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.deliverability.all_operations import DeliverabilityOperations
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.deliverability.preflight import Preflight
from mailcheck.operations.deliverability.receive_for_tests import ReceiveForTests
from mailcheck.operations.deliverability.run_test_checks import RENEWAL, Analyse, RunTestChecks
from mailcheck.operations.deliverability.wait_for_test import DeliverabilityFeeds, WaitForTest
from mailcheck.operations.parked_waits import WaitSlots
from mailcheck.ports.cluster import Notifications
from mailcheck.store.deliverability_store import DeliverabilityStore


class DeliverabilityParts(Struct, frozen=True):
    """The operations on deliverability tests. ``mail`` receives the mail sent to them."""

    store: DeliverabilityStore
    feeds: DeliverabilityFeeds
    notifications: Notifications[DeliverabilityTestId]
    runner: RunTestChecks
    operations: DeliverabilityOperations
    preflight: Preflight
    mail: ReceiveForTests


def build_tests(
    runtime: Runtime, scoring: Scoring, slots: WaitSlots, analyse: Analyse
) -> DeliverabilityParts:
    """Build the operations on deliverability tests.

    :param analyse: analyses the mails sent to tests.
    """
    config, cluster, clocks = runtime.config, runtime.cluster, runtime.clocks
    expiry_now, retention = clocks.expiry_now, config.tests.retention_days * DAY
    store, feeds = DeliverabilityStore(runtime.engine), DeliverabilityFeeds()
    notifications = cluster.notifications("tests")
    notifications.listen(feeds.on_hint)
    runner = RunTestChecks(
        store,
        analyse,
        notifications,
        runtime.traffic,
        holder=runtime.holder,
        clocks=clocks,
    )
    look = share_work(cluster, "waiting tests", runner.wake)
    cluster.when_hints_are_lost(feeds.check_all)
    manage = ManageTests(store, notifications, look, retention, clocks)
    operations = DeliverabilityOperations(manage, WaitForTest(manage, feeds, slots, clocks))
    return DeliverabilityParts(
        store,
        feeds,
        notifications,
        runner,
        operations,
        preflight=Preflight(manage, scoring.score, runtime.clock),
        mail=ReceiveForTests(
            store, notifications, look, own_domains(config), public_url(config), now=expiry_now
        ),
    )


def deliverability_services(runtime: Runtime, tests: DeliverabilityParts) -> list[Service]:
    """Return the services of the tests. Waits are ended before them."""
    clock = runtime.clock
    retention = DeliverabilityRetention(tests.store, runtime.clocks.expiry_now)
    return [
        LeasedWorkService(tests.runner),
        # Stopped first, since a running round would start new analyses.
        PeriodicService("renewing leases", RENEWAL, tests.runner.renew, clock),
        retention_service("retention of tests", INTERVAL, retention.sweep, clock),
    ]
