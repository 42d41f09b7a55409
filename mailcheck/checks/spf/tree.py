"""The tree of records below a domain, followed as a receiver follows it (RFC 7208 4.6.4).

Every term is counted and looked up, as a receiver does for a mail that
matches none of them: the most expensive case.
"""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dns_answers import (
    Answers,
    Presence,
    look_up,
    look_up_addresses,
    mx_records,
    presence_of,
    txt_values,
)
from mailcheck.checks.findings import Finding
from mailcheck.checks.spf.record import (
    Mechanism,
    MechanismName,
    Qualifier,
    SpfRecord,
    has_macros,
    is_spf_record,
    parse_spf_record,
)


class NodeProblem(Enum):
    """Why a record in the tree makes a receiver give up, or isn't known."""

    ABSENT = "absent"
    """An include or redirect leads to a name without an SPF record (RFC 7208 5.2, 6.1)."""
    SEVERAL = "several"
    """More than one record (RFC 7208 4.5)."""
    SYNTAX = "syntax"
    LOOP = "loop"
    """The record includes itself, directly or not."""
    UNDETERMINED = "undetermined"
    MACRO = "macro"
    """Which record it is depends on the mail; not followed, and no fault."""
    NOT_FOLLOWED = "not-followed"
    """Beyond the number of records that are looked at."""

    @property
    def is_error(self) -> bool:
        """Tell whether receivers answer ``permerror``."""
        return self in (
            NodeProblem.ABSENT,
            NodeProblem.SEVERAL,
            NodeProblem.SYNTAX,
            NodeProblem.LOOP,
        )


