"""Addresses of Redis in the configuration."""

from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from msgspec import Struct

PORT = 6379
FORMS = "redis://[[user]:password@]host[:port][/database], rediss:// (TLS), unix:/path[?db=number]"


class RedisAddress(Struct, frozen=True):
    """A host with its port, or the path of a Unix socket. Empty credentials mean no login."""

    host: str = ""
    port: int = PORT
    path: str = ""
    is_tls: bool = False
    username: str = ""
    password: str = ""
    database: int = 0

    def __str__(self) -> str:
        """Return the address without its password, for logs."""
        database = f"/{self.database}" if self.database else ""
        if self.path:
            return f"unix:{self.path}" + (f"?db={self.database}" if self.database else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.is_tls else 'redis'}://{host}:{self.port}{database}"


def parse_redis_address(text: str) -> RedisAddress:
    """Parse an address.

    :raises ValueError: the address is invalid. The message never contains the address, since it
        may have a password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError:
        raise ValueError("has an invalid port or host") from None
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    if username and not password:
        raise ValueError("has a user without a password; write redis://user:password@host")
    if parts.scheme == "unix":
        if not parts.path.startswith("/"):
            raise ValueError("does not name a socket; write unix:/run/redis/redis.sock")
        database = _database(parts, parse_qs(parts.query).get("db", ["0"])[-1])
        return RedisAddress(
            path=parts.path, username=username, password=password, database=database
        )
    if parts.scheme not in ("redis", "rediss") or parts.hostname is None:
        raise ValueError(f"is not of the form {FORMS}")
    return RedisAddress(
        host=parts.hostname,
        port=port,
        is_tls=parts.scheme == "rediss",
        username=username,
        password=password,
        database=_database(parts, parts.path.strip("/") or "0"),
    )


def _database(parts: SplitResult, number: str) -> int:
    if not (number.isascii() and number.isdigit()) or len(number) > 5 or parts.fragment:
        raise ValueError(f"is not of the form {FORMS}")
    return int(number)
