"""Which web pages may talk to the endpoint: those of this very service.

A page elsewhere that a browser shows must not reach a daemon on the user's own
machine, by DNS rebinding for one; so the answer does not depend on the name
that the request was sent to (MCP, Streamable HTTP, "Security").
"""

from urllib.parse import urlsplit

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def find_allowed_origins(public_url: str) -> frozenset[str]:
    """List the origins of a service; one on this machine has all its names."""
    url = urlsplit(public_url)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    hosts = LOOPBACK_NAMES if host in LOOPBACK_NAMES else (host,)
    is_default = url.port in (None, _DEFAULT_PORTS.get(url.scheme))
    port = "" if is_default else f":{url.port}"
    return frozenset(f"{url.scheme}://{host}{port}" for host in hosts)
