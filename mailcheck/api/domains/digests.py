"""JSON shape of a digest."""

from typing import Annotated

from mailcheck.api.shapes import Shape, Texts, Timestamp, doc, shape_from
from mailcheck.core.domains.digests import MOST_DIGEST_RECEIVERS, DigestInterval
from mailcheck.operations.digests.manage_digest import ShownDigest


class Digest(Shape):
    """The digest of the account: what changed and what to do next, by mail."""

    every: Annotated[DigestInterval | None, doc("null: no digest is sent")]
    to: Annotated[
        Texts, doc("mail addresses beside your own inbox", max_length=MOST_DIGEST_RECEIVERS)
    ]
    quiet: Annotated[str | None, doc("time of day (UTC) without digests")]
    next_at: Timestamp | None


def render_digest(shown: ShownDigest) -> Digest:
    """Render the settings of a digest."""
    settings = shown.settings
    return shape_from(
        Digest,
        settings,
        quiet=None if settings.quiet is None else str(settings.quiet),
        next_at=shown.next_at,
    )
