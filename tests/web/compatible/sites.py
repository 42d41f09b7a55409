"""A site with facades over a house, and requests to it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from twisted.web.resource import IResource
from twisted.web.server import Site

from tests.house import Answer, House
from tests.web.raw_http import NOTHING, Pending, read_answer


class Asked(Pending):
    """A request that may not be answered yet."""

    def answer(self) -> Answer:
        """Return the response, which must have arrived."""
        assert self.is_answered, "there is no answer yet"
        answer, rest = read_answer(self.connection.received(), self.method)
        assert not rest
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        return answer


class Requests:
    """Sends requests to a resource. ``headers`` are those of every request."""

    def __init__(
        self,
        house: House,
        resource: IResource,
        url: str = "http://127.0.0.1:8025",
        headers: Mapping[str, str] = NOTHING,
    ) -> None:
        self.house = house
        self.site: Any = Site(resource, reactor=house.clock)
        self.url = url
        address = urlsplit(url)
        self.base = address.path
        self.headers = {"Host": address.netloc, **headers}

    def ask(self, method: str, path: str, **options: Any) -> Asked:
        """Send a request, with ``json`` or ``data`` as its body."""
        headers = {**self.headers, **options.pop("headers", {})}
        return Asked(self, method, self.base + path, headers, **options)

    def submit(self, method: str, path: str, **form: str) -> Asked:
        """Send a form."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask(method, path, headers=headers, data=urlencode(form).encode())

    def get(self, path: str, **options: Any) -> Answer:
        """Send a GET request and return its answer."""
        return self.ask("GET", path, **options).answer()

    def pass_time(self, seconds: float) -> None:
        """Advance the time."""
        self.house.clock.advance(seconds)
