"""Compressed responses, for clients that take them (RFC 9110 12.5.3)."""

import gzip

from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import header_values

VARY = {"Vary": "Accept-Encoding"}

SMALL = 1_000
"""Bytes under which compressing is not worth it."""

LARGE = 512 * 1024
"""Bytes over which compressing would hold up the others; an attachment is mostly compressed."""

LEVEL = 5


def accepts_gzip(request: Request) -> bool:
    """Tell whether a client takes gzip."""
    for word in ",".join(header_values(request, b"Accept-Encoding")).lower().split(","):
        coding, _, weight = word.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def compress(request: Request, reply: Reply) -> Reply:
    """Compress a reply where that pays and the client takes it."""
    if not SMALL <= len(reply.body) <= LARGE or "Content-Encoding" in reply.headers:
        return reply
    varies = {word.strip() for word in reply.headers.get("Vary", "").split(",")} - {""}
    headers = {**reply.headers, "Vary": ", ".join(sorted({*varies, VARY["Vary"]}))}
    if not accepts_gzip(request):
        return replace(reply, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return replace(reply, body=gzip.compress(reply.body, LEVEL, mtime=0), headers=headers)
