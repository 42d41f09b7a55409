"""Style sheets, scripts and images. Their addresses change with their content."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from msgspec import Struct

from mailcheck.web.dashboard.visits import SAME_FOR_ALL, Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.failures import NOT_FOUND
from mailcheck.web.site.replies import VARY, Reply, accepts_gzip, error_reply

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

IMMUTABLE = "public, max-age=31536000, immutable"


class _File(Struct, frozen=True):
    digest: str
    media_type: str
    body: bytes
    compressed: bytes


class StaticFiles:
    """The files of ``static/``, read and compressed once."""

    def __init__(self) -> None:
        self._files = _read_all()

    def path(self, name: str) -> str:
        """Return the path of a file. It contains a digest of the content."""
        return f"/static/{self._files[name].digest}/{name}"

    def text(self, name: str) -> str:
        """Return the content of a file, for pages that must not load other files."""
        return self._files[name].body.decode("utf-8")

    def pages(self) -> list[Page]:
        """List the route of all files."""
        path = "/static/<digest>/<name>"
        return [Page("GET", path, self.send, costs.FREE, SAME_FOR_ALL)]

    async def send(self, visit: Visit) -> Reply:
        """GET /static/<digest>/<name>."""
        file = self._files.get(visit.path["name"])
        if file is None or file.digest != visit.path["digest"]:
            return error_reply(NOT_FOUND, "this file is missing or outdated: reload the page")
        headers = {"Cache-Control": IMMUTABLE, **VARY}
        if not accepts_gzip(visit.request):
            return Reply(200, file.body, file.media_type, headers)
        headers["Content-Encoding"] = "gzip"
        return Reply(200, file.compressed, file.media_type, headers)


@cache
def _read_all() -> dict[str, _File]:
    folder = files("mailcheck.web.dashboard").joinpath("static")
    found = {}
    for file in folder.iterdir():
        media_type = MEDIA_TYPES.get(file.name.rpartition(".")[2])
        if media_type is not None:
            body = file.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:12]
            compressed = gzip.compress(body, 9, mtime=0)
            found[file.name] = _File(digest, media_type, body, compressed)
    return found
