"""Rows become values in several threads at once."""

import subprocess
import sys

PROGRAM = """
import sys
from collections import namedtuple
from threading import Barrier, Thread

from msgspec import defstruct

from mailcheck.store.transactions import value_of

# Threads take turns as often as possible.
sys.setswitchinterval(1e-6)
row = namedtuple("Row", "a b")(1, 2)
for _ in range(30):
    inner = defstruct("Inner", [(f"x{n}", "int | None", None) for n in range(30)])
    kind = defstruct("Outer", [("a", int), ("inner", inner), ("b", int)])
    start = Barrier(6)

    def read(kind=kind, given=inner(), start=start):
        start.wait()
        assert value_of(kind, row, inner=given).b == 2

    threads = [Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_the_first_rows_of_a_class_in_several_threads() -> None:
    """Threads that read the first rows of a class at the same moment do not end the process."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
