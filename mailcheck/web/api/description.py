"""The OpenAPI document at ``{base_url}/openapi.json``, generated from the routes."""

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
from mailcheck.api.openapi.operations import DescribedOperation, Operation, Response, json_response
from mailcheck.api.shapes import JsonObject, Schema, dump_json, string_schema
from mailcheck.api.urls import PublicUrls
from mailcheck.core.version import installed_version
from mailcheck.web.api.calls import COMMON_ERRORS, LIMIT_HEADERS, TAGS, UNROUTED_ERRORS, Route
from mailcheck.web.site.replies import VARY, Reply, accepts_gzip
from mailcheck.web.site.requests import header_values

DOCUMENT_PATH = "/openapi.json"

MAX_CACHED = 8
"""Maximum number of cached documents: one for each host name by which clients reach the service."""

PROSE = """\
mailcheck checks whether mail will arrive, and gives developers the mail that their software sends.

* **Key.** Every request needs an API key, as `Authorization: Bearer <key>` or `X-API-Key: <key>`. \
Create keys on the page "Keys". They are secret and must not be used in code that runs in a browser.
* **Parameters.** An unknown query parameter is answered with 400 and the nearest known name, so \
that a misspelled filter does not match everything.
* **Limits.** A key has 60 requests a minute and 1,000 a day, unless its operator changes that. \
Every response contains the number of remaining requests in `X-RateLimit-Remaining` and \
`X-RateLimit-Daily-Remaining`. Beyond the limit, the response is 429 with `Retry-After`.
* **Errors** are `{"error": "<one readable sentence>"}`. An unknown path is 404. An unsupported \
method is 405 with `Allow`.
* **Timestamps** are ISO 8601, UTC, with milliseconds. **Cursors** are opaque: pass them unchanged.
* **Compatibility.** Fields, parameters and routes are added without notice; types and \
meanings do not change within v1.
"""

_ETAG: dict[str, Schema] = {
    "ETag": string_schema("changes with the document; send it as If-None-Match"),
    "Cache-Control": string_schema("revalidate a cached document before each use"),
}

DESCRIPTION = Operation(
    "getDescription",
    (),
    "Description",
    "Get the OpenAPI document",
    "OpenAPI 3.1 as JSON. The request needs no key and is not counted. The headers contain the "
    "limits for requests without a key from the client's address.",
    answer=json_response("The document.", "", OpenApiDocument, headers=_ETAG),
    errors={304: Response("The document of If-None-Match is current.", headers=_ETAG)},
    needs_key=False,
)


class _Rendered(Struct, frozen=True):
    document: JsonObject
    body: bytes
    compressed: bytes
    tag: str


class ApiDescription:
    """Generates and caches the OpenAPI document of some routes."""

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
        self._rendered: dict[PublicUrls, _Rendered] = {}

    def document(self, urls: PublicUrls) -> JsonObject:
        """Return the document for clients that reach the service by these URLs."""
        return self._for(urls).document

    def reply(self, request: Request, urls: PublicUrls) -> Reply:
        """Return the document as a response, or 304 if the client has it (RFC 9110 13.1.2)."""
        rendered = self._for(urls)
        headers = {"ETag": rendered.tag, "Cache-Control": "no-cache", **VARY}
        known = ",".join(header_values(request, b"If-None-Match")).split(",")
        is_known = any(tag.strip() in (rendered.tag, "*") for tag in known)
        body = rendered.body
        if accepts_gzip(request):
            headers["Content-Encoding"] = "gzip"
            body = rendered.compressed
        # Twisted sends a 304 without its body. Content-Length is that of the 200 (RFC 9110 8.6).
        status = 304 if is_known else 200
        return Reply(status, body, "application/json; charset=utf-8", headers)

    def _for(self, urls: PublicUrls) -> _Rendered:
        if urls not in self._rendered:
            if len(self._rendered) >= MAX_CACHED:
                self._rendered.clear()
            self._rendered[urls] = self._render(urls)
        return self._rendered[urls]

    @cached_property
    def _rest(self) -> tuple[JsonObject, bytes]:
        """The part that all documents share, as an object and as JSON without the first brace."""
        described = [route.described for route in self._routes]
        described.append(DescribedOperation("GET", DOCUMENT_PATH, DESCRIPTION))
        rest = self._writer.write_rest(described)
        return rest, dump_json(rest)[1:]

    def _render(self, urls: PublicUrls) -> _Rendered:
        head = self._writer.write_head(urls.base_url, urls.api_page_url)
        rest, text = self._rest
        body = dump_json(head)[:-1] + b"," + text
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
        return _Rendered({**head, **rest}, body, gzip.compress(body, 6, mtime=0), tag)
