"""Records that are published at a name where receivers do not look for them.

Some zone editors append the name of the zone to an absolute name, and some owners leave out an
underscore.
"""

from collections.abc import Callable, Iterable

from mailcheck.checks.dns_answers import Answers, look_up, txt_values


def find_elsewhere(
    names: Iterable[str], is_record: Callable[[str], bool], answers: Answers
) -> tuple[str, str] | None:
    """Return the first of these names that has such a TXT record, and its text.

    Return `None` without one.
    """
    answered = [(name, look_up(answers, name, "TXT")) for name in names]
    found = (
        (name, text) for name, answer in answered for text in txt_values(answer) if is_record(text)
    )
    return next(found, None)
