"""Builds the authorization server."""

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import has_oauth
from mailcheck.web.oauth.server import OAuthServer, OAuthSettings
from mailcheck.web.site.application import Application
from mailcheck.web.site.requests import ClientAddresses


def oauth_settings(daemon: Daemon) -> OAuthSettings:
    """Return whether people can connect agents by OAuth, and the URLs for it."""
    return OAuthSettings(has_oauth(daemon.runtime.config), daemon.runtime.urls)


def build_oauth(daemon: Daemon, addresses: ClientAddresses) -> Application:
    """Build the endpoints of the authorization server."""
    accounts = daemon.accounts
    server = OAuthServer(
        oauth_settings(daemon),
        accounts.oauth_clients,
        accounts.grants,
        accounts.attempts,
        daemon.runtime.clients,
        outcomes=accounts.oauth_outcomes,
    )
    return Application([server.door()], addresses, daemon.runtime.now)
