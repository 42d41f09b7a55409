"""``mailcheck watch``: output and exit statuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Mailcheck, run_command
from tests.cli.house_commands import commands_at
from tests.servers.daemon import HOST, free_ports
from tests.table import rows
from tests.web.test_web_watches import HOUR, Watching

DMARC = "_dmarc.good.example"


@pytest.fixture
def watching() -> Watching:
    """An application without watches."""
    return Watching()


@pytest.fixture
def watch(watching: Watching, tmp_path: Path) -> Iterator[Mailcheck]:
    """Run ``mailcheck watch`` with the key of its first account."""
    with commands_at(watching.house, tmp_path, "watch") as watch:
        yield watch


def test_what_is_watched_and_what_is_not(watch: Mailcheck, tmp_path: Path) -> None:
    """Each created watch is printed with its id, and each rejected one is named, with status 1."""
    names = tmp_path / "names"
    names.write_text("# ours\n\nb.good.example  # the shop\n8.8.4.10\n")
    made = watch("add", "good.example", "--file", str(names), "--every", "15")
    assert (made.status, made.errors) == (0, "")
    targets = ["good.example", "b.good.example", "8.8.4.10"]
    assert [line.split()[1] for line in made.lines] == targets
    assert [line.split(maxsplit=2)[1:] for line in watch("list").lines] == [
        [target, "every 15 min"] for target in sorted(targets)
    ]
    again = watch("add", "good.example", "c.good.example")
    assert again.status == 1
    assert again.lines[0].endswith("  c.good.example")
    assert again.errors.startswith("mailcheck: good.example: ")
    assert watch("add").status == 2
    assert watch("add", "d.example", "--every", "14").status == 2


def test_all_are_listed_however_many(watch: Mailcheck, tmp_path: Path) -> None:
    """More domains than a request or a page holds are added and listed completely."""
    names = tmp_path / "names"
    names.write_text("\n".join(f"d{number}.good.example" for number in range(520)))
    assert len(watch("add", "--file", str(names)).lines) == 520
    assert len(watch("list").lines) == 520


def test_who_is_told(watch: Mailcheck) -> None:
    """The secret of a receiver is shown, with the advice to save it."""
    made = watch("add", "good.example", "--alert-to", "https://hooks.example/x")
    assert made.status == 0
    url, secret = made.lines[1].split()
    assert (url, secret.partition("_")[0]) == ("https://hooks.example/x", "whsec")
    assert "save each secret" in made.errors
    refused = watch("add", "8.8.4.10", "--alert-to", "ops@mailcheck.example")
    assert refused.status == 1
    assert "no mail to ops@mailcheck.example" in refused.errors


def test_how_one_is(watch: Mailcheck, watching: Watching) -> None:
    """The output has the score, problems, undetermined checks, hosts and the newest changes."""
    watch("add", "good.example", "--selector", "gone")
    assert watch("show", "good.example").lines == ["good.example  not run yet"]
    ran = watch("show", "Good.Example.", "--run")
    assert ran.status == 0
    assert ran.lines[0] == "good.example  2026-11-21 12:00"
    assert ran.lines[1].startswith("score ")
    assert any("gone" in line for line in ran.lines)
    watching.zone.publish(DMARC, "TXT")
    watching.house.pass_time(HOUR)
    worse = watch("show", "good.example", "--run")
    assert worse.status == 1
    (alert,) = [line for line in worse.lines if line.startswith("ALERT good.example: ")]
    assert "DMARC" in alert
    assert alert.endswith("(since 2026-11-21 13:00)")
    assert "mx1.good.example was reachable for 100.00% of the time" in worse.lines
    assert worse.lines[-1].startswith("2026-11-21 13:00  ")
    listed = watch("list")
    assert (listed.status, listed.lines[-1]) == (1, alert)


def test_as_json(watch: Mailcheck, watching: Watching) -> None:
    """Each command prints the daemon's response, with a matching status."""
    made = json.loads(watch("add", "good.example", "localhost", "--json").output)
    assert [one["target"] for one in made["made"]] == ["good.example"]
    assert [one["target"] for one in made["refused"]] == ["localhost"]
    assert made["newWebhooks"] == []
    (one,) = made["made"]
    watch("show", one["id"], "--run")
    watching.zone.publish(DMARC, "TXT")
    watching.house.pass_time(HOUR)
    shown = watch("show", one["id"], "--run", "--json")
    assert shown.status == 1
    (alert,) = json.loads(shown.output)["alerts"]
    assert json.loads(shown.output)["history"]["changes"]
    listed = watch("list", "--json")
    assert listed.status == 1
    assert json.loads(listed.output)["openAlerts"][0]["sentence"] == alert["sentence"]
    removed = watch("remove", "good.example", "--json")
    assert json.loads(removed.output)["id"] == one["id"]
    assert json.loads(watch("list", "--json").output) == {"watches": [], "openAlerts": []}


def test_one_that_is_not_there(watch: Mailcheck) -> None:
    """An unknown watch is not shown or deleted, with the reason; a deleted one is gone."""
    watch("add", "good.example")
    for part in ("show", "remove"):
        missing = watch(part, "other.example")
        assert (missing.status, missing.output) == (1, "")
        assert missing.errors.startswith("mailcheck: ")
    removed = watch("remove", "good.example")
    assert removed.status == 0
    assert removed.output.startswith("removed ")
    assert len(removed.output.split()) == 2
    assert watch("list").output == ""


@pytest.mark.usefixtures("watch")
@rows("list", "show", "remove", "add")
def test_no_daemon(part: str) -> None:
    """Without an answer of the daemon the status is 3, with advice."""
    named = [] if part == "list" else ["good.example"]
    (nobody,) = free_ports(1)
    url = f"http://{HOST}:{nobody}"
    lost = run_command("watch", part, *named, "--url", url, "--key-file", "key")
    assert (lost.status, lost.output) == (3, "")
    assert "is it running?" in lost.errors
