"""Each code block of the documentation is run by a test, or states why not."""

import json
import re
import tomllib
from pathlib import Path

import yaml

from mailcheck.config.options import Config
from mailcheck.config.reading import load_config
from tests.docs.blocks import ROOT, Block, indented_blocks, list_pages, read_blocks
from tests.table import rows

BLOCKS = [block for page in list_pages() for block in read_blocks(page)]
DATA = ("json", "toml", "yaml")
NOTHING_TO_RUN = ("text", "{toctree}", "{include} ../CONTRIBUTING.md")
MAX_NOT_RUN = 10


@rows(*BLOCKS)
def test_each_block_is_run(block: Block) -> None:
    """A block is shell of its page, data or text, or names the test that runs it."""
    if block.runner:
        source = (ROOT / block.runner).read_text("utf-8")
        assert block.page.name in source, f"{block.runner} does not read {block.page.name}"
    elif not block.marker.startswith("not run: "):
        assert block.language in ("sh", *DATA, *NOTHING_TO_RUN), "no test runs it"


_COMMAND = re.compile(r"^(\$ )?(mailcheck|curl|docker|make|twistd|apt-get|systemctl|swaks) ", re.M)


@rows(*(one for one in BLOCKS if one.language == "text"))
def test_commands_are_no_text(block: Block) -> None:
    """A block that shows commands is shell, so that it is run, or states why not."""
    assert block.marker or not _COMMAND.search(block.text)


@rows(*list_pages())
def test_every_block_has_a_fence(page: Path) -> None:
    """No block is marked by indentation only, because its language would be unknown."""
    assert not indented_blocks(page)


def test_few_are_not_run() -> None:
    """At most ten blocks are not run, and each states the reason."""
    reasons = [one.marker for one in BLOCKS if one.marker.startswith("not run: ")]
    assert len(reasons) <= MAX_NOT_RUN
    assert all(len(reason) > len("not run: ") for reason in reasons)


@rows(*(one for one in BLOCKS if one.language in DATA))
def test_data_can_be_read(tmp_path: Path, block: Block) -> None:
    """JSON, YAML and TOML blocks are valid, and options of the daemon exist."""
    if block.language == "json":
        json.loads(block.text)
    elif block.language == "yaml":
        assert yaml.safe_load(block.text)
    elif tomllib.loads(block.text).keys() <= {*Config.__struct_fields__}:
        file = tmp_path / "mailcheck.toml"
        file.write_text(with_secrets(block.text, tmp_path))
        load_config(file, {})


SECRETS = {
    "url_file": "postgresql://mailcheck@db.example/mailcheck",
    "redis_file": "redis://redis.example/0",
    "keys_file": "zone.example=secret",
    "password_file": "secret",
    "client_secret_file": "secret",
    "refresh_token_file": "secret",
}


def with_secrets(text: str, folder: Path) -> str:
    """Create the files of secrets, and name them in the options."""
    for name, secret in SECRETS.items():
        (folder / name).write_text(secret)
        text = re.sub(rf'^{name} = "[^"]*"', f'{name} = "{folder / name}"', text, flags=re.M)
    return text
