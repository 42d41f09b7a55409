"""One-time codes of a mail: every number that might be one, scored with its reasons.

A code is returned as a person types it: groups of digits without their
separator (``123 456`` and ``123-456`` are ``123456``), groups of letters and
digits with it (``ABCD-1234``), and without a prefix that only says who sent it
(``G-123456`` is ``123456``: the form shows "G-" before the field). Leading
zeros stay, codes are strings.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mailcheck.checks.content.code_context import (
    CodeText,
    find_evidence,
    find_objections,
    prepare_text,
)
from mailcheck.checks.content.code_shapes import (
    Shape,
    find_domain_bound,
    find_shapes,
    mask_addresses,
)
from mailcheck.checks.content.folding import make_plain
from mailcheck.checks.content.limits import (
    MAX_CODE_CANDIDATES,
    MAX_CODE_TEXT,
    MAX_KEPT_CANDIDATES,
)
from mailcheck.checks.content.visible_text import VisibleText
from mailcheck.core.content import Candidate, CandidateKind

ACCEPTED_FROM = 3

POINTS = {
    "domain-bound": (9, "is bound to a domain on the last line"),
    "explicit": (4, "is called a code"),
    "alone": (3, "stands alone on its line"),
    "prominent": (3, "stands out in large or bold letters"),
    "keyword": (2, "is near a word for a code"),
    "subject keyword": (2, "the subject speaks of a code"),
    "purpose": (1, "is near a word for signing in or verifying"),
    "subject purpose": (1, "the subject speaks of signing in or verifying"),
    "length six": (1, "has the usual length"),
    "long": (-9, "is part of a longer number, name or address"),
    "masked": (-9, "is the end of a masked number"),
    "amount": (-6, "is an amount"),
    "date": (-6, "is part of a date"),
    "year": (-5, "looks like a year"),
    "label": (-7, "is labelled as something else"),
    "numbered": (-3, "has a number sign"),
    "postcode": (-5, "looks like a postcode"),
    "promotion": (-7, "is in a line about a discount"),
    "footer": (-4, "is in an address or fine print"),
    "upper": (-1, "has letters"),
    "letter groups": (-1, "has letters"),
    "letters": (-3, "has no digit"),
    "mixed": (-3, "has lower case letters"),
    "no keyword": (-4, "nothing in the mail speaks of a code"),
}


@dataclass(frozen=True, slots=True)
class _Judged:
    value: str
    findings: tuple[str, ...]
    score: int


def find_codes(subject: str, text: str, page: VisibleText) -> list[Candidate]:
    """Judge every number of subject, text and visible HTML; best first, then in order.

    Each text counts up to 64 KiB. A value that occurs several times has the
    score of its best place.
    """
    subject_text = prepare_text(make_plain(subject))
    hints = tuple(f"subject {kind}" for kind, word in _HINTS if subject_text.words.get(word))[:1]
    best: dict[str, _Judged] = {}
    for judged in (
        *_judge_text(subject_text, ()),
        *_judge_text(prepare_text(make_plain(text[:MAX_CODE_TEXT])), hints),
        *_judge_text(_prepare_page(page), hints),
    ):
        known = best.get(judged.value)
        if known is None or judged.score > known.score:
            best[judged.value] = judged
    ranked = sorted(best.values(), key=lambda judged: -judged.score)
    return [_as_candidate(judged) for judged in ranked[:MAX_KEPT_CANDIDATES]]


_HINTS = (("keyword", "code"), ("purpose", "purpose"))


def _prepare_page(page: VisibleText) -> CodeText:
    plain = make_plain(page.text[:MAX_CODE_TEXT])
    # Dropping invisible characters moves positions; then nothing stands out.
    same = len(plain) == len(page.text[:MAX_CODE_TEXT])
    return prepare_text(plain, page.prominent if same else ())


def _judge_text(text: CodeText, hints: tuple[str, ...]) -> Iterable[_Judged]:
    bound = find_domain_bound(text.plain)
    if bound is not None:
        yield _score(bound.value, ["domain-bound"])
    for count, shape in enumerate(find_shapes(mask_addresses(text.plain))):
        if count == MAX_CODE_CANDIDATES:
            return
        yield _judge(text, shape, hints)


def _judge(text: CodeText, shape: Shape, hints: tuple[str, ...]) -> _Judged:
    findings = list(find_evidence(text, shape))
    if not {"keyword", "purpose"} & {*findings}:
        findings += hints or ("no keyword",)
    if len(shape.value) == 6:
        findings.append("length six")
    if shape.kind in POINTS and shape.kind != "long":
        findings.append(shape.kind)
    findings += find_objections(text, shape)
    return _score(shape.value, findings)


def _score(value: str, findings: list[str]) -> _Judged:
    return _Judged(value, tuple(findings), sum(POINTS[finding][0] for finding in findings))


def _as_candidate(judged: _Judged) -> Candidate:
    reasons = tuple(f"{POINTS[f][0]:+d} {POINTS[f][1]}" for f in judged.findings)
    accepted = judged.score >= ACCEPTED_FROM
    return Candidate(CandidateKind.CODE, judged.value, judged.score, accepted, reasons)
