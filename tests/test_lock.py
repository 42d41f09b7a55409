"""requirements.lock: the pinned dependencies of images and packages."""

import configparser
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.table import rows

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)
}


def required() -> list[Requirement]:
    """Return the requirements of ``setup.cfg``, with those of the shell inside the daemon."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    texts = setup["options"]["install_requires"], setup["options.extras_require"]["manhole"]
    lines = "\n".join(texts).splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


@rows(*required())
def test_every_requirement_is_locked(requirement: Requirement) -> None:
    """The lock file has a version of each requirement that setup.cfg allows; else `make lock`."""
    version = PINS.get(canonicalize_name(requirement.name), "")
    assert version in requirement.specifier, f"{requirement} but {version}: run make lock"


def test_every_pin_has_a_hash() -> None:
    """Each pinned version has at least one hash, and the file names no index."""
    entries = re.split(r"^(?=\w)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PINS)
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in LOCK
