"""A site with facades over a house, and requests to it."""

from collections.abc import Mapping
from typing import Any

from treq.testing import StubTreq
from twisted.web.resource import IResource

from tests.house import Answer, House, result_of


class Asked:
    """A request that may not be answered yet."""

    def __init__(self, stub: Any, method: str, url: str, **options: Any) -> None:
        self._stub = stub
        self._answers: list[Any] = []
        self._response = stub.request(method, url, **options)
        self._response.addBoth(self._answers.append)
        stub.flush()

    @property
    def is_answered(self) -> bool:
        """Whether a response has arrived."""
        self._stub.flush()
        return bool(self._answers)

    def answer(self) -> Answer:
        """Return the response, which must have arrived."""
        assert self.is_answered, "there is no answer yet"
        response = self._answers[0]
        if hasattr(response, "raiseException"):
            response.raiseException()
        body = self._stub.content(response)
        self._stub.flush()
        headers = {
            name.decode().lower(): b", ".join(values).decode()
            for name, values in response.headers.getAllRawHeaders()
            if values
        }
        assert headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control-")]
        return Answer(response.code, headers, result_of(body))

    def hang_up(self) -> None:
        """Cancel the request without waiting for the answer."""
        self._response.cancel()
        self._stub.flush()


class Requests:
    """Sends requests to a resource. ``headers`` are those of every request."""

    def __init__(
        self,
        house: House,
        resource: IResource,
        url: str = "http://127.0.0.1:8025",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.house = house
        self.url = url
        self.headers = dict(headers or {})
        self._stub: Any = StubTreq(resource)

    def ask(self, method: str, path: str, **options: Any) -> Asked:
        """Send a request, with ``json`` or ``data`` as its body."""
        headers = {**self.headers, **options.pop("headers", {})}
        return Asked(self._stub, method, self.url + path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Answer:
        """Send a GET request and return its answer."""
        return self.ask("GET", path, **options).answer()

    def pass_time(self, seconds: float) -> None:
        """Advance the time."""
        self.house.clock.advance(seconds)
        self._stub.flush()
