"""The tree of SPF records below a domain, evaluated as a receiver does (RFC 7208 4.6.4).

Every term is counted and looked up. A receiver does this for a mail that no term matches, which
is the most expensive case.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from math import log2

from msgspec import Struct

from mailcheck.checks.dns_answers import (
    Answers,
    Presence,
    ip_addresses,
    look_up,
    mx_records,
    presence_of,
    txt_values,
)
from mailcheck.checks.findings import Finding
from mailcheck.checks.spf.record import (
    Mechanism,
    MechanismName,
    NamedSender,
    Qualifier,
    SpfRecord,
    depends_on_mail,
    expand_macros,
    parse_spf_record,
    to_query_name,
    truncate_name,
)
from mailcheck.checks.spf_texts import is_spf_record, looks_like_spf
from mailcheck.core.network_addresses import IpAddress

Network = IPv4Network | IPv6Network

ANYWHERE: tuple[Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))

OPEN_LENGTH = 4
"""Prefix length from which a set of addresses counts as the whole address space. It is a sixteenth
of the space; only an eighth of IPv6 is in use (2000::/3)."""

WIDE_LENGTHS = (10, 16)
"""Prefix lengths, IPv4 and IPv6, above the number of addresses of any real sender. The records of
the largest mail services add up to a /13 and a /29."""


class Reach(Struct, frozen=True):
    """Number of addresses that pass, by IP version.

    The number for IPv6 is rounded, since cached values have no integers of more than 64 bits.
    """

    ipv4: int = 0
    ipv6: float = 0

    @property
    def is_open(self) -> bool:
        """Whether nearly every address passes, for IPv4 or for IPv6."""
        return self.ipv4 >= 1 << (32 - OPEN_LENGTH) or self.ipv6 >= 1 << (128 - OPEN_LENGTH)

    @property
    def is_wide(self) -> bool:
        """Whether more addresses pass than any real sender has."""
        of_ipv4, of_ipv6 = WIDE_LENGTHS
        return self.ipv4 > 1 << (32 - of_ipv4) or self.ipv6 > 1 << (128 - of_ipv6)

    def __str__(self) -> str:
        """Describe the number of addresses, for the IP versions with too many."""
        parts = []
        if self.ipv4 == 2**32 and self.ipv6 == 2**128:
            return "every address in the world"
        if self.ipv4 == 2**32:
            parts.append(f"every IPv4 address in the world ({self.ipv4:,})")
        elif self.ipv4 > 1 << (32 - WIDE_LENGTHS[0]):
            parts.append(f"{self.ipv4:,} IPv4 addresses")
        if self.ipv6 == 2**128:
            parts.append("every IPv6 address in the world")
        elif self.ipv6 > 1 << (128 - WIDE_LENGTHS[1]):
            parts.append(f"about 2^{int(log2(self.ipv6))} IPv6 addresses")
        return " and ".join(parts)


NO_ADDRESSES = Reach()


def count_addresses(networks: Iterable[Network]) -> Reach:
    """Count the public addresses in the networks, each once."""
    distinct = {network for network in networks if network.is_global}
    ipv4 = collapse_addresses(network for network in distinct if isinstance(network, IPv4Network))
    ipv6 = collapse_addresses(network for network in distinct if isinstance(network, IPv6Network))
    every_ipv6 = float(sum(network.num_addresses for network in ipv6))
    return Reach(sum(network.num_addresses for network in ipv4), every_ipv6)


MAX_LOOKUPS = 10  # RFC 7208 4.6.4
MAX_VOIDS = 2  # RFC 7208 4.6.4
MAX_MX_HOSTS = 10  # RFC 7208 4.6.4

IP_VERSIONS = (4, 6)


class NodeProblem(Enum):
    """Why a receiver cannot evaluate a record of the tree, or why it is unknown."""

    ABSENT = "absent"
    """An include or redirect leads to a name without an SPF record (RFC 7208 5.2, 6.1)."""
    SEVERAL = "several"
    """More than one record (RFC 7208 4.5)."""
    SYNTAX = "syntax"
    LOOP = "loop"
    """The record includes itself, directly or not."""
    UNDETERMINED = "undetermined"
    MACRO = "macro"
    """The target depends on the mail. It is not followed, and this is not an error."""
    NOT_FOLLOWED = "not-followed"
    """Beyond the maximum number of records that are followed."""

    @property
    def is_error(self) -> bool:
        """Whether receivers return ``permerror``."""
        return self in (
            NodeProblem.ABSENT,
            NodeProblem.SEVERAL,
            NodeProblem.SYNTAX,
            NodeProblem.LOOP,
        )


class Step(Struct, frozen=True):
    """One evaluated term of a record.

    ``networks`` are the matching networks. ``void_for`` has the IP versions of the clients for
    which its lookup is void (RFC 7208 4.6.4). ``depends_on_mail`` is true if macros or ``ptr``
    make the term match only for some mails.
    """

    term: str
    qualifier: Qualifier
    networks: tuple[Network, ...] = ()
    void_for: tuple[int, ...] = ()
    depends_on_mail: bool = False
    child: "SpfNode | None" = None

    @property
    def permitted(self) -> Iterator[Network]:
        """The networks that pass because of this term."""
        if self.qualifier is not Qualifier.PASS:
            return iter(())
        return iter(self.networks) if self.child is None else self.child.permitted


class SpfNode(Struct, frozen=True):
    """One record of the tree, with the term that leads to it and its evaluated terms.

    ``lookups`` is the number of terms of this record for which a receiver queries DNS.
    ``oversized_mx`` has the ``mx`` terms with more than ten hosts (RFC 7208 4.6.4).
    ``has_near_miss`` is true if there is no record, but a text that was intended as one.
    """

    domain: str
    term: str
    record: SpfRecord | None
    problem: NodeProblem | None
    lookups: int = 0
    steps: tuple[Step, ...] = ()
    oversized_mx: tuple[str, ...] = ()
    unanswered_names: tuple[str, ...] = ()
    has_near_miss: bool = False

    @property
    def children(self) -> tuple["SpfNode", ...]:
        """The records that its terms lead to."""
        return tuple(step.child for step in self.steps if step.child is not None)

    @property
    def voids(self) -> tuple[str, ...]:
        """The terms that are void for every client."""
        return tuple(step.term for step in self.steps if len(step.void_for) == len(IP_VERSIONS))

    @property
    def permitted(self) -> Iterator[Network]:
        """The networks that pass."""
        for step in self.steps:
            yield from step.permitted

    @property
    def permits_no_host(self) -> bool:
        """Whether it is certain that no host passes."""
        return next(self.permitted, None) is None and not any(
            node.unanswered_names
            or node.has_near_miss
            # With any other problem it is unknown which hosts the record should permit.
            or node.problem not in (None, NodeProblem.ABSENT, NodeProblem.LOOP)
            or any(step.depends_on_mail for step in node.steps)
            for node in self.walk()
        )

    def walk(self) -> Iterator["SpfNode"]:
        """Yield this node and all nodes below it, in the order of evaluation."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def redirected(self) -> "SpfNode | None":
        """The record that this one redirects to, or `None`."""
        last = self.children[-1] if self.children else None
        return last if last is not None and last.term.startswith("redirect=") else None

    @property
    def all_qualifier(self) -> Qualifier | None:
        """The result for all other hosts, through redirects (RFC 7208 6.1)."""
        node: SpfNode | None = self
        while node is not None and node.record is not None:
            if node.record.all_qualifier is not None:
                return node.record.all_qualifier
            node = node.redirected
        return None


