"""JSON shapes of the audit log."""

from typing import Annotated

from mailcheck.api.shapes import Shape, Timestamp, doc, shape_from
from mailcheck.core import audit
from mailcheck.core.instants import format_instant
from mailcheck.operations.follow_audit import AuditPage


class AuditEntry(Shape):
    """Who did what."""

    id: str
    at: Timestamp
    account_id: Annotated[
        str | None, doc("what was changed; null for the service, and after it was deleted")
    ]
    account: Annotated[str, doc("its name at that time; empty for the service")]
    action: str
    actor: Annotated[str, doc("a person, an API key with its id, or a program")]
    client: Annotated[str, doc("address of the client; empty on the machine of the daemon")]
    detail: Annotated[str, doc("for people; it has no secrets")]


class AuditLog(Shape):
    """Entries of the audit log."""

    entries: Annotated[tuple[AuditEntry, ...], doc("oldest first")]
    cursor: Annotated[str, doc("pass it as `after` to get later entries only")]
    has_more: Annotated[bool, doc("whether later entries are there already")]


def render_entry(entry: audit.AuditEntry) -> AuditEntry:
    """Render an entry."""
    at = format_instant(entry.happened_at)
    return shape_from(AuditEntry, entry, at=at, account=entry.account_name)


def render_log(page: AuditPage) -> AuditLog:
    """Render entries with their cursor."""
    return AuditLog(
        entries=tuple(map(render_entry, page.entries)),
        cursor=audit.format_audit_cursor(page.position),
        has_more=page.has_more,
    )
