"""The attachment of a mail for agents: text, an image, or a link that ends soon."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.mcp.untrusted import defuse_html, defuse_markdown
from mailcheck.api.mcp.views import MAX_TEXT, cut
from mailcheck.checks.content.bodies import Attachment, image_type, is_readable
from mailcheck.checks.content.decoding import decode_text

MAX_IMAGE = 1_000_000
"""Maximum number of bytes of an image in a result. Clients limit a result to a few megabytes."""

IMAGES_FOR_MODELS = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Image types that models read."""

MAX_DECODED = 8 * MAX_TEXT
"""Maximum number of bytes of a text that are decoded; a character has at most four."""


class AttachmentView(Struct, frozen=True):
    """An attachment that is safe to show. ``image_type`` is empty if the result has no image.

    ``is_whole`` is false if the client must download the attachment to have all of it.
    """

    text: str = ""
    image_type: str = ""
    warnings: Sequence[str] = ()
    is_whole: bool = False


def trim_attachment(attachment: Attachment) -> Attachment:
    """Return the part of an attachment that a view needs, which is small enough for a process.

    The text ends with a whole character of UTF-8.
    """
    data, end = attachment.data, MAX_DECODED
    while end < len(data) and MAX_DECODED - end < 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return replace(attachment, data=data[:end])


def view_attachment(attachment: Attachment, size: int) -> AttachmentView:
    """Create the view of a trimmed attachment that has ``size`` bytes.

    The bytes decide whether it is an image.
    """
    media_type = image_type(attachment.data) or ""
    if media_type in IMAGES_FOR_MODELS:
        if size <= MAX_IMAGE:
            return AttachmentView(image_type=media_type, is_whole=True)
        return AttachmentView(warnings=(f"the image has more than {MAX_IMAGE} bytes",))
    if not is_readable(attachment.content_type):
        return AttachmentView()
    whole = attachment.opened or decode_text(attachment.data, attachment.charset)[0]
    shown, warnings, _ = cut(whole, MAX_TEXT)
    is_html = attachment.content_type == "text/html"
    return AttachmentView(
        text=defuse_html(shown) if is_html else defuse_markdown(shown),
        warnings=tuple(warnings),
        is_whole=len(attachment.data) == size and len(whole) <= MAX_TEXT,
    )
