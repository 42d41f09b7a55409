"""What checks are about: title, why it matters, and where to read on, each said once."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.quality.receivers import load_receivers


class Link(Struct, frozen=True):
    """A page to read on: what it is called, and where it is."""

    title: str
    url: str


class Topic(Struct, frozen=True):
    """A topic; ``names`` are those that JSON has for it, ``why`` is one sentence."""

    names: tuple[str, ...]
    title: str
    about: str
    why: str
    links: tuple[Link, ...]

    @property
    def heading(self) -> str:
        """Give the title with what it is about."""
        return f"{self.title}: {self.about}"


@cache
def load_topics() -> Mapping[str, Topic]:
    """Read the table that ships with the package; by each name, in its order."""
    text = files(__package__).joinpath("topics.toml").read_text("utf-8")
    pages = {one.id: one.source for one in load_receivers()}
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
    """Give the topic that JSON calls so."""
    return load_topics()[name]


def topic_of_finding(finding_id: str, area: str) -> Topic:
    """Give what a finding in a mail is about: that of its area, or the sending host's name."""
    topics = load_topics()
    return topics[area] if area != "spf" else topics.get(finding_id.partition(".")[0], topics[area])
