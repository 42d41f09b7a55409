"""Build the package of npm, ``mailcheck-client``, in ``dist/``, and print its path.

    python -m scripts.build_npm [FOLDER]

It contains the client libraries that the daemon serves, and what is in ``npm/`` for test runners.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES, as_commonjs

ROOT = Path(__file__).parents[1]
SOURCE, BUILD = ROOT / "npm", ROOT / "build" / "npm"
IN_COMMONJS = ("cypress.mjs", "cypress.d.mts")
"""Modules that a configuration in CommonJS loads too."""


def build(folder: Path, version: str) -> None:
    """Write the content of the package to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    for name, library in CLIENT_LIBRARIES.items():
        if not name.endswith(".py"):
            (folder / name).write_bytes(library.read())
    for name in IN_COMMONJS:
        text = (SOURCE / name).read_text("utf-8")
        script = as_commonjs(text).replace('.mjs"', '.cjs"') if name.endswith(".mjs") else text
        (folder / name.replace(".m", ".c")).write_text(script, "utf-8")
    manifest = json.loads((SOURCE / "package.json").read_text("utf-8"))
    text = json.dumps({**manifest, "version": version}, indent=2)
    (folder / "package.json").write_text(f"{text}\n", "utf-8")


def pack(folder: Path, destination: Path) -> Path:
    """Pack a folder with npm, and return the path of the package."""
    destination.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", "--pack-destination", str(destination)]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return destination / done.stdout.strip()


def main() -> None:
    """Build the package with the version of this build."""
    version = subprocess.run(
        ["/bin/bash", "scripts/build-version"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    build(BUILD, version.stdout.strip())
    print(pack(BUILD, Path(*sys.argv[1:2] or [ROOT / "dist"])))


if __name__ == "__main__":
    main()
