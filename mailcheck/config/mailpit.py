"""The environment that images of Mailpit are started with, as options of mailcheck."""

import re
from collections.abc import Callable, Mapping
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


Translate = Callable[[str, str], str | None]
"""Returns the value of an option from the name and the value of a variable; `None`: its default.

:raises ConfigError: the value has no counterpart.
"""


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
        if name not in _ROWS:
            ignored.append(name)
        elif (row := _ROWS[name]) is not None:
            section, option, translate = row
            translated = translate(name, value)
            if translated is not None:
                wanted[section, option] = translated
    variables = {variable_name(*option): value for option, value in wanted.items()}
    return Translated(
        {name: value for name, value in variables.items() if not _is_set(name, environment)},
        ignored,
    )


def _is_set(name: str, environment: Mapping[str, str]) -> bool:
    return name in environment or f"{name}_FILE" in environment


def _address(_: str, value: str) -> str:
    return f"{EVERYWHERE}{value}" if _PORT.fullmatch(value) else value


def _passwords(name: str, value: str) -> str:
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
    return " ".join(pairs)


def _limit(_: str, value: str) -> str | None:
    return None if value == "0" else value  # no limit of Mailpit's own


def _certificate(_: str, value: str) -> str:
    # With sans: and names, Mailpit signs a certificate of its own.
    return "self-signed" if value.startswith("sans:") else value


def _as_it_is(_: str, value: str) -> str:
    return value


def _age(name: str, value: str) -> str:
    match = _AGE.fullmatch(value)
    if match is None:
        raise ConfigError(f"{name}: write hours or days, like 12h or 3d; got {value!r}")
    return str(int(match[1]) * HOURS[match[2]])


def _database(_: str, value: str) -> str:
    return f"sqlite:{value}"


def _switch(on: str, off: str) -> Translate:
    return lambda _, value: on if value.lower() in ("1", "true", "yes", "on") else off


def _web_root(_: str, value: str) -> str:
    path = value.strip("/")
    return f"/{path}" if path else ""


_ROWS: Mapping[str, tuple[str, str, Translate] | None] = {
    "MP_UI_BIND_ADDR": ("mailpit", "listen", _address),
    "MP_SMTP_BIND_ADDR": ("mailpit", "smtp_listen", _address),
    "MP_WEBROOT": ("mailpit", "web_root", _web_root),
    "MP_UI_AUTH": ("mailpit", "ui_password", _passwords),
    "MP_UI_AUTH_FILE": ("mailpit", "ui_password", _passwords),
    "MP_SMTP_AUTH": ("mailpit", "smtp_password", _passwords),
    "MP_SMTP_AUTH_FILE": ("mailpit", "smtp_password", _passwords),
    "MP_SMTP_AUTH_ACCEPT_ANY": None,
    "MP_SMTP_AUTH_ALLOW_INSECURE": ("smtp", "auth_without_tls", _switch("always", "private")),
    "MP_SMTP_TLS_CERT": ("smtp", "certificate", _certificate),
    "MP_SMTP_TLS_KEY": ("smtp", "private_key", _as_it_is),
    "MP_MAX_MESSAGES": ("inbox", "max_messages", _limit),
    "MP_MAX_AGE": ("inbox", "retention_hours", _age),
    "MP_DATABASE": ("storage", "url", _database),
    "MP_DATA_FILE": ("storage", "url", _database),
    "MP_ENABLE_CHAOS": ("inbox", "faults", _switch("true", "false")),
    "MP_SMTP_MAX_RECIPIENTS": ("smtp", "max_recipients", _limit),
    "MP_DISABLE_VERSION_CHECK": None,
}
"""The option of each variable, and the function that translates its value; `None` for a variable
that asks for what is always so."""
