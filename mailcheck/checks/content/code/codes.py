"""One-time codes of a mail: every possible number with a score and its reasons.

A code is returned as a person types it. Groups of digits lose their separator (``123 456`` and
``123-456`` become ``123456``), groups of letters and digits keep it (``ABCD-1234``). A prefix that
only names the sender is dropped: ``G-123456`` becomes ``123456``, since the form shows "G-" before
the field. Codes are strings, so leading zeros stay.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct

from mailcheck.checks.content.code.code_evidence import (
    find_evidence,
    find_letter_evidence,
    find_naming,
    is_prominent,
    outweighs_discount,
)
from mailcheck.checks.content.code.code_objections import find_objections
from mailcheck.checks.content.code.code_text import (
    CodeText,
    prepare_page,
    prepare_text,
)
from mailcheck.checks.content.code.shapes import (
    Shape,
    find_domain_bound,
    find_shapes,
    mask_addresses,
)
from mailcheck.checks.content.limits import (
    MAX_CODE_CANDIDATES,
    MAX_KEPT_CANDIDATES,
)
from mailcheck.checks.content.visible_text import VisibleText
from mailcheck.core.content import Candidate, CandidateKind

ACCEPTED_FROM = 4  # being called a code is enough, being near a keyword is not

POINTS = {
    "domain-bound": (10, "is bound to a domain on the last line"),
    "explicit": (5, "is called a code"),
    "named": (1, "is named by its sentence"),
    "specific": (1, "is named as a code for signing in or verifying"),
    "asked": (4, "is to be typed to sign in or to verify"),
    "linked": (2, "follows a word for a code or a request to type it"),
    "leads": (2, "begins a sentence that continues with a word for a code"),
    "heading": (3, "is in a column of codes"),
    "alone": (3, "is alone on its line"),
    "prominent": (2, "stands out in large or bold letters"),
    "spread": (2, "has gaps between its characters"),
    "groups": (1, "is written in groups"),
    "keyword": (2, "is near a word for a code"),
    "purpose": (1, "is near a word for signing in or verifying"),
    "subject code": (1, "the subject has a word for a code"),
    "subject purpose": (1, "the subject has a word for signing in or verifying"),
    "inline": (-1, "is a number in a sentence"),
    "length six": (1, "has the usual length"),
    "long": (-12, "is part of a longer number, name or address"),
    "masked": (-12, "is the end of a masked number"),
    "amount": (-8, "is an amount"),
    "date": (-6, "is part of a date"),
    "label": (-10, "is labelled as something else"),
    "name": (-10, "is a name with digits"),
    "other code": (-8, "is called another kind of code"),
    "random": (2, "has letters that spell no word"),
    "numbered": (-3, "has a number sign"),
    "called else": (-5, "is called something else in another place"),
    "color": (-12, "is a colour"),
    "counting": (-5, "counts up or down"),
    "postcode": (-5, "looks like a postcode"),
    "promotion": (-9, "is near a discount"),
    "coupon": (-5, "looks like a coupon, without a word for signing in or verifying"),
    "elsewhere": (-9, "belongs to a meeting or a payment"),
    "footer": (-5, "is in an address or fine print"),
    "row": (-3, "is in a row of numbers"),
    "upper": (-1, "has letters"),
    "letters": (-4, "has no digit"),
    "unexplained": (-1, "has no word for a code near it, only for signing in or verifying"),
    "letters unexplained": (-2, "has letters, but no word for a code near it"),
    "inline letters": (-9, "is a word of its sentence"),
    "known word": (-9, "is a word that mails write in capitals"),
    "outdone": (-9, "is a word or a name beside another code of the mail"),
    "long groups": (-3, "is long for a code"),
    "rare length": (-9, "has a length that codes rarely have"),
    "mixed": (-2, "has lower case letters"),
    "subject promotion": (-9, "the subject has a word for a discount"),
    "subject label": (-3, "the subject has a word for another number"),
    "no keyword": (-4, "has no word for a code near it or in the subject"),
    "sole": (6, "is the only separate number in a short mail without known words"),
}


_CALLED_ELSE = frozenset(("promotion", "label", "other code", "called else"))
_SETS_APART = frozenset(("explicit", "asked", "linked", "leads", "heading", "alone", "prominent"))
_CODE_WORDS = frozenset(("keyword", "subject code", "asked"))
_KEYWORDS = frozenset(("keyword", "purpose", "subject code", "subject purpose"))
_SHORT_MAIL = 800  # characters
_UNDISPUTED = frozenset(
    ("alone", "spread", "groups", "length six", "no keyword", "unexplained", "purpose")
)
_KINDS_THAT_COUNT = frozenset(
    ("spread", "groups", "long groups", "upper", "letters", "mixed", "row")
)


class _ScoredNumber(Struct, frozen=True):
    value: str
    findings: tuple[str, ...]
    score: int
    is_drawn: bool = False


def find_codes(subject: str, text: str, page: VisibleText) -> list[Candidate]:
    """Score every number of subject, text and visible HTML; best first, then in order.

    The first 64 KiB of each text are read. A value that occurs several times has the score of its
    best place.
    """
    texts = (prepare_text(subject), prepare_text(text), prepare_page(page))
    kinds = ("promotion", "code", "purpose", "label")
    hints = tuple(f"subject {kind}" for kind in kinds if texts[0].words.get(kind))
    best: dict[str, _ScoredNumber] = {}
    for scored in chain.from_iterable(_score_text(body, hints) for body in texts):
        known = best.get(scored.value)
        best[scored.value] = scored if known is None else _merge(known, scored)
    accepted = [scored for scored in best.values() if scored.score >= ACCEPTED_FROM]
    for scored in accepted:
        if any(_outdoes(other, scored) for other in accepted):
            best[scored.value] = _score(scored.value, [*scored.findings, "outdone"])
    sole = _find_sole(texts, [*best.values()])
    if sole is not None:
        best[sole.value] = _score(sole.value, [*sole.findings, "sole"])
    ranked = sorted(best.values(), key=lambda scored: -scored.score)
    return [
        Candidate(
            CandidateKind.CODE,
            scored.value,
            scored.score,
            scored.score >= ACCEPTED_FROM,
            tuple(f"{POINTS[f][0]:+d} {POINTS[f][1]}" for f in scored.findings),
        )
        for scored in ranked[:MAX_KEPT_CANDIDATES]
    ]


def _outdoes(code: _ScoredNumber, other: _ScoredNumber) -> bool:
    """Return whether a code makes it likely that another candidate is a word or a name.

    Letters without a digit are a word if a code has digits. A name such as ``Web3Auth`` stands in
    the sentence of a number that is called a code.
    """
    if "letters" in other.findings:
        return any(map(str.isdigit, code.value))
    is_apart = not {"named", "alone"}.isdisjoint(other.findings)
    is_number = code.value.isdigit() and "explicit" in code.findings
    return "mixed" in other.findings and is_number and not is_apart


def _find_sole(
    texts: Sequence[CodeText], candidates: Sequence[_ScoredNumber]
) -> _ScoredNumber | None:
    """Return the only separate number of a short mail without known words, or `None`.

    If the language is known, missing words for codes count against it. Then the number must also
    be prominent and have the usual length.
    """
    if any(len(text.plain) > _SHORT_MAIL or text.words.get("code") for text in texts):
        return None
    apart = [scored for scored in candidates if "alone" in scored.findings]
    if (
        len(apart) != 1
        or not apart[0].value.isdigit()
        or not _UNDISPUTED.issuperset(apart[0].findings)
    ):
        return None
    is_silent = any(text.is_of_known_language for text in texts)
    looks_like_one = apart[0].is_drawn and "length six" in apart[0].findings
    return apart[0] if looks_like_one or not is_silent else None


def _merge(one: _ScoredNumber, other: _ScoredNumber) -> _ScoredNumber:
    """Keep the better place of a value; another name in the other place counts against it once."""
    better, worse = (one, other) if one.score >= other.score else (other, one)
    is_called_else = _CALLED_ELSE & {*worse.findings} and not _CALLED_ELSE & {*better.findings}
    return _score(better.value, [*better.findings, "called else"]) if is_called_else else better


def _score_text(text: CodeText, hints: tuple[str, ...]) -> Iterator[_ScoredNumber]:
    bound = find_domain_bound(text.plain)
    if bound is not None:
        yield _score(bound.value, ["domain-bound"])
    shapes = ((form, find_naming(text, form)) for form in find_shapes(mask_addresses(text.plain)))
    candidates = (pair for pair in shapes if pair[0].kind != "named" or "named" in pair[1])
    for shape, naming in islice(candidates, MAX_CODE_CANDIDATES):
        yield _score_shape(text, shape, naming, hints)


def _score_shape(
    text: CodeText, shape: Shape, naming: Sequence[str], hints: tuple[str, ...]
) -> _ScoredNumber:
    findings = list(find_evidence(text, shape, naming))
    if hints[:1] == ("subject promotion",) and outweighs_discount(text, shape, {*findings, *hints}):
        hints = tuple(hint for hint in hints if POINTS[hint][0] > 0)
    hints = hints[:1]
    # A number in a sentence that is only near a keyword does not profit from the subject: it
    # must be separate in some way.
    if "keyword" in findings and not _SETS_APART & {*findings}:
        hints = tuple(hint for hint in hints if POINTS[hint][0] < 0)
    findings += hints
    if not _KEYWORDS & {*findings}:
        findings.append("no keyword")
    if not _SETS_APART - {"prominent"} & {*findings}:
        findings.append("inline")
    if not _CODE_WORDS & {*findings}:
        findings.append("unexplained" if shape.value.isdigit() else "letters unexplained")
    if len(shape.value) == 6:
        findings.append("length six")
    is_asked = "asked" in findings and any(map(str.isdigit, shape.value))
    if "explicit" not in findings and not is_asked and shape.is_of_rare_length:
        findings.append("rare length")
    kind = shape.kind.removeprefix("short ")
    if kind == "letters":
        findings += find_letter_evidence(shape.value, frozenset(findings))
    if kind in _KINDS_THAT_COUNT:
        findings.append(kind)
    findings += find_objections(text, shape, evidence=frozenset(findings))
    return _score(shape.value, findings, is_drawn=is_prominent(text, shape))


def _score(value: str, findings: list[str], *, is_drawn: bool = False) -> _ScoredNumber:
    score = sum(POINTS[finding][0] for finding in findings)
    return _ScoredNumber(value, tuple(findings), score, is_drawn)
