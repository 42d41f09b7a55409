"""The door of the REST API: strict requests, and errors as JSON."""

from collections.abc import Sequence
from typing import Any

from mailcheck.api.requests.parsing import NoParameters
from mailcheck.api.urls import API_PATH
from mailcheck.web.api.calls import Route, make_route
from mailcheck.web.api.description import DESCRIPTION, DOCUMENT_PATH, ApiDescription
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Door, Sent
from mailcheck.web.site.replies import Reply, write_error


def make_api(routes: Sequence[Route[Any]], description: ApiDescription) -> Door:
    """Return the door of the API. The description is a route too, which needs no key."""

    async def describe(call: Call[NoParameters]) -> Reply:
        return description.reply(call.http, call.urls)

    document = make_route("GET", DOCUMENT_PATH, describe, DESCRIPTION, costs.FREE)
    return Door(
        "api",
        "",
        API_PATH,
        [*routes, document],
        read_strict,
        write_error=write_error,
        is_exact=True,
    )


def read_strict(route: Any, sent: Sent) -> Any:
    """Return the request of a route. The query of an open route is ignored.

    :raises InvalidParameter: a parameter is unknown, missing or invalid.
    """
    if route.is_open:
        return NoParameters()
    return route.operation.read(sent.query, sent.body)
