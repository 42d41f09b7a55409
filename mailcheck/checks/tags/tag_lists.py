"""Tag lists ``a=b; c=d``, the syntax of DKIM, DMARC, MTA-STS and TLS-RPT records."""

import re
from collections.abc import Mapping

from msgspec import Struct

# RFC 6376 3.2: tag-name = ALPHA *ALNUMPUNC
_TAG_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_BLANK = " \t\r\n"

MAX_SHOWN = 60  # characters of a malformed tag that are quoted in a problem
MAX_PROBLEMS = 10  # problems that are reported; the first ones are enough


class TagList(Struct, frozen=True):
    """The tags in order. If a name occurs several times, ``tags`` has its first value.

    ``problems`` describes malformed and repeated tags. An empty tag (``;;``) is not a problem for
    receivers that skip it.
    """

    tags: Mapping[str, str]
    problems: tuple[str, ...]
    has_empty_tag: bool = False

    @property
    def violations(self) -> tuple[str, ...]:
        """Violations of RFC 6376 3.2: the problems, and empty tags."""
        empty = ("there is no tag between two semicolons",) if self.has_empty_tag else ()
        return (*self.problems, *empty)

    def get(self, name: str) -> str | None:
        """Return a tag's value without surrounding whitespace, or `None`."""
        return self.tags.get(name)


def parse_tag_list(text: str) -> TagList:
    """Parse a tag list (RFC 6376 3.2); a semicolon at the end is allowed."""
    tags: dict[str, str] = {}
    problems = []
    pieces = [piece.strip(_BLANK) for piece in text.split(";")]
    for tag in filter(None, pieces):
        name, equals, value = (part.strip(_BLANK) for part in tag.partition("="))
        if not equals or _TAG_NAME.fullmatch(name) is None:
            problems.append(f"{tag[:MAX_SHOWN]!r} does not have the form name=value")
        elif name in tags:
            problems.append(f"the tag {name[:MAX_SHOWN]!r} is repeated")
        else:
            tags[name] = value
    return TagList(tags, tuple(problems[:MAX_PROBLEMS]), "" in pieces[:-1])


def has_version(text: str, version: str) -> bool:
    """Return whether the list begins with ``v=<version>``, exactly and in that case.

    Whitespace before ``v`` is an error in every record (RFC 9989 4.8, RFC 8461 3.1, RFC 8460 3)
    except DKIM's, which allows it (RFC 6376 3.2).
    """
    name, equals, value = text.partition(";")[0].partition("=")
    return name.rstrip(_BLANK) == "v" and equals == "=" and value.strip(_BLANK) == version


def has_exact_version(text: str, version: str) -> bool:
    """Return whether the text begins with ``v=<version>`` without whitespace within it.

    RFC 8461 3.1 and RFC 8460 3 allow none.
    """
    return text.startswith(f"v={version}") and has_version(text, version)
