"""Builds the APIs of mail providers."""

from mailcheck.api.urls import PROVIDERS_PATH
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import body_limits, connection_limits, public_url
from mailcheck.assembly.doors.access import build_access, client_addresses, posted_size
from mailcheck.operations.inbox.submit_mail import SubmitMail
from mailcheck.web.providers.catalogue import PROVIDERS
from mailcheck.web.providers.conversion import Conversion
from mailcheck.web.providers.doors import Providers, Repeats
from mailcheck.web.site.access_control import AccessControl
from mailcheck.web.site.application import Application
from mailcheck.web.site.requests import ClientAddresses
from mailcheck.web.site.server import BoundedSite


def build_providers(
    daemon: Daemon, access: AccessControl, addresses: ClientAddresses, base: str = PROVIDERS_PATH
) -> Application:
    """Build the APIs of mail providers below a path."""
    runtime, config = daemon.runtime, daemon.runtime.config
    submit = SubmitMail(
        daemon.receiver,
        daemon.journals["submission"],
        runtime.reactor,
        config.smtp.max_message_size,
    )
    providers = Providers(
        providers=PROVIDERS,
        base=base,
        access=access,
        submit=submit,
        read=daemon.inbox.read,
        conversion=Conversion(runtime.workers.requests),
        repeats=Repeats(runtime.persistent_state.memory),
        domain=config.inbox.domain,
        random_bytes=runtime.clocks.random_bytes,
        received=daemon.inbound.fetch,
        confirm=daemon.inbound.operations.routes.confirm,
        url=f"{public_url(config)}{PROVIDERS_PATH}",
    )
    return Application(providers.doors(), addresses, runtime.now)


def build_provider_site(daemon: Daemon) -> BoundedSite:
    """Build the site for SDKs that accept only a host: it has the paths of all providers."""
    runtime, config = daemon.runtime, daemon.runtime.config
    addresses = client_addresses(daemon)
    access = build_access(daemon, addresses)
    return BoundedSite(
        build_providers(daemon, access, addresses, ""),
        connection_limits(config),
        addresses,
        runtime.reactor,
        runtime.clients,
        bodies=body_limits({b"/": posted_size(config.smtp.max_message_size)}, runtime.memory),
        buffers=daemon.responses,
    )
