"""Files that users copy: compose.yaml, services of CI jobs, and configurations of proxies."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mailcheck.config.reading import load_config
from mailcheck.core.identifiers import MIN_PRESET_KEY
from tests.servers.dockerfile import read_dockerfile
from tests.servers.programs import find_program
from tests.servers.web_proxies import FILES, PROXIES, commands
from tests.table import rows

ROOT = Path(__file__).parents[2]
LONGEST_WAIT = 60  # seconds
STATE = "/var/lib/mailcheck"

WITH_VARIABLES = [
    *("Dockerfile", "compose.yaml", "etc/compose-postgresql.env", "Makefile", "README.md"),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "systemd").iterdir()),
    # Pages that are generated from the options need no check.
    *(
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").rglob("*.*")
        if path.parent.name != "reference" and path.suffix != ".png"
    ),
]
OURS_ALONE = {"MAILCHECK_SCHEMATHESIS_SEED", "MAILCHECK_IMAGE", "MAILCHECK_OPERATOR_KEY"}
"""Variables of the tests, of GitHub, and of the recipe that sets up a team."""

_VARIABLE = re.compile(r"\bMAILCHECK(?:_[A-Z]+)+\b")
_INTERPOLATION = re.compile(r"\$\{(\w+):-([^}]*)\}")
_SECONDS = re.compile(r"(?:read_timeout|response_header_timeout|timeout (?:client|server)) (\d+)s")


def image_environment() -> dict[str, str]:
    """Return the environment that the Dockerfile sets."""
    settings = "\n".join(
        one.text for one in read_dockerfile((ROOT / "Dockerfile").read_text()) if one.name == "ENV"
    )
    return dict(re.findall(r"(\w+)=(\S+)", settings))


def image_ports() -> set[int]:
    """Return the ports that the Dockerfile exposes."""
    instructions = read_dockerfile((ROOT / "Dockerfile").read_text())
    return {int(port) for one in instructions if one.name == "EXPOSE" for port in one.text.split()}


def read_compose(variables: Mapping[str, str]) -> Any:
    """Parse compose.yaml as Compose does: YAML first, then the variables in its values."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        if isinstance(value, str):
            return _INTERPOLATION.sub(lambda found: variables.get(found[1]) or found[2], value)
        return value

    return filled(yaml.safe_load((ROOT / "compose.yaml").read_text()))


def read_env_file() -> dict[str, str]:
    """Return the variables that choose PostgreSQL."""
    text = (ROOT / "etc" / "compose-postgresql.env").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def require_known(environment: Mapping[str, object]) -> Any:
    """Return the configuration of a daemon in the image with this environment."""
    given = {name: str(value) for name, value in environment.items()}
    return load_config(None, {**image_environment(), **given})


@rows(*WITH_VARIABLES)
def test_variables_are_known(name: str) -> None:
    """Every variable named in a file or document is read by the daemon or a client."""
    example = (ROOT / "etc" / "mailcheck.toml").read_text()
    known = set(_VARIABLE.findall(example)) | OURS_ALONE
    known |= {"MAILCHECK_URL", "MAILCHECK_API_KEY"}
    named = set(_VARIABLE.findall((ROOT / name).read_text()))
    assert {variable.removesuffix("_FILE") for variable in named - known} <= known


