"""Commands that ask an application in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command_line import Mailcheck, run_command
from tests.house import House
from tests.servers.house_server import serving_house


@contextmanager
def commands_at(house: House, folder: Path, *words: str, key: str = "") -> Iterator[Mailcheck]:
    """Serve a house; yield a function that runs a command with a key of it.

    :param words: what each command line begins with.
    :param key: a key, or that of the first account.
    """
    file = folder / "key"
    file.write_text(key or house.key)
    with serving_house(house) as url:
        options = ("--url", url, "--key-file", str(file))
        yield lambda *rest: run_command(*words, *rest, *options)
