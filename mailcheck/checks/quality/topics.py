"""Topics of the checks: title, why the topic matters, and links to further reading."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.quality.receivers import load_receivers


class Link(Struct, frozen=True):
    """A page for further reading: its title and its URL."""

    title: str
    url: str


class Topic(Struct, frozen=True):
    """A topic; ``names`` are its names in JSON, ``why`` is one sentence."""

    names: tuple[str, ...]
    title: str
    about: str
    why: str
    links: tuple[Link, ...]

    @property
    def heading(self) -> str:
        """Title and short description."""
        return f"{self.title}: {self.about}"


@cache
def load_topics() -> Mapping[str, Topic]:
    """Load the table that ships with the package; returns the topics by name, in its order."""
    text = files(__package__).joinpath("topics.toml").read_text("utf-8")
    pages = {receiver.id: receiver.source for receiver in load_receivers()}
    topics = [
        Topic(
            tuple(entry["names"]),
            entry["title"],
            entry["about"],
            entry["why"],
            tuple(Link(title, pages.get(place, place)) for title, place in entry["links"]),
        )
        for entry in tomllib.loads(text)["topics"]
    ]
    return MappingProxyType({name: topic for topic in topics for name in topic.names})


def topic_of(name: str) -> Topic:
    """Return the topic with this name in JSON."""
    return load_topics()[name]


def topic_of_finding(finding_id: str, area: str) -> Topic:
    """Return the topic of a finding in a mail: that of its area, or of the sending host."""
    topics = load_topics()
    return topics[area] if area != "spf" else topics.get(finding_id.partition(".")[0], topics[area])
