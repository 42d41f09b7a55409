"""What an API key may do: the scopes of its requests and the tags of its messages.

Every entry point that takes a key declares its scopes and calls `Rights.require` with them: the
routes of the REST API, the MCP tools and the submission port.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from mailcheck.core.addresses import UNTAGGED, explain_bad_tag, fold_tag
from mailcheck.core.errors import InvalidParameter, NotPermitted


class Scope(StrEnum):
    """An area of the API. The names are part of the contract with clients."""

    INBOX_READ = "inbox:read"
    INBOX_WRITE = "inbox:write"
    TESTS = "tests"
    DOMAINS = "domains"
    REPORTS_IMPORT = "reports:import"
    WATCHES = "watches"
    WEBHOOKS = "webhooks"
    METRICS = "metrics:read"
    PROJECT_ADMIN = "project:admin"
    OPERATOR = "operator"


NAMED_ONLY = frozenset({Scope.PROJECT_ADMIN, Scope.OPERATOR})
"""The scopes that no key has unless it names them."""

ORDINARY = frozenset(Scope) - NAMED_ONLY
"""The scopes of a key that names none."""

SCOPE_TEXTS: Mapping[Scope, str] = {
    Scope.INBOX_READ: "take addresses, wait for mail, and read messages",
    Scope.INBOX_WRITE: "submit and delete mail, check links, replace share links, and set faults",
    Scope.TESTS: "create, read and delete deliverability tests",
    Scope.DOMAINS: "check domains and blocklists, and read reports of receivers and traffic",
    Scope.REPORTS_IMPORT: "import DMARC, TLS and failure reports from files",
    Scope.WATCHES: "create, change and delete watches, and read their alerts",
    Scope.WEBHOOKS: "create, change and delete webhooks and inbound routes, and send mail to "
    "applications",
    Scope.METRICS: "read the metrics of watches, heartbeats and reports for Prometheus",
    Scope.PROJECT_ADMIN: "create, rename and delete projects, manage their members and "
    "API keys, and read their audit log; only for keys that name it",
    Scope.OPERATOR: "manage all accounts and projects, for a key of the operator; only for keys "
    "that name it",
}
"""What each scope permits, for documents and pages."""

_OF_TAGS = (Scope.INBOX_READ, Scope.INBOX_WRITE)
"""The scopes that a limit to tags can be combined with: only messages have tags."""

MAX_LIMITED_TAGS = 50
"""Maximum number of tags that a key is limited to. Each is one more comparison for every mail."""


class TagLimit(Struct, frozen=True):
    """The tags that a key may use: some tags, those with a prefix, or both. Case is ignored."""

    tags: tuple[str, ...] = ()
    prefix: str | None = None

    def allows(self, tag: str) -> bool:
        """Return whether a tag is one of these."""
        folded = fold_tag(tag)
        if self.prefix is not None and folded.startswith(fold_tag(self.prefix)):
            return True
        return folded in {fold_tag(own) for own in self.tags}

    def allows_any_in(self, prefix: str) -> bool:
        """Return whether some tag that begins with a prefix is one of these."""
        folded, own = fold_tag(prefix), fold_tag(self.prefix or "")
        tags = [*self.tags, *([own] if own else [])]
        return self.allows_all_in(prefix) or any(fold_tag(tag).startswith(folded) for tag in tags)

    def allows_all_in(self, prefix: str) -> bool:
        """Return whether every tag that begins with a prefix is one of these."""
        return self.prefix is not None and fold_tag(prefix).startswith(fold_tag(self.prefix))

    def __str__(self) -> str:
        """Describe the tags, such as ``the tag 'a' or tags that begin with 'run-'``."""
        named = [f"the tag {tag!r}" for tag in self.tags]
        if self.prefix is not None:
            named.append(f"tags that begin with {self.prefix!r}")
        return " or ".join(named)


class Rights(Struct, frozen=True):
    """The rights of a caller. ``None`` is no limit: all ordinary scopes, or all tags."""

    scopes: frozenset[Scope] | None = None
    tags: TagLimit | None = None

    @property
    def granted(self) -> frozenset[Scope]:
        """All scopes that the caller has."""
        return ORDINARY if self.scopes is None else self.scopes

    @property
    def is_limited(self) -> bool:
        """Whether there is anything that the caller may not do."""
        return self != ALL_RIGHTS

    def __str__(self) -> str:
        """Describe the rights, such as ``inbox:read; tags that begin with 'run-'``."""
        if not self.is_limited:
            return "all rights"
        scopes = "all scopes" if self.scopes is None else ", ".join(sorted(self.scopes))
        return scopes if self.tags is None else f"{scopes}; {self.tags}"

    def missing(self, scopes: Iterable[Scope]) -> list[Scope]:
        """Return those of the scopes that the caller does not have."""
        return [scope for scope in scopes if scope not in self.granted]

    def require(self, scopes: Iterable[Scope]) -> None:
        """Check that the caller has these scopes.

        :raises NotPermitted: one is missing; the message names it.
        """
        for scope in self.missing(scopes):
            raise NotPermitted(
                f"this API key does not have the scope {scope}: use a key that has it"
            )

    def require_at_most(self, given: "Rights") -> None:
        """Check that the caller may give these rights to a new key: it has all of them itself.

        :raises NotPermitted: it lacks some; the message names them.
        """
        beyond = ", ".join(sorted(given.granted - self.granted))
        if beyond:
            raise NotPermitted(
                f"a key cannot give more than it has: this API key does not have {beyond}; name "
                "the scopes of the new key, or use a key that has them"
            )
        if self.tags is not None and given.tags != self.tags:
            raise NotPermitted(f"a key cannot give more than it has: it is limited to {self.tags}")

    def allows_tag(self, tag: str) -> bool:
        """Return whether the caller may use messages with this tag."""
        return self.tags is None or self.tags.allows(tag)

    def require_tag(self, tag: str) -> None:
        """Check that the caller may use an address with this tag.

        :raises NotPermitted: the key is limited to other tags; the message names them.
        """
        if not self.allows_tag(tag):
            sent = f"the tag {tag!r}" if tag else "no tag"
            raise NotPermitted(f"this API key is limited to {self.tags}; you sent {sent}")

    def unique_tag(self, ending: str) -> str:
        """Return a new tag with a random ending that the caller may use, if there is one."""
        prefix = None if self.tags is None else self.tags.prefix
        return ending if prefix is None else f"{prefix}{ending}"


ALL_RIGHTS = Rights()


def make_rights(
    scopes: Sequence[str] = (), tags: Sequence[str] = (), tag_prefix: str | None = None
) -> Rights:
    """Return the rights for a new key. Without scopes it has all ordinary ones.

    A key that is limited to tags has the scopes of the inbox only.

    :raises InvalidParameter: a scope is unknown, a tag is invalid or repeated, or a limit to tags
        is combined with a scope outside of the inbox.
    """
    known = {str(scope) for scope in Scope}
    for scope in scopes:
        if scope not in known:
            raise InvalidParameter(
                "scope", f"{scope!r} is not a scope; send one of {', '.join(sorted(known))}"
            )
    granted = frozenset(map(Scope, scopes)) or None
    limit = _make_tag_limit(tags, tag_prefix)
    if limit is None:
        return Rights(granted)
    if granted is None:
        granted = frozenset(_OF_TAGS)
    others = sorted(granted.difference(_OF_TAGS))
    if others:
        raise InvalidParameter(
            "scope",
            f"a key that is limited to tags can only have the scopes {' and '.join(_OF_TAGS)}; "
            f"you sent {others[0]}",
        )
    return Rights(granted, limit)


def _make_tag_limit(tags: Sequence[str], prefix: str | None) -> TagLimit | None:
    if len(tags) > MAX_LIMITED_TAGS:
        raise InvalidParameter(
            "tag", f"a key is limited to at most {MAX_LIMITED_TAGS} tags; you sent {len(tags)}"
        )
    for tag in tags:
        problem = "it is empty" if tag == UNTAGGED else explain_bad_tag(tag)
        if problem is not None:
            raise InvalidParameter("tag", f"{tag!r} is not a tag: {problem}")
    if prefix is None:
        return TagLimit(tuple(tags)) if tags else None
    # A prefix may end with a dot or a hyphen, which a whole tag may not.
    problem = "it is empty" if prefix == UNTAGGED else explain_bad_tag(f"{prefix}x")
    if problem is not None:
        raise InvalidParameter("tag-prefix", f"{prefix!r} does not begin a tag: {problem}")
    return TagLimit(tuple(tags), prefix)
