"""What a child process has imported."""

import sys


def loaded_modules() -> list[str]:
    """Name all modules of this process."""
    return list(sys.modules)
