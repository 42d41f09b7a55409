"""Builds the HTTP site of a daemon."""

from functools import cache, partial

from twisted.web.server import Request

from mailcheck.api.requests.inbound import LARGEST_LETTER
from mailcheck.api.urls import (
    API_PATH,
    IMPORT_PATH,
    INBOUND_PATH,
    PAGES_WITH_FILES,
    PROJECT_PAGES_PATH,
    PROVIDERS_PATH,
)
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import body_limits, connection_limits
from mailcheck.assembly.doors.access import WebParts, build_access, client_addresses, posted_size
from mailcheck.assembly.doors.late import LateDoor, late_doors, open_dashboard
from mailcheck.assembly.doors.rest import build_api, build_routes
from mailcheck.core.domains.receiver_reports import MAX_IMPORT
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.site.application import Application
from mailcheck.web.site.public_pages import PublicPages
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import RequestUrls
from mailcheck.web.site.server import BoundedSite, Root


def build_web(daemon: Daemon) -> BoundedSite:
    """Build the HTTP site: REST and the public pages now, all other doors late."""
    runtime, config = daemon.runtime, daemon.runtime.config
    addresses = client_addresses(daemon)
    urls = RequestUrls(runtime.urls, addresses, is_configured=bool(config.web.public_url))
    access, routes = build_access(daemon, addresses), build_routes(daemon)
    parts = WebParts(daemon, urls, addresses, access, routes, description=ApiDescription(routes))
    dashboard = cache(partial(open_dashboard, parts))
    doors = late_doors(parts)
    pages = LateDoor(
        lambda: Application([dashboard().door()], addresses, runtime.now, application.paths)
    )

    async def as_page(request: Request, reply: Reply) -> Reply:
        return await dashboard().as_page(request, reply)

    public = PublicPages(lambda: daemon.heartbeat.state, daemon.reports.operations.post, as_page)
    application = Application([build_api(parts), public.door()], addresses, runtime.now)
    if config.web.preload:
        for door in {*doors.values(), pages}:
            door.open()
    return BoundedSite(
        Root(application, doors.pop("mcp"), doors, pages),
        connection_limits(config),
        addresses,
        runtime.reactor,
        runtime.clients,
        bodies=body_limits(
            {
                f"{PROVIDERS_PATH}/".encode(): posted_size(config.smtp.max_message_size),
                f"{API_PATH}{IMPORT_PATH}".encode(): MAX_IMPORT,
                f"{PROJECT_PAGES_PATH}/*{IMPORT_PATH}".encode(): MAX_IMPORT,
                **{
                    f"{PROJECT_PAGES_PATH}/*{path}".encode(): config.smtp.max_message_size
                    for path in PAGES_WITH_FILES
                },
                f"{API_PATH}{INBOUND_PATH}/".encode(): LARGEST_LETTER,
            },
            runtime.memory,
        ),
        buffers=daemon.responses,
    )
