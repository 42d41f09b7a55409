"""The names of mailboxes: their encoding, and the mailboxes that they stand for."""

import base64
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import MAX_PATH, explain_bad_tag, fold_tag
from mailcheck.core.cursors import START
from mailcheck.core.filters import ANY, MessageFilter

SEPARATOR = "/"
INBOX, SANDBOX, TRASH, TAGS = "INBOX", "Sandbox", "Trash", "Tags"
TAG_PREFIX = f"{TAGS}{SEPARATOR}"

NOWHERE = MessageFilter(up_to=START)
"""The filter of the trash: no message matches, since a deleted message is gone."""


_WILDCARDS = re.compile(r"[*%]{2,}")
_SMALL = re.compile(r"[a-z]+")


class MailboxName(Struct, frozen=True):
    """A mailbox that can be selected. ``tag`` is that of appended mail; `None`: it takes none."""

    name: str
    wanted: MessageFilter
    tag: str | None

    def within(self, wanted: MessageFilter) -> MessageFilter:
        """Return a filter that is limited to this mailbox; it has no conditions of mailboxes."""
        own = self.wanted
        return replace(wanted, tag=own.tag, foreign_to=own.foreign_to, up_to=own.up_to)


def find_mailbox(name: str, caught: MessageFilter) -> MailboxName | None:
    """Return the mailbox with a name, or `None`.

    A mailbox of a tag exists before its first message, so that a program can wait for it.
    INBOX has any case (RFC 9051 5.1); tags have any case as everywhere in mailcheck.

    :param caught: the filter of the sandbox.
    """
    if name.upper() == INBOX:
        return MailboxName(INBOX, ANY, "")
    if name == SANDBOX:
        return MailboxName(SANDBOX, caught, None)
    if name == TRASH:
        return MailboxName(TRASH, NOWHERE, None)
    tag = name.removeprefix(TAG_PREFIX)
    if tag == name or not tag or len(tag.encode("utf-8", "replace")) > MAX_PATH:
        return None
    # Mail that was caught may have a tag that no address of this server can have.
    new = tag if explain_bad_tag(tag) is None else None
    return MailboxName(f"{TAG_PREFIX}{tag}", MessageFilter(tag=tag), new)


class ListedMailbox(Struct, frozen=True):
    """A mailbox in a list, with its attributes (RFC 9051 7.3.1)."""

    name: str
    attributes: tuple[str, ...]

    @property
    def can_be_selected(self) -> bool:
        """Whether the mailbox can be selected."""
        return "\\Noselect" not in self.attributes


def list_mailboxes(tags: Iterable[str], *, has_sandbox: bool) -> Iterator[ListedMailbox]:
    """Yield all mailboxes and their parents.

    :param has_sandbox: whether the caller may read mail with any tag.
    """
    yield ListedMailbox(INBOX, ("\\HasNoChildren",))
    if has_sandbox:
        yield ListedMailbox(SANDBOX, ("\\HasNoChildren",))
    names = {fold_tag(tag): f"{TAG_PREFIX}{tag}" for tag in tags}
    parents = {parent: "" for name in names.values() for parent in _parents(name)}
    is_parent = {fold_tag(parent) for parent in parents}
    for parent in parents:
        if fold_tag(parent.removeprefix(TAG_PREFIX)) not in names or parent == TAGS:
            yield ListedMailbox(parent, ("\\Noselect", "\\HasChildren"))
    for name in names.values():
        children = "\\HasChildren" if fold_tag(name) in is_parent else "\\HasNoChildren"
        yield ListedMailbox(name, (children,))
    yield ListedMailbox(TRASH, ("\\HasNoChildren", "\\Trash"))


def _parents(name: str) -> Iterator[str]:
    at = name.find(SEPARATOR)
    while at >= 0:
        yield name[:at]
        at = name.find(SEPARATOR, at + 1)


class NamePattern:
    """A pattern of names: ``*`` is any text, ``%`` any text without a separator.

    INBOX has any case (RFC 9051 5.1). The time of a match is linear in the length of the name, for
    any pattern.
    """

    def __init__(self, pattern: str) -> None:
        in_capitals = _SMALL.sub(lambda match: match[0].upper(), pattern)
        self._for_inbox = None if in_capitals == pattern else NamePattern(in_capitals)
        # Neighbouring wildcards mean the same as one of them.
        pattern = _WILDCARDS.sub(lambda match: "*" if "*" in match[0] else "%", pattern)
        # Bit i of a number stands for the i-th character of the pattern.
        self._any = self._within = 0
        self._literal: dict[str, int] = {}
        for number, character in enumerate(pattern):
            if character == "*":
                self._any |= 1 << number
            elif character == "%":
                self._within |= 1 << number
            else:
                self._literal[character] = self._literal.get(character, 0) | 1 << number
        self._end = 1 << len(pattern)

    def matches(self, name: str) -> bool:
        """Return whether a whole name matches."""
        if name == INBOX and self._for_inbox is not None:
            return self._for_inbox.matches(name)
        reached = self._behind_wildcards(1)
        for character in name:
            stays = self._any if character == SEPARATOR else self._any | self._within
            moves = reached & self._literal.get(character, 0)
            reached = self._behind_wildcards(moves << 1 | reached & stays)
            if not reached:
                return False
        return bool(reached & self._end)

    def _behind_wildcards(self, reached: int) -> int:
        return reached | (reached & (self._any | self._within)) << 1


_SHIFTED = re.compile(rb"&([^-]*)-")


def decode_name(octets: bytes, *, is_utf_8: bool = False) -> str | None:
    """Decode a name in modified UTF-7 (RFC 3501 5.1.3); `None` if it is broken.

    Clients that have enabled UTF-8 send that (RFC 6855 3), and some others do, too.
    """
    try:
        if is_utf_8 or not octets.isascii():
            return octets.decode("utf-8")
        return _SHIFTED.sub(lambda match: _unshift(match[1]), octets).decode("utf-8")
    except (ValueError, UnicodeError):
        return None


def _unshift(shifted: bytes) -> bytes:
    if not shifted:
        return b"&"
    padded = shifted.replace(b",", b"/") + b"=" * (-len(shifted) % 4)
    return base64.b64decode(padded, validate=True).decode("utf-16-be").encode("utf-8")


_FOREIGN = re.compile(r"[^\x20-\x7e]+")


def encode_name(name: str) -> bytes:
    """Encode a name in modified UTF-7 (RFC 3501 5.1.3)."""

    def shift(match: re.Match[str]) -> str:
        written = base64.b64encode(match[0].encode("utf-16-be", "surrogatepass"))
        return f"&{written.rstrip(b'=').replace(b'/', b',').decode('ascii')}-"

    return _FOREIGN.sub(shift, name.replace("&", "&-")).encode("ascii")
