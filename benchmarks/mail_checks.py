"""Measure the checks of a mail's HTML: compatibility with mail programs, and accessibility.

Run it with ``python -m benchmarks.mail_checks``. A newsletter of 100 KB, with tables, style
attributes, a style sheet, pictures and links, is checked again and again in this process, with the
code that the daemon runs in child processes. The figure is the CPU time of a check. The peer is
@jsx-email/doiuse-email of npm, which checks the HTML and CSS alone with the same data of an earlier
date (``npm install @jsx-email/doiuse-email``; ``--peer FOLDER`` names another folder with its
``node_modules``). Target: 50 ms of CPU.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.html_checks.accessibility import judge_accessibility
from mailcheck.checks.html_checks.check import check_html
from mailcheck.checks.html_checks.compatibility import judge_compatibility
from mailcheck.checks.html_checks.places import Lines

SIZE = 100_000
"""Octets of the mail."""

PEER = "@jsx-email/doiuse-email"

PEER_SCRIPT = """
const { readFileSync } = require("node:fs");
const { doIUseEmail } = require(%s);
const html = readFileSync(process.argv[1], "utf-8");
const spent = [];
for (let round = -3; round < Number(process.argv[2]); round += 1) {
  const begun = process.cpuUsage();
  doIUseEmail(html, { emailClients: ["*"] });
  const { user, system } = process.cpuUsage(begun);
  if (round >= 0) spent.push((user + system) / 1000);
}
console.log(JSON.stringify(spent));
"""

HEAD = """<!doctype html>
<html lang="en"><head><title>Offers of the week</title><style>
body { margin: 0; font-family: Georgia, serif; color: #222 }
.card { border-radius: 6px; box-shadow: 0 1px 3px rgba(0, 0, 0, .2); padding: 12px }
.card > a:hover { text-decoration: underline }
@media (max-width: 600px) { .half { width: 100% !important; display: block } }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
</style></head><body><table role="presentation" width="600" align="center">
"""
CARD = """<tr><td class="half" style="padding:8px 12px;border-bottom:1px solid #dddddd;width:50%%">
<img src="https://shop.example/pictures/shoe-%d.jpg" alt="A shoe" width="200" height="120"
 style="display:block;max-width:100%%;border-radius:4px"></td>
<td class="half card" style="font-size:16px;line-height:1.5;color:#333333;background-color:#ffffff">
<h2 style="margin:0 0 8px;font-size:20px">Running shoe number %d</h2>
<p style="margin:0">Light, and made to last: now at half the price until Sunday.</p>
<a href="https://shop.example/shoes/%d?from=newsletter" style="color:#0a58ca;text-decoration:none">
Look at shoe %d</a></td></tr>
"""


def newsletter() -> str:
    """Return a mail of that size."""
    parts, number = [HEAD], 0
    while sum(map(len, parts)) < SIZE:
        parts.append(CARD % ((number,) * 4))
        number += 1
    return "".join(parts) + "</table></body></html>"


def measure(html: str, rounds: int) -> dict[str, list[float]]:
    """Check the mail, and return the milliseconds of CPU for each part of the check."""
    spent: dict[str, list[float]] = {"all checks": [], "compatibility": [], "accessibility": []}
    for number in range(-3, rounds):
        tree, lines = read_tree(html), Lines(html)
        took = (
            _time(partial(check_html, html, "", None, (), {})),
            _time(partial(judge_compatibility, html, tree, lines, {})),
            _time(partial(judge_accessibility, tree, lines)),
        )
        if number >= 0:
            for times, one in zip(spent.values(), took, strict=True):
                times.append(one)
    return spent


def measure_peer(html: str, rounds: int, folder: Path) -> list[float]:
    """Check it with the peer, and return milliseconds of CPU, empty without the peer."""
    package = folder.resolve() / "node_modules" / PEER
    if not package.is_dir():
        return []
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "mail.html")
        page.write_text(html)
        command = ["node", "-e", PEER_SCRIPT % json.dumps(str(package)), str(page)]
        done = subprocess.run([*command, str(rounds)], check=True, capture_output=True, text=True)
    spent: list[float] = json.loads(done.stdout)
    return spent


def main() -> None:
    """Measure both in turns, and print the medians."""
    parser = argparse.ArgumentParser(description="measure the checks of a mail")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--peer", type=Path, default=Path(), help="folder of node_modules")
    options = parser.parse_args()
    html = newsletter()
    print(f"a mail of {len(html):,} octets, milliseconds of CPU, median of {options.rounds}")
    medians = {}
    for name, times in measure(html, options.rounds).items():
        medians[name] = statistics.median(times)
        print(f"{name}: {medians[name]:.1f} ms (at most {max(times):.1f})")
    peer = measure_peer(html, options.rounds, options.peer)
    if not peer:
        print(f"{PEER} is not installed: npm install {PEER}")
        return
    theirs = statistics.median(peer)
    print(f"{PEER}, compatibility alone: {theirs:.1f} ms (at most {max(peer):.1f})")
    print(f"all checks / peer: {medians['all checks'] / theirs:.2f}")


def _time(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


if __name__ == "__main__":
    main()
