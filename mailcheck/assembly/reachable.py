"""The cost of each call that strangers can make: the table in ``reachable.toml``.

A test fails for a route, tool, command or address that is not in the table, and for a call that
costs more than the table declares.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from msgspec import Struct


class Cost(Struct, frozen=True):
    """The maximum cost of one call.

    ``rows`` and ``octets`` are the growth of the store, ``questions`` are DNS questions. The other
    fields count pieces of work for a process or its threads: ``content``, ``passwords``,
    ``analysis``, ``large`` and ``requests``. A call without costs is answered by the daemon's main
    process, from memory and by reads of the store.
    """

    rows: int = 0
    octets: int = 0
    questions: int = 0
    content: int = 0
    passwords: int = 0
    analysis: int = 0
    large: int = 0
    requests: int = 0


def read_costs() -> Mapping[str, Cost]:
    """Return the declared cost of each entry point, by its name.

    :raises ValueError: an entry point is declared twice.
    """
    text = files("mailcheck.assembly").joinpath("reachable.toml").read_text("utf-8")
    found: dict[str, Cost] = {}
    for group in tomllib.loads(text)["group"]:
        cost = Cost(**{name: group[name] for name in Cost.__struct_fields__ if name in group})
        for entry in group["entries"]:
            if entry in found:
                raise ValueError(f"{entry} is declared twice")
            found[entry] = cost
    return found
