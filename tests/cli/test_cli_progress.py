"""The progress line: on terminals, for every command, and never mixed with the output."""

import json
import threading
from pathlib import Path

from mailcheck.cli.main import run
from mailcheck.cli.terminal import CLEAR_LINE
from tests.cli.command_line import Screen, run_command
from tests.servers.http_stub import QuietHandler, serving
from tests.table import rows

HOSTILE = "one\ntwo\x1b[2J"


def test_the_line_has_the_text_and_the_time() -> None:
    """The line shows the current text and the elapsed time, and is removed at the end."""
    screen = Screen()
    shown = screen.console().progress
    shown.text = "waiting for mail"
    shown.draw(0.2)
    shown.text = lambda: "3 of 4 DNS answers"
    shown.draw(61.9)
    with shown.hidden():
        pass
    assert screen.read() == (
        f"{CLEAR_LINE}waiting for mail ... 0:00{CLEAR_LINE}3 of 4 DNS answers ... 1:01{CLEAR_LINE}"
    )


def test_the_line_stays_one_line() -> None:
    """Control characters and line feeds in the text cannot leave the line, nor a long text."""
    screen = Screen()
    shown = screen.console().progress
    shown.text = HOSTILE
    shown.draw(0)
    shown.text = "x" * 1_000
    shown.draw(0)
    first, second = screen.read().split(CLEAR_LINE)[1:]
    assert first == "one two\\u001b[2J ... 0:00"
    assert second == "x" * 79  # a terminal without a size counts as 80 columns wide


def test_output_is_written_without_the_line() -> None:
    """Before a result or a note is printed, the line is removed."""
    screen = Screen()
    console = screen.console()
    console.progress.draw(0)
    console.print_line("result")
    console.print_note("note")
    assert screen.read() == f"{CLEAR_LINE}working ... 0:00{CLEAR_LINE}result\nnote\n"


@rows(0.0, 60.0)
def test_a_quick_command_shows_no_line(delay: float) -> None:
    """The line is drawn after the delay, and not at all if the command ends before."""
    screen, is_drawn = Screen(), threading.Event()
    shown = screen.console().progress

    def text() -> str:
        is_drawn.set()
        return "slow"

    shown.text = text
    with shown.shown(delay):
        assert delay or is_drawn.wait(10)
    written = screen.read()
    assert written.startswith(f"{CLEAR_LINE}slow ... 0:00") == (not delay)
    assert written.endswith(CLEAR_LINE) == (not delay)
    assert bool(written) == (not delay)


def test_every_command_has_the_line() -> None:
    """A command that takes longer than a second shows the line, which its output replaces."""
    screen = Screen()

    class Slow(QuietHandler):
        def do_GET(self) -> None:
            """Answer when something is on the screen."""
            screen.has_output.wait(30)
            self.send_answer(json.dumps({"webhooks": []}).encode())

    Path("key").write_text("mck_key")
    with serving(Slow) as url:
        command = ["webhook", "list", "--json", "--url", url, "--key-file", "key"]
        assert run(command, screen.stream, screen.stream) == 0
    shown = screen.read()
    assert shown.startswith(f"{CLEAR_LINE}waiting for the daemon ... 0:01")
    assert shown.endswith(f'{CLEAR_LINE}{{"webhooks": []}}\n')


def test_elsewhere_nothing_is_drawn() -> None:
    """A file or a pipe gets no progress line."""
    assert run_command("config", "check").errors == "the configuration is valid\n"
