"""nginx, Caddy and HAProxy with the configuration in ``etc/proxies``, in front of a daemon.

with running_proxy("nginx", daemon.http_port, folder) as port:
...  # HTTPS for mailcheck.example.com
"""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.servers.certificates import Authority
from tests.servers.daemon import HOST, POLL, free_ports
from tests.servers.programs import find_program

PROXIES = Path(__file__).parents[2] / "etc" / "proxies"
NAME = "mailcheck.example.com"
DEADLINE = 60.0  # seconds

FILES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "haproxy": "haproxy.cfg"}
"""The programs and their files in ``etc/proxies``."""

_PACKAGES = {"nginx": "nginx-light"}

_NGINX = """\
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    include {file};
}}
"""
_CADDY = "{{\nadmin off\nauto_https off\nstorage file_system {folder}\n}}\n"


def commands(program: str, folder: Path, web_port: int, ports: tuple[int, int]) -> list[list[str]]:
    """Write a proxy's files with other ports; return the commands that check and run it."""
    path = find_program(program, package=_PACKAGES.get(program, ""))
    plain, tls = ports
    chain, key = Authority().issue(NAME).write_to(folder)
    (folder / "haproxy.pem").write_bytes(chain.read_bytes() + key.read_bytes())
    file = folder / FILES[program]
    text = (PROXIES / file.name).read_text().replace("127.0.0.1:8080", f"{HOST}:{web_port}")
    for written, meant in (
        ("    listen [::]:443 ssl;\n", ""),
        ("    listen [::]:80;\n", ""),
        ("listen 443", f"listen {HOST}:{tls}"),
        ("listen 80", f"listen {HOST}:{plain}"),
        ("bind :443", f"bind {HOST}:{tls}"),
        ("bind :80", f"bind {HOST}:{plain}"),
        (f"{NAME} {{", f"https://{NAME}:{tls} {{\n\tbind {HOST}\n\ttls {chain} {key}"),
        ("/etc/mailcheck/tls/certificate.pem", str(chain)),
        ("/etc/mailcheck/tls/key.pem", str(key)),
        ("/etc/mailcheck/tls/haproxy.pem", str(folder / "haproxy.pem")),
    ):
        text = text.replace(written, meant)
    if program == "nginx":
        around = folder / "around.conf"
        around.write_text(_NGINX.format(folder=folder, file=file))
        start = [path, "-p", str(folder), "-c", str(around)]
        result = [[*start, "-t", "-q"], start]
    elif program == "caddy":
        text = _CADDY.format(folder=folder) + text
        options = ["--adapter", "caddyfile", "--config", str(file)]
        result = [[path, "validate", *options], [path, "run", *options]]
    else:
        result = [[path, "-c", "-f", str(file)], [path, "-db", "-f", str(file)]]
    file.write_text(text)
    return result


@contextlib.contextmanager
def running_proxy(program: str, web_port: int, folder: Path) -> Iterator[int]:
    """Run a proxy as long as the context lasts; yield its HTTPS port."""
    plain, tls = free_ports(2)
    _, start = commands(program, folder, web_port, (plain, tls))
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            start, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder
        )
    try:
        deadline = time.monotonic() + DEADLINE
        while not _answers(tls):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(POLL)
        yield tls
    finally:
        process.terminate()
        process.wait(DEADLINE)


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port)).close()
    except ConnectionRefusedError:
        return False
    return True
