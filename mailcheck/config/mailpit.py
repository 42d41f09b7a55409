"""The environment that images of Mailpit are started with, as options of mailcheck."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mailcheck.config.reading import ConfigError, variable_name
from mailcheck.core.errors import cause_of

PREFIX = "MP_"
EVERYWHERE = "0.0.0.0"  # noqa: S104
"""The address on which containers listen. Only private clients are accepted there."""

DEFAULTS: Mapping[tuple[str, str], str] = {
    ("mailpit", "listen"): f"{EVERYWHERE}:8025",
    ("mailpit", "smtp_listen"): f"{EVERYWHERE}:1025",
    ("accounts", "bootstrap"): "true",
}
"""The options that ``mailcheck serve --like mailpit`` sets."""

HOURS = {"h": 1, "d": 24}
_AGE = re.compile(r"([1-9]\d{0,4})([hd])")
_HASHES = ("$2", "{SHA}", "$apr1$", "$5$", "$6$")
_PORT = re.compile(r":\d+")


class Translated(NamedTuple):
    """Variables of mailcheck, and the names of those of Mailpit that have no effect here."""

    variables: dict[str, str]
    ignored: list[str]


def translate_environment(environment: Mapping[str, str]) -> Translated:
    """Return the variables of mailcheck for those of Mailpit.

    A variable of mailcheck that is set already is kept.

    :raises ConfigError: a value has no counterpart, or a file cannot be read.
    """
    wanted = dict(DEFAULTS)
    ignored = []
    for name, value in sorted(environment.items()):
        if not name.startswith(PREFIX) or not value:
            continue
        read = _READERS.get(name)
        if read is None:
            ignored.append(name)
        else:
            wanted.update(read(name, value))
    variables = {variable_name(*option): value for option, value in wanted.items()}
    return Translated(
        {name: value for name, value in variables.items() if not _is_set(name, environment)},
        ignored,
    )


def _is_set(name: str, environment: Mapping[str, str]) -> bool:
    return name in environment or f"{name}_FILE" in environment


Options = Iterator[tuple[tuple[str, str], str]]


def _address(option: str) -> Callable[[str, str], Options]:
    def read(_: str, value: str) -> Options:
        address = f"{EVERYWHERE}{value}" if _PORT.fullmatch(value) else value
        yield ("mailpit", option), address

    return read


def _passwords(option: str) -> Callable[[str, str], Options]:
    def read(name: str, value: str) -> Options:
        pairs = value.split()
        if name.endswith("_FILE"):
            try:
                pairs = Path(value).read_text("utf-8").split()
            except (OSError, UnicodeDecodeError) as error:
                why = cause_of(error)
                raise ConfigError(f"{name}: the file {value} cannot be read: {why}") from None
        for pair in pairs:
            user, colon, password = pair.partition(":")
            if not colon or password.startswith(_HASHES):
                raise ConfigError(
                    f"{name}: write user:password without a hash, since clients send the password "
                    f"with each request, and slow hashes would delay all; got {user[:40]}:..."
                )
        yield ("mailpit", option), " ".join(pairs)

    return read


def _number(section: str, option: str) -> Callable[[str, str], Options]:
    def read(_: str, value: str) -> Options:
        if value != "0":  # no limit of Mailpit's own
            yield (section, option), value

    return read


def _certificate(_: str, value: str) -> Options:
    # With sans: and names, Mailpit signs a certificate of its own.
    yield ("smtp", "certificate"), "self-signed" if value.startswith("sans:") else value


def _private_key(_: str, value: str) -> Options:
    yield ("smtp", "private_key"), value


def _age(name: str, value: str) -> Options:
    match = _AGE.fullmatch(value)
    if match is None:
        raise ConfigError(f"{name}: write hours or days, like 12h or 3d; got {value!r}")
    yield ("inbox", "retention_hours"), str(int(match[1]) * HOURS[match[2]])


def _database(_: str, value: str) -> Options:
    yield ("storage", "url"), f"sqlite:{value}"


def _switch(section: str, option: str, on: str, off: str) -> Callable[[str, str], Options]:
    def read(_: str, value: str) -> Options:
        yield (section, option), on if value.lower() in ("1", "true", "yes", "on") else off

    return read


def _web_root(_: str, value: str) -> Options:
    path = value.strip("/")
    yield ("mailpit", "web_root"), f"/{path}" if path else ""


def _nothing(_: str, __: str) -> Options:
    """Set nothing: what the variable asks for is always so."""
    return iter(())


_READERS: Mapping[str, Callable[[str, str], Options]] = {
    "MP_UI_BIND_ADDR": _address("listen"),
    "MP_SMTP_BIND_ADDR": _address("smtp_listen"),
    "MP_WEBROOT": _web_root,
    "MP_UI_AUTH": _passwords("ui_password"),
    "MP_UI_AUTH_FILE": _passwords("ui_password"),
    "MP_SMTP_AUTH": _passwords("smtp_password"),
    "MP_SMTP_AUTH_FILE": _passwords("smtp_password"),
    "MP_SMTP_AUTH_ACCEPT_ANY": _nothing,
    "MP_SMTP_AUTH_ALLOW_INSECURE": _switch("smtp", "auth_without_tls", "always", "private"),
    "MP_SMTP_TLS_CERT": _certificate,
    "MP_SMTP_TLS_KEY": _private_key,
    "MP_MAX_MESSAGES": _number("inbox", "max_messages"),
    "MP_MAX_AGE": _age,
    "MP_DATABASE": _database,
    "MP_DATA_FILE": _database,
    "MP_ENABLE_CHAOS": _switch("inbox", "faults", "true", "false"),
    "MP_SMTP_MAX_RECIPIENTS": _number("smtp", "max_recipients"),
    "MP_DISABLE_VERSION_CHECK": _nothing,
}
