"""Executes the Dockerfile without a container engine.

    image = build_image(CHECKOUT / "Dockerfile", sources, folder)
    image.environment, image.command(*image.entry_point, *image.default_arguments)

The steps run one after another, with paths below a folder instead of ``/``, and this machine's
Python instead of the base image's. As root, commands run as the image's user. The user may read
everything here, since the Python may be in root's home, and may write its own files.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BUILD_DEADLINE = 300.0  # seconds
PLACES = ("/src", "/wheels", "/opt/mailcheck", "/var/lib/mailcheck")
"""The paths of the image in addition to its base."""

_PLACE = re.compile(rf"(?<![\w./-])({'|'.join(PLACES)})(?![\w-])")
_BASE = re.compile(r"python:3\.\d+-slim")


@dataclass(frozen=True)
class Instruction:
    """One instruction with its lines joined: ``FROM``, and ``python:3.13-slim AS build``."""

    name: str
    text: str


@dataclass
class Image:
    """The result of the last stage; its paths are below the folder."""

    root: Path
    environment: dict[str, str]
    folder: str = "/"
    user: str = "0:0"
    volumes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    entry_point: list[str] = field(default_factory=list)
    default_arguments: list[str] = field(default_factory=list)
    health_options: dict[str, str] = field(default_factory=dict)
    health_command: list[str] = field(default_factory=list)

    def within(self, text: str) -> str:
        """Return a text with the image's paths below the folder."""
        return _PLACE.sub(lambda path: f"{self.root}{path[1]}", text)

    def path(self, path: str) -> Path:
        """Return the real path of a path in the image."""
        return self.root / path.lstrip("/")

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs as the image's user, if the tests may switch users."""
        if os.geteuid() != 0:
            return list(arguments)
        user, _, group = self.user.partition(":")
        return [
            *("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"),
            *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
            *arguments,
        ]

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the image as its user."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.path(self.folder),
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=BUILD_DEADLINE,
            check=False,
        )


def read_dockerfile(text: str) -> list[Instruction]:
    """Parse the instructions, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def build_image(
    dockerfile: Path, sources: Path, root: Path, environment: Mapping[str, str]
) -> Image:
    """Run all steps; files that they copy come from ``sources``.

    The environment overrides the defaults of build arguments.
    """
    image = Image(root, dict(environment))
    for path in PLACES:
        image.path(path).parent.mkdir(parents=True, exist_ok=True)
    for instruction in read_dockerfile(dockerfile.read_text()):
        _STEPS[instruction.name](image, instruction.text, sources)
    return image


def _from(image: Image, text: str, sources: Path) -> None:
    base = image.environment[text.split()[0].removeprefix("$")]
    assert _BASE.fullmatch(base), text
    image.folder = "/"


def _copy(image: Image, text: str, sources: Path) -> None:
    *origins, target = text.split()
    if origins[0].startswith("--from="):
        assert origins[1:] == [target]  # it exists already: the stages share a folder
        return
    folder = image.path(os.path.join(image.folder, target))  # noqa: PTH118
    if target.endswith("/"):
        folder.mkdir(parents=True, exist_ok=True)
    for origin in origins:
        if (sources / origin).is_dir():
            shutil.copytree(sources / origin, folder)
        else:
            shutil.copy(sources / origin, folder)


def _run(image: Image, text: str, sources: Path) -> None:
    if text.startswith("useradd "):
        if os.geteuid() != 0:
            return
        text = text.replace("useradd", f"useradd --prefix {_etc(image)}", 1)
    elif text.startswith("install ") and os.geteuid() != 0:
        text = re.sub(r" --(owner|group)=\d+", "", text)
    done = subprocess.run(
        ["sh", "-euc", image.within(text)],
        cwd=image.path(image.folder),
        env=image.environment,
        capture_output=True,
        text=True,
        timeout=BUILD_DEADLINE,
        check=False,
    )
    assert done.returncode == 0, text + done.stdout + done.stderr


def _etc(image: Image) -> Path:
    """Return a folder whose ``/etc`` has no users yet, like the base image."""
    etc = image.root / "etc"
    etc.mkdir(exist_ok=True)
    for name in ("passwd", "group", "shadow", "gshadow"):
        (etc / name).touch()
    shutil.copy("/etc/login.defs", etc)
    return image.root


def _env(image: Image, text: str, sources: Path) -> None:
    for name, value in re.findall(r"(\w+)=(\S+)", text):
        expanded = re.sub(r"\$(\w+)", lambda known: image.environment[known[1]], value)
        image.environment[name] = image.within(expanded)


def _workdir(image: Image, text: str, sources: Path) -> None:
    image.folder = text
    image.path(text).mkdir(parents=True, exist_ok=True)


def _user(image: Image, text: str, sources: Path) -> None:
    image.user = text


def _volume(image: Image, text: str, sources: Path) -> None:
    image.volumes += text.split()


def _expose(image: Image, text: str, sources: Path) -> None:
    image.ports += map(int, text.split())


def _arg(image: Image, text: str, sources: Path) -> None:
    name, _, value = text.partition("=")
    image.environment.setdefault(name, value.strip('"'))


def _healthcheck(image: Image, text: str, sources: Path) -> None:
    options, _, command = text.partition(" CMD ")
    image.health_options = dict(re.findall(r"--([\w-]+)=(\S+)", options))
    image.health_command = _exec_form(command)


def _entrypoint(image: Image, text: str, sources: Path) -> None:
    image.entry_point = _exec_form(text)


def _cmd(image: Image, text: str, sources: Path) -> None:
    image.default_arguments = _exec_form(text)


def _exec_form(text: str) -> list[str]:
    words: Sequence[str] = json.loads(text)
    assert all(isinstance(word, str) for word in words), text
    return list(words)


_STEPS = {
    "FROM": _from,
    "COPY": _copy,
    "RUN": _run,
    "ENV": _env,
    "WORKDIR": _workdir,
    "USER": _user,
    "VOLUME": _volume,
    "EXPOSE": _expose,
    "ARG": _arg,
    "HEALTHCHECK": _healthcheck,
    "ENTRYPOINT": _entrypoint,
    "CMD": _cmd,
}
