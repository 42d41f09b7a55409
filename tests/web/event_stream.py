"""A stream of server-sent events, as far as it has arrived."""

import json
from typing import Any

from tests.web.raw_http import RawHttp


class EventStream:
    """The response to a request for events."""

    def __init__(self, connection: RawHttp) -> None:
        self.connection = connection

    @property
    def head(self) -> str:
        """The head of the response."""
        return self.connection.received().decode().partition("\r\n\r\n")[0]

    @property
    def text(self) -> str:
        """The body without the chunk headers."""
        body = self.connection.received().decode().partition("\r\n\r\n")[2]
        return "".join(body.split("\r\n")[1::2])

    @property
    def events(self) -> list[dict[str, str]]:
        """The fields of each event that has an id or data."""
        read = [
            dict(line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":")
            for block in self.text.split("\n\n")
        ]
        return [event for event in read if {"id", "data"} & set(event)]

    def named(self, name: str) -> list[Any]:
        """Return the data of all events with a name."""
        return [json.loads(one["data"]) for one in self.events if one.get("event") == name]

    @property
    def has_ended(self) -> bool:
        """Whether the response is complete."""
        return self.connection.received().endswith(b"0\r\n\r\n")

    def leave(self) -> None:
        """Disconnect."""
        self.connection.hang_up()
