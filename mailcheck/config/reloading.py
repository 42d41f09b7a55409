"""Merges a configuration that was read again into that of a running daemon."""

from typing import NamedTuple

from msgspec.structs import replace

from mailcheck.config.options import Config, options_of
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import find_problem


class Merged(NamedTuple):
    """A configuration that a running daemon can use.

    ``changed`` are the changed options that it has, and ``waiting`` those that need a restart and
    are still as before. Both are written as ``[section] name``.
    """

    config: Config
    changed: tuple[str, ...]
    waiting: tuple[str, ...]


def merge_config(current: Config, read: Config) -> Merged:
    """Return the current configuration with those changes that need no restart.

    :raises ConfigError: they are valid only together with a change that needs one.
    """
    merged, changed, waiting = current, [], []
    for section in Config.__struct_fields__:
        old, new = getattr(current, section), getattr(read, section)
        values = {}
        for option in options_of(old):
            value = getattr(new, option.name)
            if value == getattr(old, option.name):
                continue
            if option.described.is_reloadable:
                values[option.name] = value
                changed.append(named(section, option.name))
            else:
                waiting.append(named(section, option.name))
        merged = replace(merged, **{section: replace(old, **values)})
    problem = find_problem(merged) if waiting else None
    if problem is not None:
        section, name, text = problem
        raise ConfigError(f"{named(section, name)} {text}; restart the daemon for all changes")
    return Merged(merged, tuple(changed), tuple(waiting))


def named(section: str, option: str) -> str:
    """Return an option as messages write it."""
    return f"[{section}] {option}"
