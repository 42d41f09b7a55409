"""Names in a signature: in any script (RFC 8616), always given as A-labels."""

import re

import idna

from mailcheck.core.domain_names import MAX_INPUT, MAX_LABEL, MAX_NAME

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)


class InvalidName(Exception):
    """No key can stand at a name; the text says why."""


def to_a_labels(text: str) -> str:
    """Write a domain or selector as lower-case A-labels.

    Unlike a domain that a user sends it may be a single label, or one of a
    private network: it is what the signer wrote.

    :raises InvalidName: it is no name.
    """
    if not text:
        raise InvalidName("it is empty")
    if len(text) > MAX_INPUT:
        raise InvalidName(f"it is longer than {MAX_NAME} characters")
    name = text.lower() if text.isascii() else _encode(text)
    name = name.removesuffix(".")
    if len(name) > MAX_NAME:
        raise InvalidName(f"it is longer than {MAX_NAME} characters")
    for label in name.split("."):
        if len(label) > MAX_LABEL or _LABEL.fullmatch(label) is None:
            raise InvalidName(f"{text[:MAX_LABEL]!r} is not a domain name")
    return name


def _encode(text: str) -> str:
    try:
        return idna.encode(text, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise InvalidName(f"{text[:MAX_LABEL]!r} is not a domain name") from None