class TestCompose:
    """compose.yaml: one daemon and its services."""

    def test_sqlite(self) -> None:
        """By default there is one daemon, with SQLite in its volume."""
        compose = read_compose({})
        without_profile = [
            name for name, service in compose["services"].items() if "profiles" not in service
        ]
        assert without_profile == ["mailcheck"]
        service = compose["services"]["mailcheck"]
        config = require_known(service["environment"])
        assert config.storage.url == f"sqlite:{STATE}/mailcheck.db"
        assert config.storage.state_directory == STATE
        assert (config.cluster.redis, config.accounts.bootstrap) == ("", True)
        assert [volume.split(":")[1] for volume in service["volumes"]] == [STATE]

    def test_postgresql(self) -> None:
        """With the file of variables, the daemon uses PostgreSQL and Redis of the profile."""
        variables = {**read_env_file(), "POSTGRES_PASSWORD": "secret"}
        services = read_compose(variables)["services"]
        daemon, postgresql = services["mailcheck"], services["postgresql"]
        config = require_known(daemon["environment"])
        settings = postgresql["environment"]
        assert config.storage.url == (
            f"postgresql://{settings['POSTGRES_USER']}@postgresql/{settings['POSTGRES_DB']}"
        )
        assert daemon["environment"]["PGPASSWORD"] == settings["POSTGRES_PASSWORD"] == "secret"
        assert config.cluster.redis == "redis://redis/0"
        profiles = {profile for one in services.values() for profile in one.get("profiles", [])}
        assert profiles == {variables["COMPOSE_PROFILES"]}
        for name, needed in daemon["depends_on"].items():
            assert needed == {"condition": "service_healthy", "required": False}
            assert "healthcheck" in services[name]

    def test_this_machine_alone(self) -> None:
        """Only the ports of the image are published, and only on 127.0.0.1."""
        services = read_compose({})["services"]
        published = [port for service in services.values() for port in service.get("ports", [])]
        assert sorted(published) == [f"127.0.0.1:{port}:{port}" for port in sorted(image_ports())]

    def test_volumes(self) -> None:
        """The declared volumes are exactly the volumes that services use."""
        compose = read_compose({})
        used = {
            volume.split(":")[0]
            for service in compose["services"].values()
            for volume in service.get("volumes", [])
        }
        assert set(compose["volumes"]) == used


class TestJobs:
    """A service beside the tests of a project, with a preset API key."""

    def test_github(self) -> None:
        """The service's variables are options, and the job uses the published ports."""
        workflow = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text())
        job = workflow["jobs"]["test"]
        service = job["services"]["mailcheck"]
        assert {tuple(port.split(":")) for port in service["ports"]} == {
            (str(port), str(port)) for port in image_ports()
        }
        self.require_joined(service["env"], job["env"], "127.0.0.1")

    def test_gitlab(self) -> None:
        """GitLab passes variables of the job and of links to the service; all are options."""
        [job] = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text()).values()
        [service] = job["services"]
        own = {"IMAGE_OF_MAILCHECK": "x", "MAILCHECK_PORT_8080_TCP": "tcp://172.17.0.2:8080"}
        variables = {**job["variables"], **own, **service["variables"]}
        config = self.require_joined(variables, job["variables"], service["alias"])
        assert config.web.public_url == job["variables"]["MAILCHECK_URL"]

    def require_joined(
        self, service: Mapping[str, object], job: Mapping[str, object], host: str
    ) -> Any:
        """Assert that job and service share key and ports. Return the daemon's configuration."""
        config = require_known(service)
        assert config.accounts.bootstrap
        assert len(config.accounts.bootstrap_key) >= MIN_PRESET_KEY
        assert job["MAILCHECK_API_KEY"] == job["SMTP_PASSWORD"] == config.accounts.bootstrap_key
        assert config.limits.requests_per_minute > 60
        assert config.limits.requests_per_day > 1_000
        port = config.smtp.submission_listen[0].rpartition(":")[2]
        assert (job["SMTP_HOST"], str(job["SMTP_PORT"])) == (host, port)
        port = config.web.listen[0].rpartition(":")[2]
        assert job["MAILCHECK_URL"] == f"http://{host}:{port}"
        return config


@pytest.mark.interop
class TestProxies:
    """nginx, Caddy and HAProxy in front of a daemon."""

    @rows(*sorted(PROXIES.iterdir()))
    def test_waits_get_their_time(self, path: Path) -> None:
        """A proxy's timeout is longer than the longest wait of a daemon with default options."""
        text = path.read_text()
        seconds = [int(number) for number in _SECONDS.findall(text)]
        assert seconds
        assert min(seconds) > LONGEST_WAIT
        assert "127.0.0.1:8080" in text
        assert 'trusted_proxies = ["127.0.0.1"]' in text

    @pytest.mark.parametrize("program", FILES)
    def test_its_program_takes_it(self, program: str, tmp_path: Path) -> None:
        """The proxy's own program accepts the file."""
        check, _ = commands(program, tmp_path, 8080, (8000, 8443))
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_several_daemons(self) -> None:
        """HAProxy accepts the file for several daemons."""
        check = [find_program("haproxy"), "-c", "-f", str(ROOT / "etc" / "haproxy.cfg")]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
