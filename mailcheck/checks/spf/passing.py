"""Addresses that pass a tree of SPF records, for comparing records before and after a change.

The addresses are samples: the first and the last one of the networks that each term permits. All
of them are evaluated in one walk through the tree, each as a receiver evaluates it (RFC 7208 4.6).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from mailcheck.checks.spf.record import Mechanism, MechanismName, Qualifier, parse_term
from mailcheck.checks.spf.tree import (
    MAX_LOOKUPS,
    MAX_VOIDS,
    REDIRECT,
    Network,
    NodeProblem,
    SpfNode,
    Step,
)
from mailcheck.core.network_addresses import DOCUMENTATION, IpAddress, why_not_public

MAX_SAMPLES = 256
"""Maximum number of addresses that are tried. The largest real records have about 150 networks."""

NETWORKS_PER_TERM = 2
"""Number of networks of a term and an IP version from which addresses are taken."""

_REACHABLE = (None, DOCUMENTATION)
"""Reasons why an address is not public with which it still can be a sender: examples have such."""


@lru_cache(maxsize=16)
def sample_senders(tree: SpfNode) -> tuple[IpAddress, ...]:
    """Return addresses that pass, for each term of the tree that permits some hosts.

    An ``all`` is not a sender, since it matches the addresses that no term names. The result is
    cached, because a check compares one tree with the tree of each trial.
    """
    named = dict.fromkeys(_list_addresses(tree))
    passing = find_passing(tree, islice(named, MAX_SAMPLES))
    return tuple(address for address in named if address in passing)


def find_passing(tree: SpfNode, addresses: Iterable[IpAddress]) -> frozenset[IpAddress]:
    """Return the addresses that pass.

    A term that depends on the mail matches no address here.
    """
    clients = frozenset(addresses)
    results = _Receivers().check(tree, clients)
    return frozenset(client for client in clients if results.get(client) is Qualifier.PASS)


def _list_addresses(tree: SpfNode) -> Iterator[IpAddress]:
    for node in tree.walk():
        for step in node.steps:
            if step.child is None and step.qualifier is Qualifier.PASS and not _is_all(step):
                for version in (4, 6):
                    fitting = (own for own in step.networks if own.version == version)
                    for network in islice(fitting, NETWORKS_PER_TERM):
                        ends = (network[0], network[-1])
                        yield from (end for end in ends if why_not_public(end) in _REACHABLE)


def _is_all(step: Step) -> bool:
    term = parse_term(step.term)
    return isinstance(term, Mechanism) and term.name is MechanismName.ALL


def _asks_dns(step: Step) -> bool:
    term = parse_term(step.term)
    return not isinstance(term, Mechanism) or term.name.asks_dns


class _Receivers:
    """Receivers of one mail from each of several addresses."""

    def __init__(self) -> None:
        self._lookups: Counter[IpAddress] = Counter()
        self._voids: Counter[IpAddress] = Counter()
        self._stopped: set[IpAddress] = set()
        """Addresses whose evaluation has ended with an error."""

    def check(
        self, node: SpfNode, clients: frozenset[IpAddress]
    ) -> dict[IpAddress, Qualifier | None]:
        """Return the result for each address that a term matches."""
        results: dict[IpAddress, Qualifier | None] = {}
        left = set(clients)
        if node.problem not in (None, NodeProblem.MACRO):
            self._stopped |= left
            return results
        for step in node.steps:
            self._count(step, node, left)
            left -= self._stopped
            if not left:
                break
            if step.term.startswith(REDIRECT) and step.child is not None:
                return results | self.check(step.child, frozenset(left))
            if step.child is not None:
                included = self.check(step.child, frozenset(left))
                matched = {address for address, end in included.items() if end is Qualifier.PASS}
                left -= self._stopped
            else:
                matched = set(_find_within(step.networks, left))
            results |= dict.fromkeys(matched, step.qualifier)
            left -= matched
        return results

    def _count(self, step: Step, node: SpfNode, clients: set[IpAddress]) -> None:
        """Count the lookup of a term, and stop the addresses for which there were too many."""
        if not _asks_dns(step):
            return
        if step.term in node.oversized_mx:
            self._stopped |= clients
        self._lookups.update(clients)
        self._voids.update(client for client in clients if client.version in step.void_for)
        self._stopped |= {
            client
            for client in clients
            if self._lookups[client] > MAX_LOOKUPS or self._voids[client] > MAX_VOIDS
        }


def _find_within(networks: Iterable[Network], clients: set[IpAddress]) -> Iterator[IpAddress]:
    """Yield the addresses within any of the networks."""
    ordered: dict[int, list[int]] = {4: [], 6: []}
    for client in sorted(clients, key=int):
        ordered[client.version].append(int(client))
    for network in networks:
        numbers = ordered[network.version]
        first = bisect_left(numbers, int(network.network_address))
        last = bisect_right(numbers, int(network.broadcast_address))
        for number in numbers[first:last]:
            yield type(network.network_address)(number)
