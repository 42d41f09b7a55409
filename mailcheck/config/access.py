"""How people and programs reach a daemon, as its configuration says."""

from mailcheck.config.options import Config
from mailcheck.core.network_addresses import ListenAddress, parse_listen_address


def daemon_url(config: Config, listens: ListenAddress | None = None) -> str:
    """Give the address of the pages and the API.

    :param listens: where the daemon listens first, where that is known better than configured.
    """
    first = listens or parse_listen_address(config.web.listen[0])
    return config.web.public_url or first.url or "http://127.0.0.1"
