"""Open files: each connection is one, and the usual soft limit is 1,024."""

import math
import resource

from twisted.logger import Logger

_log = Logger()


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:  # macOS says "unlimited" and takes less
        _log.info("open files stay limited to {soft}: {error}", soft=soft, error=error)


def half_of_files() -> float:
    """Give how many open files one kind of connection may use: the others need some too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if soft == resource.RLIM_INFINITY else soft // 2
