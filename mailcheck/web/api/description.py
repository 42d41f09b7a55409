"""The description of the API for programs: ``{base_url}/openapi.json``, made from the routes."""

import gzip
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.openapi.document import (
    DocumentMetadata,
    DocumentWriter,
    OpenApiDocument,
    load_examples,
)
from mailcheck.api.openapi.operations import DescribedOperation, Operation, Response, json_body
from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.shapes import JsonObject, Schema, dump_json, string_schema
from mailcheck.api.urls import PublicUrls
from mailcheck.core.version import installed_version
from mailcheck.web.api.calls import COMMON_ERRORS, LIMIT_HEADERS, TAGS, UNROUTED_ERRORS, Route
from mailcheck.web.site.replies import VARY, Reply, accepts_gzip
from mailcheck.web.site.requests import header_values

DOCUMENT_PATH = "/openapi.json"

MAX_KEPT = 8
"""Documents that are kept: one for each name under which clients reach us."""

PROSE = """\
mailcheck tells whether mail will arrive, and hands developers the mail their software sends.

* **Key.** Every request needs an API key, as `Authorization: Bearer <key>` or `X-API-Key: <key>`. \
Keys are made on the dashboard; they are secret and must not be used in code that runs in a browser.
* **Parameters.** A query parameter that a route does not know is 400, and the nearest known one \
is named: a filter with a misprint must not match everything.
* **Limits.** A key has, unless its operator says otherwise, 60 requests a minute and 1,000 a day. \
Every answer says in `X-RateLimit-Remaining` and `X-RateLimit-Daily-Remaining` what is left. \
Beyond: 429, with `Retry-After`.
* **Errors** are `{"error": "<one readable sentence>"}`. A path that leads nowhere is 404, a \
method that a path does not take 405 with `Allow`.
* **Timestamps** are ISO 8601, UTC, with milliseconds. **Cursors** are opaque: pass them back.
* **Compatibility.** Fields, parameters and routes are added without notice; types and \
meanings do not change within v1.
"""

_ETAG: dict[str, Schema] = {
    "ETag": string_schema("changes with the document; send it back as If-None-Match"),
    "Cache-Control": string_schema("keep it, and ask whether it is still good"),
}

DESCRIPTION = Operation(
    "getDescription",
    "Description",
    "Read this description",
    "OpenAPI 3.1, as JSON. It needs no key and costs no request; the headers say what is left "
    "for requests without a key from the client's address.",
    {
        200: Response(
            "The document.",
            [json_body("", OpenApiDocument)],
            _ETAG,
        ),
        304: Response("It is still the one of If-None-Match.", headers=_ETAG),
    },
    NoParameters,
    needs_key=False,
)


class _Written(Struct, frozen=True):
    document: JsonObject
    body: bytes
    compressed: bytes
    tag: str


class ApiDescription:
    """Describes the routes that it is given, and itself."""

    def __init__(self, routes: Sequence[Route[Any]]) -> None:
        self._routes = routes
        self._writer = DocumentWriter(
            DocumentMetadata(
                title="mailcheck",
                version=installed_version(),
                description=PROSE,
                tags=TAGS,
                common_errors=COMMON_ERRORS,
                unrouted_errors=UNROUTED_ERRORS,
                headers=LIMIT_HEADERS,
                examples=load_examples(),
            )
        )
        self._written: dict[PublicUrls, _Written] = {}

    def document(self, urls: PublicUrls) -> JsonObject:
        """Give the document for who reaches the service under these addresses."""
        return self._for(urls).document

    def reply(self, request: Request, urls: PublicUrls) -> Reply:
        """Give the document as a response, or say that the client has it (RFC 9110 13.1.2)."""
        written = self._for(urls)
        headers = {"ETag": written.tag, "Cache-Control": "no-cache", **VARY}
        known = ",".join(header_values(request, b"If-None-Match")).split(",")
        is_known = any(tag.strip() in (written.tag, "*") for tag in known)
        body = written.body
        if accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
            body = written.compressed
        # A 304 is sent without its body; the length is that of the 200 (RFC 9110 8.6).
        status = 304 if is_known else 200
        return Reply(status, body, "application/json; charset=utf-8", headers)

    def _for(self, urls: PublicUrls) -> _Written:
        if urls not in self._written:
            if len(self._written) >= MAX_KEPT:
                self._written.clear()
            self._written[urls] = self._write(urls)
        return self._written[urls]

    @cached_property
    def _rest(self) -> tuple[JsonObject, bytes]:
        """Give what all documents have in common, and how its text goes on behind their heads."""
        described = [route.described for route in self._routes]
        described.append(DescribedOperation("GET", DOCUMENT_PATH, DESCRIPTION))
        rest = self._writer.write_rest(described)
        return rest, dump_json(rest)[1:]

    def _write(self, urls: PublicUrls) -> _Written:
        head = self._writer.write_head(urls.base_url, urls.api_page_url)
        rest, text = self._rest
        body = dump_json(head)[:-1] + b"," + text
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
        return _Written({**head, **rest}, body, gzip.compress(body, 6, mtime=0), tag)
