"""A separate filesystem for a test, and another program that fills it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class SmallDisk:
    """A filesystem that a file of another program fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, octets: int) -> None:
        """Write a file of ``octets`` bytes."""
        self._filler.write_bytes(bytes(octets))

    def fill_up(self) -> None:
        """Fill the filesystem completely, as the log of another program does."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            for size in (65_536, 4_096, 1):
                with suppress(OSError):
                    while filler.write(bytes(size)) == size:
                        pass

    def resize(self, octets: int) -> None:
        """Change the size of the filesystem."""
        options = f"remount,size={octets}"
        subprocess.run(["mount", "-o", options, str(self.folder)], check=True)

    def make_room(self) -> None:
        """Delete the file."""
        self._filler.unlink()


@contextmanager
def mounted(folder: Path, octets: int) -> Iterator[SmallDisk | None]:
    """Mount a filesystem of a size on a new folder, or yield `None` without permission."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={octets}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
