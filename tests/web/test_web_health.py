"""/healthz and /readyz (docs/reference/contract.md, "Health and metrics")."""

from contextlib import closing

from mailcheck.assembly.workers import Workers
from mailcheck.core.errors import StoreUnavailable
from mailcheck.ops.watch import DISK, FULL_DISK
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.workers import FaultyWorker


@rows(("GET", "/healthz"), ("HEAD", "/healthz"), ("GET", "/readyz"), ("HEAD", "/readyz"))
def test_a_healthy_daemon(house: House, method: str, path: str) -> None:
    """A daemon with an available store is healthy and ready; HEAD works too."""
    assert house.open(path, method).answer().status == 200


def test_without_a_store_the_daemon_is_not_ready() -> None:
    """Without a writable store, /readyz is 503. A probe causes no write."""
    writer = FaultyWorker()
    house = House(config_in_memory(), Workers(writer, DirectWorker(), DirectWorker()))
    run(house.assembly.heartbeat.look())
    assert house.open("/readyz").answer().json == {"status": "ready"}
    writer.fault = StoreUnavailable("the database cannot answer now: locked")
    before = writer.calls
    assert house.open("/readyz").answer().status == 200
    assert writer.calls == before
    run(house.assembly.heartbeat.look())
    answer = house.open("/readyz").answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    told = answer.json["degraded"]["store"]
    assert told.startswith("the database cannot answer now; ")
    assert "locked" not in told
    assert house.open("/healthz").answer().status == 200
    writer.fault = None
    run(house.assembly.heartbeat.look())
    assert house.open("/readyz").answer().status == 200


def test_problems_are_listed(house: House) -> None:
    """A daemon that works despite problems is ready and lists the problems."""
    house.assembly.runtime.conditions.set("resolver 192.0.2.1", "it does not answer")
    answer = house.open("/readyz").answer()
    assert answer.json == {
        "status": "ready",
        "degraded": {"resolver 192.0.2.1": "it does not answer"},
    }


@rows(
    (FULL_DISK, 503),
    ("512 MiB are free, of 1024 MiB that mail must leave: refused", 200),
)
def test_a_disk_without_room(problem: str, status: int) -> None:
    """The daemon is not ready on a full disk, and degraded on one that is nearly so."""
    with closing(House(config_in_memory())) as house:
        house.assembly.runtime.conditions.set(DISK, problem)
        answer = house.open("/readyz").answer()
        assert (answer.status, answer.json["degraded"]) == (status, {"disk": problem})


def test_a_closed_store_is_not_ready(house: House) -> None:
    """With a closed store, as during shutdown, /readyz is 503."""
    house.assembly.runtime.engine.close()
    run(house.assembly.heartbeat.look())
    assert house.open("/readyz").answer().status == 503
