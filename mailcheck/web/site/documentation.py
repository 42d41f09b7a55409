"""The documentation below ``/docs``: plain files, as `make docs` has put them into one archive."""

from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

from mailcheck.web.site.errors import NOWHERE
from mailcheck.web.site.replies import Reply, error_reply

ARCHIVE = "docs.zip"
FIRST_PAGE = "index.html"

POLICY = (
    # The theme writes styles into its pages. No script stands in them, and nobody else's words do.
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
}
OTHER = "text/plain; charset=utf-8"
"""What is offered for reading: configuration and programs."""

MOVED = 302


class Documentation:
    """Reads files of the archive, whose index is read once: until it is made anew, as it may be."""

    def __init__(self, archive: Path | None = None) -> None:
        """``archive`` is the installed one unless another is named."""
        self._path = archive or Path(str(files("mailcheck.web.site").joinpath(ARCHIVE)))
        self._archive: ZipFile | None = None
        self._version = (0, 0, 0)

    def read(self, name: str) -> Reply:
        """Give the file of this name; nothing outside of the archive has one."""
        archive = self._open()
        if archive is None:
            missing = "the documentation was not built here: `make docs` in the sources does it"
            return error_reply(NOWHERE, missing)
        name = f"{name}{FIRST_PAGE}" if name.endswith("/") or not name else name
        if name not in archive.NameToInfo:
            return error_reply(NOWHERE, f"the documentation has no {name[:100]}: see /docs/")
        body = archive.read(name)
        media_type = MEDIA_TYPES.get(name.rpartition(".")[2], OTHER)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Reply(200, body, media_type, headers)

    def _open(self) -> ZipFile | None:
        """Give the archive as it is now; nothing where there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._archive is None or version != self._version:
            if self._archive is not None:
                self._archive.close()
            self._archive, self._version = ZipFile(self._path), version
        return self._archive


def lead_to_first_page() -> Reply:
    """Send a reader from ``/docs`` to ``/docs/``: links in the pages are relative."""
    return Reply(MOVED, b"", OTHER, {"Location": "docs/"})
