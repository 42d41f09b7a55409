"""Encoded words of header fields (RFC 2047), correct or as mail programs write them."""

import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from mailcheck.checks.content.decoding import decode_text, flatten_controls

# The text may hold spaces and question marks, and white space of a fold may stand between the
# parts: all that is wrong and common. No repetition gives a character back, so a search looks at
# each character a bounded number of times.
_WORD = re.compile(
    r"=\?\s*+([^?\s]{0,64})\s*+\?\s*+([bBqQ])\s*+\?"
    r"([^?]*+(?:(?<!=)\?(?!\s?=)[^?]*+){0,8}+)\?\s?="
)
_TO_STANDARD = str.maketrans("-_", "+/")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_REPLACEMENT = "\ufffd"

Word = tuple[str, str]
"""Encoding (``b`` or ``q``) and text of an encoded word."""


def decode_words(text: str) -> str:
    """Decode all encoded words of an unfolded field body; anything else stays as it is.

    White space between two encoded words is dropped (RFC 2047 6.2), and neighbours of one
    charset are joined before decoding, since senders split inside characters.
    """
    if "=?" not in text:
        return flatten_controls(text)
    pieces: list[str] = []
    run: list[Word] = []
    charset, position = "", 0
    for match in _WORD.finditer(text):
        gap = text[position : match.start()]
        label = match[1].partition("*")[0].lower()
        if run and (gap.strip() or label != charset):
            pieces.append(_decode_run(run, charset))
            run = []
        if gap.strip() or not position:
            pieces.append(gap)
        run.append((match[2].lower(), match[3]))
        charset, position = label, match.end()
    if run:
        pieces.append(_decode_run(run, charset))
    pieces.append(text[position:])
    return flatten_controls("".join(pieces))


def _decode_run(run: Sequence[Word], label: str) -> str:
    """Decode neighbours of one charset: the first reading without a bad character counts."""
    if len(run) == 1:
        return decode_text(_decode_word(*run[0]), label)[0]
    first = decode_text(_join(run, _is_cut), label)[0]
    if _REPLACEMENT not in first:
        return first
    for is_cut in (_is_whole, _is_unfinished):
        text = decode_text(_join(run, is_cut), label)[0]
        if _REPLACEMENT not in text:
            return text
    apart = "".join(decode_text(_decode_word(*word), label)[0] for word in run)
    return first if _REPLACEMENT in apart else apart


def _is_cut(texts: Sequence[str]) -> bool:
    """Return whether base64 was cut into words: only all of it has a whole number of quanta."""
    return sum(map(len, texts)) % 4 == 0


def _is_whole(texts: Sequence[str]) -> bool:
    return False


def _is_unfinished(texts: Sequence[str]) -> bool:
    return True


def _join(run: Sequence[Word], is_cut: Callable[[Sequence[str]], bool]) -> bytes:
    """Decode words to octets; join words that were cut inside their encoding first."""
    return b"".join(_decode_neighbours(run, is_cut))


def _decode_neighbours(
    run: Sequence[Word], is_cut: Callable[[Sequence[str]], bool]
) -> Iterator[bytes]:
    for encoding, words in groupby(run, key=lambda word: word[0]):
        texts = [text for _, text in words]
        if encoding == "q":
            yield _decode_q("".join(texts))
            continue
        for group in _split_at_padding(texts):
            if is_cut(group):
                yield decode_base64("".join(group))
            else:
                yield from map(decode_base64, group)


def _split_at_padding(texts: Sequence[str]) -> list[list[str]]:
    """Divide base64 behind each word that ends in padding, which may itself have been cut."""
    groups: list[list[str]] = []
    for text in texts:
        digits = "".join(text.split())
        if groups and (digits.strip("=") == "" or not groups[-1][-1].endswith("=")):
            groups[-1].append(digits)
        else:
            groups.append([digits])
    return groups


def _decode_word(encoding: str, text: str) -> bytes:
    return _decode_q(text) if encoding == "q" else decode_base64(text)


def _decode_q(text: str) -> bytes:
    return binascii.a2b_qp(text.encode("utf-8", "replace"), header=True)


def decode_base64(text: str) -> bytes:
    """Decode base64 and ignore other characters in it; an incomplete end is cut off."""
    digits = _NOT_BASE64.sub("", text.translate(_TO_STANDARD))
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))
