"""Runs of tests in several processes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_in_jobs(folder: Path, **files: str) -> tuple[int, str]:
    """Run test files in two processes; return the exit status and the output."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    options = ["-q", "-c", "/dev/null", "-p", "no:twisted", "-p", "no:cacheprovider", "--jobs=2"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.jobs", *options, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_each_test_runs_once_and_is_reported(tmp_path: Path) -> None:
    """The first process counts what passed in the others, and shows each failure."""
    fixture = (
        "import pathlib, pytest\n"
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def record():\n    yield\n    pathlib.Path(__file__).with_suffix('.ended').touch()\n"
    )
    good = fixture + "def test_one(): pass\ndef test_two(tmp_path): pass\n"
    bad = fixture + "def test_bad():\n    print('hello')\n    assert 1 == 2\n"
    status, said = run_in_jobs(tmp_path, good=good, bad=bad, more=good)
    assert status == 1
    assert "5 tests in 3 files, 2 processes" in said
    assert "assert 1 == 2" in said
    assert "hello" in said
    assert "1 failed, 4 passed" in said
    assert len(list(tmp_path.glob("*.ended"))) == 3


def test_a_process_that_dies_fails_the_run(tmp_path: Path) -> None:
    """The test that a process ran when it died is named."""
    status, said = run_in_jobs(
        tmp_path, dies="import os\ndef test_it(): os._exit(3)\n", good="def test_one(): pass\n"
    )
    assert status == 1
    assert "test_dies.py::test_it" in said
