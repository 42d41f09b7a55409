"""The URL of a daemon, derived from its configuration."""

from mailcheck.config.options import Config
from mailcheck.core.network_addresses import ListenAddress, parse_listen_address


def daemon_url(config: Config, listens: ListenAddress | None = None) -> str:
    """Return the URL of the pages and the API.

    :param listens: the first listening address, if it differs from the configured one.
    """
    first = listens or parse_listen_address(config.web.listen[0])
    return config.web.public_url or first.url or "http://127.0.0.1"
