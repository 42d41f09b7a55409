"""Bytes that came from a mail: always a download, never something a browser opens."""

import re
from urllib.parse import quote

from mailcheck.web.site.replies import Reply

FALLBACK_NAME = "attachment"

_UNSAFE = re.compile(r'[^A-Za-z0-9._ -]|["\\]')
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}(; charset=utf-8)?")


def download_reply(data: bytes, content_type: str, filename: str) -> Reply:
    """Make a response that a browser saves: RFC 6266 names, a sandbox, no sniffing.

    A content type that a mail made up and that is none is sent as plain bytes.
    """
    if _MEDIA_TYPE.fullmatch(content_type) is None:
        content_type = "application/octet-stream"
    plain = _UNSAFE.sub("_", filename).strip(". ") or FALLBACK_NAME
    encoded = quote(filename or FALLBACK_NAME, safe="", errors="replace")
    return Reply(
        200,
        data,
        content_type,
        {
            "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        },
    )
