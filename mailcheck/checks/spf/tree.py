"""Following an SPF record through its includes and redirects (RFC 7208 4.6.4).

Every term is counted and looked up, as a receiver does for a mail that
matches none of them: the most expensive case.
"""

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import mx_records, txt_values
from mailcheck.checks.lookups import Presence, look_up, look_up_addresses, presence_of
from mailcheck.checks.spf.macros import has_macros
from mailcheck.checks.spf.parse import is_spf_record, parse_spf_record
from mailcheck.checks.spf.terms import Mechanism, MechanismName, SpfRecord
from mailcheck.checks.spf.verdicts import MAX_MX_HOSTS, NodeProblem, SpfNode

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
        record = parse_spf_record(texts[0])
        problem = None
        if len(texts) > 1:
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
