"""The mailboxes of an address field (RFC 5322 3.4), as people and programs really write it."""

import re

from mailcheck.checks.content.charsets import flatten_controls
from mailcheck.checks.content.encoded_words import decode_words
from mailcheck.checks.content.limits import MAX_MAILBOX_LIST

# Every alternative takes at least one character and never gives one back: linear.
_TOKEN = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*+)"?'
    r"|\((?P<comment>(?:[^()\\]|\\.)*+)\)?"
    r"|<(?P<angle>[^<>]*+)>?"
    r"|(?P<text>[^\"(<,;:]++)"
    r"|(?P<mark>[,;:])",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse_first_mailbox(body: str) -> tuple[str, str]:
    """Read address and display name of the first mailbox; both are "" where there is none.

    The display name is decoded (RFC 2047) and unquoted. A name with a comma
    that should have been quoted is kept whole.
    """
    body = flatten_controls(body[:MAX_MAILBOX_LIST])
    address, name, _ = _parse(body, 0)
    if "@" not in address and "=?" in body:
        # Some senders encode the whole field, address included.
        address, name, _ = _parse(decode_words(body), 0)
    return address.strip(), _clean_name(name)


def parse_mailboxes(body: str) -> list[tuple[str, str]]:
    """Read address and display name of every mailbox, in order; the first as above."""
    body = flatten_controls(body[:MAX_MAILBOX_LIST])
    if "@" not in body:
        body = decode_words(body)
    mailboxes: list[tuple[str, str]] = []
    position = 0
    while position < len(body):
        address, name, position = _parse(body, position)
        if address:
            mailboxes.append((address.strip(), _clean_name(name.lstrip(" ,"))))
    return mailboxes


def _clean_name(name: str) -> str:
    return " ".join(decode_words(name).split())


def _parse(body: str, position: int) -> tuple[str, str, int]:
    """Read the mailbox that begins at the position; tells also where to go on."""
    phrase: list[str] = []
    written: list[str] = []
    comment = ""
    end = len(body)
    for token in _TOKEN.finditer(body, position):
        kind = token.lastgroup
        if kind == "angle":
            return token["angle"].strip(), "".join(phrase).strip(), token.end()
        if kind == "comment":
            comment = comment or token["comment"]
            continue
        if kind == "mark":
            if "@" in "".join(written):
                end = token.end()
                break
            # A comma before any address belongs to the name; ":" ends a group's name.
            written.clear()
            if token["mark"] == ",":
                phrase.append(",")
            else:
                phrase.clear()
            continue
        phrase.append(_ESCAPED.sub(r"\1", token["quoted"]) if kind == "quoted" else token["text"])
        written.append(token.group())
    address = "".join(written).strip()
    if "@" in address:
        address = "".join(address.split()) if '"' not in address else address
        return address, comment.strip(), end
    return "", "".join(phrase).strip(" ,"), end
