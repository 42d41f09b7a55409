"""The word tables of this folder, read once when they are first needed."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load_table(file_name: str) -> dict[str, Any]:
    """Read a TOML file that lies beside this module."""
    return tomllib.loads(files(__package__).joinpath(file_name).read_text("utf-8"))