class SpfNode(Struct, frozen=True):
    """One record of the tree: what led to it, the record, and what it leads to.

    ``lookups`` counts the terms of this record that make a receiver ask DNS;
    ``voids`` are those of them that find nothing; ``crowded`` are mx terms
    with more than ten hosts (RFC 7208 4.6.4).
    """

    domain: str
    term: str
    record: SpfRecord | None
    problem: NodeProblem | None
    lookups: int = 0
    voids: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()
    silent_names: tuple[str, ...] = ()
    children: tuple["SpfNode", ...] = ()

    def walk(self) -> Iterator["SpfNode"]:
        """Give this node and all below it, in the order a receiver meets them."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def redirected(self) -> "SpfNode | None":
        """Give the record that takes over from this one, if it has a redirect."""
        last = self.children[-1] if self.children else None
        return last if last is not None and last.term.startswith("redirect=") else None

    @property
    def all_qualifier(self) -> Qualifier | None:
        """Give what becomes of everybody else, through redirects (RFC 7208 6.1)."""
        node: SpfNode | None = self
        while node is not None and node.record is not None:
            if node.record.all_qualifier is not None:
                return node.record.all_qualifier
            node = node.redirected
        return None


def permits_everyone(node: SpfNode) -> str:
    """Give the term by which any host at all passes, or nothing."""
    if node.record is None:
        return ""
    included = {child.term: child for child in node.children}
    for mechanism in node.record.mechanisms:
        if mechanism.qualifier is Qualifier.PASS and _matches_everyone(mechanism, included):
            return mechanism.text
    return permits_everyone(node.redirected) if node.redirected is not None else ""


def _matches_everyone(mechanism: Mechanism, included: dict[str, SpfNode]) -> bool:
    if mechanism.name is MechanismName.ALL:
        return True
    if mechanism.network is not None:
        return mechanism.network.version == 4 and mechanism.network.prefixlen == 0
    child = included.get(mechanism.text)
    return child is not None and bool(permits_everyone(child))


class SpfVerdict(Struct, frozen=True):
    """Who may send for ``domain``.

    ``records`` are the texts of all its SPF records (more than one is an
    error); ``tree`` begins with the first of them. ``lookup_count`` and
    ``void_count`` are those of a receiver that evaluates everything; they are
    lower bounds while something is undetermined or ``is_truncated``.
    """

    domain: str
    presence: Presence
    records: tuple[str, ...]
    tree: SpfNode | None
    lookup_count: int
    void_count: int
    is_truncated: bool
    findings: tuple[Finding, ...]
    broken_texts: tuple[str, ...] = ()
    """Texts that were meant as the record and that receivers ignore; only without a record."""
    open_term: str = ""
    """The term by which everybody passes, such as ``+all``; empty without one."""

    @property
    def record(self) -> str | None:
        """Give the text of the record, the first of several."""
        return self.records[0] if self.records else None

    @property
    def all_qualifier(self) -> Qualifier | None:
        """Give what becomes of everybody who is not named."""
        return self.tree.all_qualifier if self.tree is not None else None

    @property
    def is_broken(self) -> bool:
        """Tell whether receivers answer ``permerror``, so that SPF protects nothing."""
        nodes = self.tree.walk() if self.tree is not None else ()
        return (
            len(self.records) > 1
            or self.lookup_count > MAX_LOOKUPS
            or self.void_count > MAX_VOIDS
            or any(n.crowded or (n.problem is not None and n.problem.is_error) for n in nodes)
        )

    @property
    def is_complete(self) -> bool:
        """Tell whether everything in the tree could be determined."""
        nodes = self.tree.walk() if self.tree is not None else ()
        return self.presence is not Presence.UNDETERMINED and not any(
            node.silent_names or node.problem is NodeProblem.UNDETERMINED for node in nodes
        )

    @property
    def sends_no_mail(self) -> bool:
        """Tell whether the record says nothing but ``-all``: no host may send."""
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
        """Give the names the tree leads to: they tell which providers send for the domain."""
        return tuple(node.domain for node in self.tree.walk()) if self.tree is not None else ()


MAX_LOOKUPS = 10  # RFC 7208 4.6.4
MAX_VOIDS = 2  # RFC 7208 4.6.4
MAX_MX_HOSTS = 10  # RFC 7208 4.6.4


MAX_FOLLOWED = 40
"""Terms that are really looked up. Ten are allowed; the worst honest records need about 30, and
beyond that it only matters that there are too many."""

REDIRECT = "redirect="


class TreeWalk:
    """One walk down from a domain; ``is_truncated`` once terms were left out."""

    def __init__(self, answers: Answers) -> None:
        self.is_truncated = False
        self._answers = answers
        self._left = MAX_FOLLOWED

    def read(self, domain: str, term: str = "", path: tuple[str, ...] = ()) -> SpfNode:
        """Read the record of ``domain``, to which ``term`` led, and all below it."""
        if domain in path:
            return SpfNode(domain, term, None, NodeProblem.LOOP)
        answer = look_up(self._answers, domain, "TXT")
        if not answer.status.is_determined:
            return SpfNode(domain, term, None, NodeProblem.UNDETERMINED, silent_names=(domain,))
        texts = [text for text in txt_values(answer) if is_spf_record(text)]
        if not texts:
            return SpfNode(domain, term, None, NodeProblem.ABSENT)
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
        """Read a record that stands at ``domain``, with as many beside it, and all below it."""
        record = parse_spf_record(text)
        problem = None
        if is_one_of > 1:
            problem = NodeProblem.SEVERAL
        elif record.is_broken:
            problem = NodeProblem.SYNTAX
        return _NodeReading(self, domain, record, (*path, domain)).finish(term, problem)

    def may_follow(self) -> bool:
        """Count a term that is to be looked up; false when there were too many."""
        self._left -= 1
        if self._left < 0:
            self.is_truncated = True
        return self._left >= 0

    def find(self, name: MechanismName, target: str) -> tuple[Presence, bool]:
        """Look up what a, mx or exists points at: is there any, and more mx than allowed?"""
        if name is MechanismName.A:
            return look_up_addresses(self._answers, target).presence, False
        rdtype = {MechanismName.MX: "MX", MechanismName.EXISTS: "A"}.get(name, "TXT")
        answer = look_up(self._answers, target, rdtype)
        return presence_of(answer), len(mx_records(answer)) > MAX_MX_HOSTS


class _NodeReading:
    """One record while its terms are looked up, one after the other."""

    def __init__(
        self, walk: TreeWalk, domain: str, record: SpfRecord, path: tuple[str, ...]
    ) -> None:
        self._walk = walk
        self._domain = domain
        self._record = record
        self._path = path
        self._voids: list[str] = []
        self._crowded: list[str] = []
        self._silent: list[str] = []
        self._children: list[SpfNode] = []

    def finish(self, term: str, problem: NodeProblem | None) -> SpfNode:
        asking = [m for m in self._record.mechanisms if m.name.asks_dns]
        for mechanism in asking:
            self._look_at(mechanism)
        redirect = self._record.redirect
        if redirect:
            self._descend(redirect, REDIRECT + redirect)
        return SpfNode(
            domain=self._domain,
            term=term,
            record=self._record,
            problem=problem,
            lookups=len(asking) + bool(redirect),
            voids=tuple(self._voids),
            crowded=tuple(self._crowded),
            silent_names=tuple(self._silent),
            children=tuple(self._children),
        )

    def _look_at(self, mechanism: Mechanism) -> None:
        target = mechanism.target or self._domain
        if mechanism.name is MechanismName.INCLUDE:
            self._descend(target, mechanism.text)
        elif mechanism.name is MechanismName.PTR or mechanism.has_macros:
            return  # depends on the mail
        elif self._walk.may_follow():
            self._note(mechanism.text, mechanism.name, target)

    def _descend(self, target: str, term: str) -> None:
        if has_macros(target):
            self._children.append(SpfNode(target, term, None, NodeProblem.MACRO))
        elif not self._walk.may_follow():
            self._children.append(SpfNode(target, term, None, NodeProblem.NOT_FOLLOWED))
        else:
            child = self._walk.read(target, term, self._path)
            self._children.append(child)
            if child.problem is NodeProblem.ABSENT:
                self._note(term, MechanismName.INCLUDE, target)

    def _note(self, term: str, name: MechanismName, target: str) -> None:
        presence, is_crowded = self._walk.find(name, target)
        if presence is Presence.ABSENT:
            self._voids.append(term)
        elif presence is Presence.UNDETERMINED:
            self._silent.append(target)
        if is_crowded:
            self._crowded.append(term)
