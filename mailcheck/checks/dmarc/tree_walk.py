"""The DNS tree walk: which record holds for a domain, and which is its organisation's domain.

RFC 9989 4.10. It takes the place of the public suffix list; at most eight
questions, and all of them are known at the start.
"""

from msgspec import Struct

from mailcheck.checks.dmarc.record import PolicyRecord, is_policy_record, parse_policy_record
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values

MAX_LABELS = 7  # of the names asked after the first, RFC 9989 4.10 step 5

PREFIX = "_dmarc."


class WalkStep(Struct, frozen=True):
    """One name of the walk; ``record`` is there when exactly one was published.

    ``texts`` are all DMARC records found there: several are as good as none.
    """

    domain: str
    presence: Presence
    record: PolicyRecord | None = None
    texts: tuple[str, ...] = ()


class TreeWalk(Struct, frozen=True):
    """The steps from the start up to where the walk ended."""

    start: str
    steps: tuple[WalkStep, ...]

    @property
    def silent_names(self) -> tuple[str, ...]:
        """Give the names about which no answer came."""
        return tuple(
            PREFIX + step.domain for step in self.steps if step.presence is Presence.UNDETERMINED
        )

    @property
    def organizational_domain(self) -> str | None:
        """Give the organizational domain (RFC 9989 4.10.2); nothing when it is undetermined."""
        if self.silent_names:
            return None
        found = [step for step in self.steps if step.record is not None]
        for step in found:
            psd = step.record.psd if step.record is not None else "u"
            if psd == "n":
                return step.domain
            if psd == "y":
                return _one_label_below(step.domain, self.start)
        return found[-1].domain if found else self.start

    def step_at(self, domain: str) -> WalkStep | None:
        """Give the step of this name."""
        return next((step for step in self.steps if step.domain == domain), None)


def names_to_walk(domain: str) -> tuple[str, ...]:
    """Give the names that the walk asks about, from the domain itself to the top."""
    labels = domain.split(".")
    rest = labels[-MAX_LABELS:] if len(labels) > MAX_LABELS else labels[1:]
    return (domain, *(".".join(rest[number:]) for number in range(len(rest))))


def walk_tree(domain: str, answers: Answers) -> TreeWalk:
    """Walk from ``domain`` to the top, asking for everything at once."""
    steps = []
    has_ended = False
    for name in names_to_walk(domain):
        step = _take_step(name, answers)
        if has_ended:
            continue
        steps.append(step)
        has_ended = step.record is not None and step.record.psd in ("y", "n")
    return TreeWalk(domain, tuple(steps))


def _take_step(domain: str, answers: Answers) -> WalkStep:
    answer = look_up(answers, PREFIX + domain, "TXT")
    if not answer.status.is_determined:
        return WalkStep(domain, Presence.UNDETERMINED)
    texts = tuple(text for text in txt_values(answer) if is_policy_record(text))
    if len(texts) != 1:
        return WalkStep(domain, Presence.ABSENT, texts=texts)
    return WalkStep(domain, Presence.FOUND, parse_policy_record(texts[0]), texts)


def _one_label_below(parent: str, start: str) -> str:
    """Give the name on the way down to the start; the start itself when that is the parent."""
    count = parent.count(".") + 2
    return ".".join(start.split(".")[-count:])
