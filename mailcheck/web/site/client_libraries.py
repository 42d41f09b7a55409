"""The files below ``/clients/``: the client libraries, and what describes the MCP server.

CommonJS is made from the JavaScript module.
"""

import json
import re
from collections.abc import Callable, Mapping
from importlib.resources import files

from msgspec import Struct

from mailcheck.core.version import installed_version

_IMPORT = re.compile(r"^import (\{.+\}) from (\".+\");$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:class|function) (\w+))", re.MULTILINE)


def as_commonjs(module: str) -> str:
    """Convert a module with named imports and exports to CommonJS, which Jest loads."""
    names = ", ".join(found[1] for found in _EXPORT.finditer(module))
    script = _IMPORT.sub(r"const \1 = require(\2);", _EXPORT.sub("", module))
    return f'"use strict";\n\n{script}\nmodule.exports = {{ {names} }};\n'


def _with_version(description: str) -> str:
    """Return the description of the MCP server for registries, with the version of this daemon."""
    return json.dumps({**json.loads(description), "version": installed_version()}, indent=2) + "\n"


def _unchanged(source: str) -> str:
    return source


class ClientLibrary(Struct, frozen=True):
    """A library as it is served. ``file`` is its source in ``mailcheck/clients/``."""

    file: str
    media_type: str
    convert: Callable[[str], str] = _unchanged

    def read(self) -> bytes:
        """Return the contents."""
        return self.convert(
            files("mailcheck.clients").joinpath(self.file).read_text("utf-8")
        ).encode()


_JAVASCRIPT, _TYPESCRIPT = "text/javascript; charset=utf-8", "text/x-typescript; charset=utf-8"

CLIENT_LIBRARIES: Mapping[str, ClientLibrary] = {
    "mailcheck_client.py": ClientLibrary("mailcheck_client.py", "text/x-python; charset=utf-8"),
    "mailcheck.mjs": ClientLibrary("mailcheck.mjs", _JAVASCRIPT),
    "mailcheck.d.mts": ClientLibrary("mailcheck.d.mts", _TYPESCRIPT),
    "mailcheck.cjs": ClientLibrary("mailcheck.mjs", _JAVASCRIPT, as_commonjs),
    "mailcheck.d.cts": ClientLibrary("mailcheck.d.mts", _TYPESCRIPT),
    "server.json": ClientLibrary("server.json", "application/json", _with_version),
    "SKILL.md": ClientLibrary("receive-test-mail/SKILL.md", "text/markdown; charset=utf-8"),
}
"""The libraries by their names in URLs."""
