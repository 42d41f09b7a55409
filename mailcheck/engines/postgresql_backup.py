"""Copies of a PostgreSQL database, made and checked by PostgreSQL's own programs."""

import os
import subprocess
import tempfile
from pathlib import Path

from psycopg2.extensions import parse_dsn

from mailcheck.core.errors import StoreUnavailable

_SERVICE = "mailcheck"


def dump_database(url: str, path: Path) -> None:
    """Write a database to a file with ``pg_dump --format=custom``.

    :raises StoreUnavailable: the program is missing, or it fails; the message says why.
    """
    # On a command line, all users of the machine would see the password.
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as service:
        settings = parse_dsn(url)
        lines = [f"[{_SERVICE}]", *(f"{name}={value}" for name, value in settings.items())]
        service.write("\n".join(lines) + "\n")
        service.flush()
        named = {"PGSERVICEFILE": service.name, "PGSERVICE": _SERVICE}
        if "service" in settings:
            named = {"PGSERVICE": settings["service"]}
        _run(["pg_dump", "--format=custom", "--no-password", f"--file={path}"], named)


def check_dump(path: Path) -> list[str]:
    """Return the problem that ``pg_restore`` finds when it reads the whole file, if any."""
    try:
        _run(["pg_restore", "--file=/dev/null", str(path)], {})
    except StoreUnavailable as failure:
        return [str(failure)]
    return []


def _run(command: list[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the programs are named here
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise StoreUnavailable(
            f"{command[0]} is missing: install the client programs of PostgreSQL, in the version "
            "of the server or newer (Debian: postgresql-client)"
        ) from None
    if done.returncode:
        raise StoreUnavailable(" ".join(done.stderr.split()) or f"{command[0]} failed")
