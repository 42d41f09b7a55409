"""Renders `etc/mailcheck.toml`: all options with their defaults, commented out."""

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from msgspec import Struct

from mailcheck.config.options import Config, options_of
from mailcheck.config.reading import FILE_SUFFIX, variable_name

_HEAD = """\
# The configuration of mailcheck. Every option is shown with its default value;
# remove the # to change one. Each option can also be set by the environment
# variable that is named after it: a TOML value, a plain word, or
# comma-separated words. An unknown option or invalid value is an error.
# `mailcheck reload` applies changes of reloadable options. Others need a restart.
"""


def render_example() -> str:
    """Return the text of the example file."""
    parts = [_HEAD]
    config = Config()
    for section in Config.__struct_fields__:
        options = getattr(config, section)
        parts.append(f"\n[{section}]\n# {type(options).__doc__}\n")
        for option in options_of(options):
            text = option.described.text
            if option.described.is_secret:
                text += f" {option.name}{FILE_SUFFIX} names a file that holds it."
            if option.described.is_reloadable:
                text += " (reloadable)"
            parts.extend(f"# {line}\n" for line in ["", *wrap(text, 92)])
            value = _render(getattr(options, option.name))
            parts.append(f"#{option.name} = {value}  # {variable_name(section, option.name)}\n")
            if option.described.tables is not None:
                parts.extend(_list_options(f"{section}.{option.name}", option.described.tables))
    return "".join(parts).replace("# \n", "\n")


def _list_options(name: str, kind: type[Struct]) -> Iterator[str]:
    """Describe the options of a table, without a line that could be uncommented by itself."""
    yield f"#\n# Options of a table [[{name}]] with their defaults:\n"
    for option in options_of(kind):
        twin = f", or {option.name}{FILE_SUFFIX}" if option.described.is_secret else ""
        yield f"#\n#   {option.name} = {_render(option.default)}{twin}\n"
        yield from (f"#     {line}\n" for line in wrap(option.described.text, 88))


def _render(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(json.dumps(item) for item in value) + "]"
    return json.dumps(value)
