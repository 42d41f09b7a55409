"""What the daemon stands on and how it is: each change is told once, and the state can be asked."""

from collections.abc import Callable, Mapping

Tell = Callable[[str, str], None]
"""Told of a change: what has changed, and what is wrong with it; empty where it is well again."""


class Conditions:
    """Knows what is well and what is not: the disk, the store, a resolver, a list, ...

    What was never heard of is well, and nobody is told that it is.
    """

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._causes: dict[str, str] = {}
        self._listeners: list[Tell] = []

    def listen(self, tell: Tell) -> None:
        """Call ``tell`` for every change from now on."""
        self._listeners.append(tell)

    def set(self, subject: str, problem: str) -> None:
        """Say how something is; an empty ``problem`` says that it is well.

        Every client may read the problem. Tell hosts and files by `explain` before it.

        Cheap where nothing changes. That one is wrong in another way now is no change: it
        can be asked, and nobody is told.
        """
        was_well = not self._problems.get(subject)
        self._problems[subject] = problem
        if was_well != (not problem):
            for tell in self._listeners:
                tell(subject, self.for_operator(subject))

    def explain(self, subject: str, cause: str) -> None:
        """Tell the listeners, and no client, why something is not well."""
        self._causes[subject] = cause

    def for_operator(self, subject: str) -> str:
        """Return what is wrong with a subject, and why; empty where it is well."""
        problem, cause = self._problems.get(subject, ""), self._causes.get(subject, "")
        return f"{problem}: {cause}" if problem and cause else problem

    @property
    def problems(self) -> Mapping[str, str]:
        """Give what is wrong by what was heard of; an empty text where nothing is."""
        return self._problems
