"""/healthz and /readyz: is it alive, can it work (DECISIONS.md section 7)."""

import pytest

from mailcheck.assembly.daemon import Workers
from mailcheck.core.errors import StoreUnavailable
from mailcheck.workers.direct import DirectWorker
from tests.house import House, config_in_memory
from tests.web.workers import FaultyWorker


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_daemon_that_works_says_so(house: House, method: str, path: str) -> None:
    """A daemon whose store answers is healthy and ready; probes may use HEAD."""
    assert house.open(path, method).answer().status == 200


def test_a_daemon_without_its_store_is_alive_and_not_ready() -> None:
    """With the store away /healthz stays 200, /readyz is 503 until it is back."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    reader.fault = StoreUnavailable("the database can't answer now: locked")
    answer = house.open("/readyz").answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert house.open("/healthz").answer().status == 200
    reader.fault = None
    assert house.open("/readyz").answer().status == 200
    house.close()


def test_a_closed_store_is_not_ready(house: House) -> None:
    """With the store closed, as a daemon that stops has it, /readyz is 503."""
    house.assembly.engine.close()
    assert house.open("/readyz").answer().status == 503
