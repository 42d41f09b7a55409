"""Prints `etc/mailcheck.toml`: every option, commented, at its default."""

import json
from dataclasses import fields
from textwrap import wrap
from typing import Any

from mailcheck.config.options import Config
from mailcheck.config.reading import FILE_SUFFIX, variable_name

_HEAD = """\
# The configuration of mailcheck. Every option stands here at its default;
# take the # away to change one. Each can also be set by an environment
# variable, whose name stands behind it: a TOML value, a bare word, or
# comma-separated words. What is unknown or wrong is an error that names the line.
"""


def render_example() -> str:
    """Write the example file."""
    parts = [_HEAD]
    config = Config()
    for section in fields(Config):
        options = getattr(config, section.name)
        parts.append(f"\n[{section.name}]\n# {type(options).__doc__}\n")
        for option in fields(options):
            text = option.metadata["text"]
            if option.metadata["is_secret"]:
                text += f" {option.name}{FILE_SUFFIX} names a file that holds it."
            parts.extend(f"# {line}\n" for line in ["", *wrap(text, 92)])
            value = _render(getattr(options, option.name))
            parts.append(
                f"#{option.name} = {value}  # {variable_name(section.name, option.name)}\n"
            )
    return "".join(parts).replace("# \n", "\n")


def _render(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(json.dumps(one) for one in value) + "]"
    return json.dumps(value)