def list_void_terms(node: SpfNode, version: int, *, may: bool = False) -> list[str]:
    """List the terms that are void for a client that no term matches, in order of evaluation.

    :param version: IP version of the client, 4 or 6.
    :param may: also list the terms that are void for some mails only.
    """
    found: list[str] = []
    for step in node.steps:
        if version in step.void_for or (may and step.depends_on_mail):
            found.append(step.term)
        if step.child is not None:
            found += list_void_terms(step.child, version, may=may)
    return found


class SpfVerdict(Struct, frozen=True):
    """The SPF result of ``domain``.

    ``records`` are the texts of all its SPF records; more than one is an error. ``tree`` begins
    with the first of them. ``lookup_count`` is the number of lookups of a complete evaluation. It
    is a lower bound if something is undetermined or ``is_truncated`` is true. ``named`` has the
    senders that any reading of the texts names, including those that receivers ignore.
    ``repaired`` is the record with the intended meaning, or empty if that is not certain.
    ``reach`` is the number of addresses that may send. ``wide_terms`` are the terms that permit
    too many.
    """

    domain: str
    presence: Presence
    records: tuple[str, ...] = ()
    tree: SpfNode | None = None
    lookup_count: int = 0
    is_truncated: bool = False
    findings: tuple[Finding, ...] = ()
    broken_texts: tuple[str, ...] = ()
    """Texts that were intended as the record but that receivers ignore. Empty if there is a
    record."""
    named: tuple[NamedSender, ...] = ()
    repaired: str = ""
    reach: Reach = NO_ADDRESSES
    wide_terms: tuple[str, ...] = ()

    def void_terms_for(self, version: int, *, may: bool = False) -> list[str]:
        """List the terms that are void for a client; see `list_void_terms`."""
        return [] if self.tree is None else list_void_terms(self.tree, version, may=may)

    @property
    def void_count(self) -> int:
        """Number of void lookups for every client that no term matches."""
        return min(len(self.void_terms_for(version)) for version in IP_VERSIONS)

    @property
    def record(self) -> str | None:
        """The text of the record, or of the first of several."""
        return self.records[0] if self.records else None

    @property
    def all_qualifier(self) -> Qualifier | None:
        """The result for all hosts that the record does not name."""
        return self.tree.all_qualifier if self.tree is not None else None

    @property
    def is_broken(self) -> bool:
        """Whether receivers return ``permerror``, so that SPF has no effect."""
        nodes = self.tree.walk() if self.tree is not None else ()
        return (
            len(self.records) > 1
            or self.lookup_count > MAX_LOOKUPS
            or self.void_count > MAX_VOIDS
            or any(n.oversized_mx or (n.problem is not None and n.problem.is_error) for n in nodes)
        )

    @property
    def is_complete(self) -> bool:
        """Whether everything in the tree could be determined."""
        nodes = self.tree.walk() if self.tree is not None else ()
        return self.presence is not Presence.UNDETERMINED and not any(
            node.unanswered_names or node.problem is NodeProblem.UNDETERMINED for node in nodes
        )

    @property
    def sends_no_mail(self) -> bool:
        """Whether the record consists of ``-all`` only, so that no host may send."""
        return (
            len(self.records) == 1
            and self.tree is not None
            and self.tree.record is not None
            and not self.is_broken
            and [(m.name, m.qualifier) for m in self.tree.record.mechanisms]
            == [(MechanismName.ALL, Qualifier.FAIL)]
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The domains of the tree, by which the mail providers of the domain are recognized."""
        return tuple(node.domain for node in self.tree.walk()) if self.tree is not None else ()


MAX_FOLLOWED = 40
"""Maximum number of terms that are looked up. Ten are allowed. The largest real records need about
30; beyond that only the excess itself matters."""

REDIRECT = "redirect="


class TermLookup(Struct, frozen=True):
    """The DNS result for a term; ``exists`` is for terms that only check for a record."""

    addresses: tuple[IpAddress, ...] = ()
    void_for: tuple[int, ...] = ()
    silent: tuple[str, ...] = ()
    exists: bool = False
    has_too_many_hosts: bool = False


class TreeReader:
    """Reads the records below a domain; ``is_truncated`` is true once terms were left out."""

    def __init__(self, answers: Answers) -> None:
        self.is_truncated = False
        self._answers = answers
        self._left = MAX_FOLLOWED

    def read(self, domain: str, term: str = "", path: tuple[str, ...] = ()) -> SpfNode:
        """Read the record of ``domain``, to which ``term`` leads, and all records below it."""
        if domain in path:
            return SpfNode(domain, term, None, NodeProblem.LOOP)
        question = to_query_name(domain)
        if question is None:
            return SpfNode(domain, term, None, NodeProblem.ABSENT)
        answer = look_up(self._answers, question, "TXT")
        if not answer.status.is_determined:
            return SpfNode(domain, term, None, NodeProblem.UNDETERMINED, unanswered_names=(domain,))
        texts = [text for text in txt_values(answer) if is_spf_record(text)]
        if not texts:
            near_miss = any(map(looks_like_spf, txt_values(answer)))
            return SpfNode(domain, term, None, NodeProblem.ABSENT, has_near_miss=near_miss)
        return self.read_record(domain, min(texts), term, path, is_one_of=len(texts))

    def read_record(
        self,
        domain: str,
        text: str,
        term: str = "",
        path: tuple[str, ...] = (),
        *,
        is_one_of: int = 1,
    ) -> SpfNode:
        """Read one of ``is_one_of`` records at ``domain``, and all records below it."""
        record = parse_spf_record(text)
        problem = None
        if is_one_of > 1:
            problem = NodeProblem.SEVERAL
        elif record.is_broken:
            problem = NodeProblem.SYNTAX
        read = list(self._read_terms(domain, record, (*path, domain)))
        return SpfNode(
            domain=domain,
            term=term,
            record=record,
            problem=problem,
            lookups=sum(m.name.asks_dns for m in record.mechanisms) + bool(record.redirect),
            steps=tuple(step for step, _ in read),
            oversized_mx=tuple(step.term for step, found in read if found.has_too_many_hosts),
            unanswered_names=tuple(name for _, found in read for name in found.silent),
        )

    def count_lookup(self) -> bool:
        """Count a lookup; return whether it is still within the maximum."""
        self._left -= 1
        if self._left < 0:
            self.is_truncated = True
        return self._left >= 0

    def find_addresses(self, names: Collection[str]) -> TermLookup:
        """Look up the IPv4 and IPv6 addresses of hosts."""
        answers = [
            (name, version, look_up(self._answers, question, rdtype))
            for name in names
            if (question := to_query_name(name)) is not None
            for version, rdtype in ((4, "A"), (6, "AAAA"))
        ]
        found = [address for _, _, answer in answers for address in ip_addresses(answer)]
        is_known = dict.fromkeys(IP_VERSIONS, True)
        for _, version, answer in answers:
            is_known[version] &= answer.status.is_determined
        there = {address.version for address in found}
        silent = [name for name, _, reply in answers if not (found or reply.status.is_determined)]
        void_for = tuple(v for v in IP_VERSIONS if is_known[v] and v not in there)
        return TermLookup(tuple(found), void_for if answers else (), tuple(dict.fromkeys(silent)))

    def find_mail_hosts(self, target: str) -> TermLookup:
        """Look up mail hosts and their addresses; a term is void at most once."""
        question = to_query_name(target)
        if question is None:
            return TermLookup()
        answer = look_up(self._answers, question, "MX")
        if not answer.status.is_determined:
            return TermLookup(silent=(target,))
        hosts = [exchange for _, exchange in mx_records(answer)]
        if len(hosts) > MAX_MX_HOSTS:
            return TermLookup(has_too_many_hosts=True)
        names = [host for host in hosts if host]
        return self.find_addresses(names) if names else TermLookup(void_for=IP_VERSIONS)

    def check_existence(self, target: str, rdtype: str) -> TermLookup:
        """Look up whether there is any record of a type."""
        question = to_query_name(target)
        if question is None:
            return TermLookup()
        presence = presence_of(look_up(self._answers, question, rdtype))
        return TermLookup(
            exists=presence is Presence.FOUND,
            void_for=IP_VERSIONS if presence is Presence.ABSENT else (),
            silent=(target,) if presence is Presence.UNDETERMINED else (),
        )

    def _read_terms(
        self, domain: str, record: SpfRecord, path: tuple[str, ...]
    ) -> Iterator[tuple[Step, TermLookup]]:
        """Evaluate the terms of a record in order; ``path`` ends with its domain."""
        for mechanism in record.mechanisms:
            yield self._evaluate_mechanism(mechanism, domain, path)
        if record.redirect:
            term = REDIRECT + record.redirect
            yield self._descend(record.redirect, term, Qualifier.PASS, path)

    def _evaluate_mechanism(
        self, mechanism: Mechanism, domain: str, path: tuple[str, ...]
    ) -> tuple[Step, TermLookup]:
        text, qualifier = mechanism.text, mechanism.qualifier
        if mechanism.name is MechanismName.ALL:
            return Step(text, qualifier, ANYWHERE), TermLookup()
        if mechanism.network is not None:
            return Step(text, qualifier, (mechanism.network,)), TermLookup()
        if mechanism.name is MechanismName.INCLUDE:
            return self._descend(mechanism.target, text, qualifier, path)
        target = _expand(mechanism.target or domain, path)
        if mechanism.name is MechanismName.PTR or target is None:
            return Step(text, qualifier, depends_on_mail=True), TermLookup()
        if not self.count_lookup():
            return Step(text, qualifier), TermLookup()
        if mechanism.name is MechanismName.EXISTS:
            found = self.check_existence(target, "A")
        elif mechanism.name is MechanismName.MX:
            found = self.find_mail_hosts(target)
        else:
            found = self.find_addresses((target,))
        networks = ANYWHERE if found.exists else _networks(found.addresses, mechanism.lengths)
        return Step(text, qualifier, networks, found.void_for), found

    def _descend(
        self, written: str, term: str, qualifier: Qualifier, path: tuple[str, ...]
    ) -> tuple[Step, TermLookup]:
        target = _expand(written, path)
        if target is None:
            child = SpfNode(written, term, None, NodeProblem.MACRO)
            return Step(term, qualifier, depends_on_mail=True, child=child), TermLookup()
        if not self.count_lookup():
            child = SpfNode(target, term, None, NodeProblem.NOT_FOLLOWED)
            return Step(term, qualifier, child=child), TermLookup()
        child = self.read(target, term, path)
        found = (
            self.check_existence(target, "TXT")
            if child.problem is NodeProblem.ABSENT
            else TermLookup()
        )
        return Step(term, qualifier, void_for=found.void_for, child=child), found


def _expand(target: str, path: tuple[str, ...]) -> str | None:
    """Return the expanded name of a domain-spec, or `None` if it depends on the mail."""
    if "%" not in target:
        return target
    if depends_on_mail(target):
        return None
    names = {"d": path[-1], "o": path[0]}
    return truncate_name(expand_macros(target, names.__getitem__)).lower()


def _networks(addresses: Iterable[IpAddress], lengths: tuple[int, int]) -> tuple[Network, ...]:
    return tuple(
        IPv4Network((int(address), lengths[0]), strict=False)
        if address.version == 4
        else IPv6Network((int(address), lengths[1]), strict=False)
        for address in addresses
    )
