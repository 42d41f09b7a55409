"""Opening connections to a PostgreSQL server, and what is required of the server."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn, new_type, parse_dsn, register_type

from mailcheck.core.errors import StoreAway, StoreUnavailable

CONNECT_TIMEOUT = 5
"""Seconds for a connection to a host, before the next host of the connection string is tried."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another daemon's write before replying with 451."""

STATEMENT_TIMEOUT = 8.0
"""Seconds after which the server cancels a statement. It is less than `LONGEST_CALL`, so that the
server gives up before the connection is aborted."""

LONGEST_CALL = 10.0
"""Maximum seconds for an answer. Then the connection is aborted, and the server releases its
locks."""

_SETTINGS = f"""
    SET statement_timeout = {STATEMENT_TIMEOUT * 1000:.0f};
    SET lock_timeout = {LOCK_TIMEOUT * 1000:.0f};
    SET idle_in_transaction_session_timeout = {LONGEST_CALL * 1000:.0f};
    SET jit = off
"""
"""JIT compilation of a statement takes longer than any of our statements runs."""


FIRST_VERSION = 13
"""The oldest supported version of PostgreSQL."""

_PERMANENT_FAILURES = (
    "authentication failed", "no password supplied", "does not exist", "pg_hba.conf", "certificate",
    "SSL is not enabled", "not support SSL", "not permitted", "permission denied", "invalid",
    "pooling mode",
)  # fmt: skip
"""Parts of the messages of permanent failures; libpq has no codes for them."""

BYTEA = 17
"""Object identifier of the type (``pg_type``)."""


def _as_bytes(value: Any, cursor: Any) -> bytes | None:
    return None if value is None else bytes(psycopg2.BINARY(value, cursor))


_BYTES = new_type((BYTEA,), "BYTES", _as_bytes)


def connect(url: str, settings: str = "") -> Any:
    """Open a connection; libpq's variables and files complete the URL.

    ``settings`` are additional statements to run on it.

    :raises psycopg2.Error: no host answers, or the server rejects the client.
    :raises StoreUnavailable: the URL is invalid.
    """
    try:
        given = parse_dsn(url)
    except psycopg2.ProgrammingError:
        # Without libpq's message, which quotes what may be the password.
        raise StoreUnavailable(
            "the database's URL is invalid: write special characters in it as %xx"
        ) from None
    known = {"application_name": "mailcheck", "client_encoding": "UTF8"}
    if "PGCONNECT_TIMEOUT" not in os.environ:
        known["connect_timeout"] = str(CONNECT_TIMEOUT)
    connection = psycopg2.connect(make_dsn(**{**known, **given}))
    try:
        connection.autocommit = True
        register_type(_BYTES, connection)
        with connection.cursor() as cursor:
            cursor.execute(f"{_SETTINGS};{settings}")
    except BaseException:
        connection.close()
        raise
    return connection


def connection_failure(error: psycopg2.Error) -> StoreUnavailable:
    """Return the failure of a connection attempt: `StoreAway` if a later attempt may succeed."""
    message = message_of(error)
    kind = StoreUnavailable if any(part in message for part in _PERMANENT_FAILURES) else StoreAway
    return kind(f"the database cannot be reached: {message}")


def message_of(error: psycopg2.Error) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split())


def require_version(number: int) -> None:
    """Reject a server that is too old.

    :param number: the version as libpq returns it: 130004 is 13.4, 90624 is 9.6.24.
    :raises StoreUnavailable: the message contains the version.
    """
    if number < FIRST_VERSION * 10_000:
        major, minor = divmod(number, 10_000)
        version = f"{major}.{minor}" if major > 9 else f"{major}.{minor // 100}.{minor % 100}"
        raise StoreUnavailable(
            f"the server is PostgreSQL {version}: mailcheck needs {FIRST_VERSION} or newer"
        )


def require_sessions(url: str) -> None:
    """Require that the server is new enough, and that each connection is a separate session.

    A pooler in transaction mode assigns a session to another connection after each transaction.
    Settings, prepared statements and locks are then lost or belong to another client.

    :raises StoreAway: no host answers.
    :raises StoreUnavailable: the server is too old, rejects the client, or is behind such a pooler.
    """
    with opened(url) as one, opened(url) as other:
        require_version(one.server_version)
        are_shared = _share_sessions(one, other)
    if are_shared:
        raise StoreUnavailable(
            "the pooler before the database reuses sessions after each transaction (PgBouncer: "
            "pool_mode = transaction): set pool_mode = session, or connect to PostgreSQL directly"
        )


def _share_sessions(one: Any, other: Any) -> bool:
    """Return whether two connections share sessions of the server.

    A pooler assigns any free session. Two connections may get the same one at once, or a connection
    gets another one while a transaction holds its former session.
    """
    session = _session_of(one)
    if _session_of(other) == session or _session_of(one) != session:
        return True
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            return _session_of(other) == session or _session_of(one) != session
    except psycopg2.Error:
        return True  # statement mode has no transactions


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """Open a connection for a few statements, and translate their errors.

    :raises StoreAway: no host answers.
    :raises StoreUnavailable: the server rejects the client or a statement.
    """
    try:
        with closing(connect(url)) as connection:
            yield connection
    except psycopg2.Error as error:
        raise connection_failure(error) from error


def _session_of(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((pid,),) = cursor.fetchall()
    return int(pid)
