"""Tag lists ``a=b; c=d``: the syntax that DKIM, DMARC, MTA-STS and TLS-RPT records share."""

import re
from collections.abc import Mapping

from msgspec import Struct

# RFC 6376 3.2: tag-name = ALPHA *ALNUMPUNC
_TAG_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_BLANK = " \t\r\n"

MAX_SHOWN = 60  # characters of a broken tag that are repeated in a problem
MAX_PROBLEMS = 10  # the first ones say it all


class TagList(Struct, frozen=True):
    """The tags in order; a name stands once in ``tags``: its first value counts.

    ``problems`` says in a few words what is no tag or stands twice. An empty
    tag (``;;``) is no problem where readers skip it.
    """

    tags: Mapping[str, str]
    problems: tuple[str, ...]
    has_empty_tag: bool = False

    @property
    def violations(self) -> tuple[str, ...]:
        """Give what makes it no tag list at all by RFC 6376 3.2: problems, and empty tags."""
        empty = ("there is nothing between two semicolons",) if self.has_empty_tag else ()
        return (*self.problems, *empty)

    def get(self, name: str) -> str | None:
        """Give a tag's value with the blanks around it removed, or nothing."""
        return self.tags.get(name)


def parse_tag_list(text: str) -> TagList:
    """Read a tag list (RFC 6376 3.2); a semicolon at the end is no problem."""
    tags: dict[str, str] = {}
    problems = []
    pieces = [piece.strip(_BLANK) for piece in text.split(";")]
    for tag in filter(None, pieces):
        name, equals, value = (part.strip(_BLANK) for part in tag.partition("="))
        if not equals or _TAG_NAME.fullmatch(name) is None:
            problems.append(f"{tag[:MAX_SHOWN]!r} is not of the form name=value")
        elif name in tags:
            problems.append(f"the tag {name[:MAX_SHOWN]!r} stands twice")
        else:
            tags[name] = value
    return TagList(tags, tuple(problems[:MAX_PROBLEMS]), "" in pieces[:-1])


def has_version(text: str, version: str) -> bool:
    """Return whether the list begins with ``v=<version>``, exactly and in that case.

    A blank before ``v`` is a fault in every record but DKIM's (RFC 9989 4.8, RFC 8461 3.1,
    RFC 8460 3); DKIM lets one stand there (RFC 6376 3.2).
    """
    name, equals, value = text.partition(";")[0].partition("=")
    return name.rstrip(_BLANK) == "v" and equals == "=" and value.strip(_BLANK) == version


def has_exact_version(text: str, version: str) -> bool:
    """Return whether the text begins with ``v=<version>`` and no blank is within it.

    RFC 8461 3.1 and RFC 8460 3 allow none.
    """
    return text.startswith(f"v={version}") and has_version(text, version)
