"""Clients that generators write from the OpenAPI document: a sign-up with each of them.

A program in ``generated_clients/`` creates an address, sends a mail to it, waits for it, prints its
code and link, and deletes it.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.servers.daemon import API, HOST, Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "generated_clients"
INSTALLED = CHECKOUT / ".venv-generators"
DEADLINE = 300.0  # seconds, to generate and to compile
MAIL = (
    "From: shop@example.com\r\nTo: you@example.com\r\nSubject: Welcome\r\n\r\n"
    "Your code is 482913. Or click https://shop.example.com/confirm?code=482913\r\n"
)
FOUND = "482913 https://shop.example.com/confirm?code=482913 true"


@pytest.fixture(scope="module")
def description(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The OpenAPI document of a daemon, as a file."""
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    with urlopen(f"http://{HOST}:{shared_daemon.http_port}{API}/openapi.json", timeout=60) as found:
        path.write_bytes(found.read())
    return path


def run(folder: Path, *command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end, and return its output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def openapi_generator(folder: Path, description: Path, language: str) -> None:
    """Generate a client with openapi-generator."""
    generator = INSTALLED / "bin" / "openapi-generator-cli"
    words = ("-i", description, "-g", language, "-o", folder / "generated")
    run(folder, generator, "generate", *words)


def with_python(folder: Path, description: Path) -> tuple[str, ...]:
    """Generate the client of openapi-python-client, and return the command that uses it."""
    generator = INSTALLED / "bin" / "openapi-python-client"
    words = ("--path", description, "--output-path", folder / "generated", "--meta", "none")
    run(folder, generator, "generate", *words)
    shutil.copy(PROGRAMS / "sign_up.py", folder)
    return str(INSTALLED / "bin" / "python"), "sign_up.py"


def with_typescript(folder: Path, description: Path) -> tuple[str, ...]:
    """Generate types, compile the program with them, and return the command that runs it."""
    modules = CHECKOUT / "node_modules"
    (folder / "node_modules").symlink_to(modules)
    (folder / "package.json").write_text('{"type": "module"}')
    run(folder, modules / ".bin" / "openapi-typescript", description, "-o", "generated.d.ts")
    for name in ("sign_up.ts", "run.mjs"):
        shutil.copy(PROGRAMS / name, folder)
    compiler = ("--strict", "--target", "es2022", "--module", "esnext", "--skipLibCheck")
    run(folder, modules / ".bin" / "tsc", *compiler, "--moduleResolution", "bundler", "sign_up.ts")
    return "node", "run.mjs"


def with_go(folder: Path, description: Path) -> tuple[str, ...]:
    """Generate the client for Go, compile the program, and return the command that runs it."""
    openapi_generator(folder, description, "go")
    generated = folder / "generated"
    shutil.rmtree(generated / "test")
    # Debian's Go is older than the version in the generated file, and compiles the client too.
    (generated / "go.mod").write_text("module mailcheck.example/generated\n\ngo 1.19\n")
    shutil.copy(PROGRAMS / "sign_up.go", folder)
    (folder / "go.mod").write_text(
        "module mailcheck.example/program\n\ngo 1.19\n\n"
        "require mailcheck.example/generated v0.0.0\n"
        "replace mailcheck.example/generated => ./generated\n"
    )
    run(folder, "go", "build", "-o", "sign_up", environment={"GOFLAGS": "-mod=mod"})
    return (str(folder / "sign_up"),)


def with_php(folder: Path, description: Path) -> tuple[str, ...]:
    """Generate the client for PHP, and return the command that uses it."""
    openapi_generator(folder, description, "php")
    shutil.copy(PROGRAMS / "sign_up.php", folder)
    return "php", "sign_up.php"


LANGUAGES: Mapping[str, Callable[[Path, Path], tuple[str, ...]]] = {
    "Python": with_python,
    "TypeScript": with_typescript,
    "Go": with_go,
    "PHP": with_php,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_generated_client_gets_its_mail(
    language: str, description: Path, shared_daemon: Daemon, tmp_path: Path
) -> None:
    """A client generated from the document compiles, and a sign-up gets its code and link."""
    command = LANGUAGES[language](tmp_path, description)
    environment = {
        "MAILCHECK_API": f"http://{HOST}:{shared_daemon.http_port}{API}",
        "MAILCHECK_API_KEY": shared_daemon.key,
        "SMTP_HOST": HOST,
        "SMTP_PORT": str(shared_daemon.smtp_port),
        "MAIL": MAIL,
    }
    assert run(tmp_path, *command, environment=environment).strip().lower() == FOUND
