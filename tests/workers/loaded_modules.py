"""A function that lists the imported modules of a child process."""

import sys


def loaded_modules() -> list[str]:
    """Return the names of all modules of this process."""
    return list(sys.modules)
