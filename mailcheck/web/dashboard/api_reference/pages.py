"""The REST API as a page to read, rendered from the very document that programs get."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup

from mailcheck.api.urls import API_PAGE_PATH, API_PATH, PublicUrls
from mailcheck.web.api.description import DOCUMENT_PATH, MAX_KEPT, ApiDescription
from mailcheck.web.dashboard.api_reference.answers import ANSWERS_PATH
from mailcheck.web.dashboard.api_reference.view import (
    list_limits,
    view_groups,
    view_prose,
    view_responses,
    view_schemas,
)
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site.replies import Reply


class ApiPages:
    """The one page; it is open to all."""

    def __init__(
        self, description: ApiDescription, answered: frozenset[str], renderer: Renderer
    ) -> None:
        """``answered`` names the calls that can be tried with the data of who is signed in."""
        self._answered = answered
        self._description = description
        self._renderer = renderer
        self._calls: dict[PublicUrls, Markup] = {}

    def pages(self) -> list[Page]:
        """List the pages."""
        return [Page("GET", API_PAGE_PATH, self.show, is_open=True)]

    async def show(self, visit: Visit) -> Reply:
        """GET /api."""
        document = self._description.document(visit.urls)
        return self._renderer.page(
            visit,
            "api.html",
            prose=view_prose(document),
            base_url=visit.urls.base_url,
            document_url=visit.link(API_PATH + DOCUMENT_PATH),
            calls=self._shown(visit.urls, document),
        )

    def _shown(self, urls: PublicUrls, document: Mapping[str, Any]) -> Markup:
        """Render the calls; it takes a while, and they are the same for every visitor."""
        if urls not in self._calls:
            if len(self._calls) >= MAX_KEPT:
                self._calls.clear()
            self._calls[urls] = self._renderer.part(
                "api_calls.html",
                groups=view_groups(document),
                shared=view_responses(document),
                schemas=view_schemas(document),
                limits=list_limits(document),
                answered=self._answered,
                answers_path=urlsplit(urls.public_url).path + ANSWERS_PATH,
            )
        return self._calls[urls]
