"""The limit on open files of a process: raised as needed, if the process has the privilege."""

from __future__ import annotations

import resource


def limit_below(count: int) -> int | None:
    """Return the limit that would keep ``allow(count)`` from succeeding; None if it would succeed. Changes nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard) or count <= hard:
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, count))
    except (OSError, ValueError):
        return hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return None


def allow(count: int) -> int | None:
    """Let this process have ``count`` files open; return the limit if it is lower and cannot be raised.

    With CAP_SYS_RESOURCE the hard limit is raised too: as root of most machines, and of a guest, which starts with
    4,096.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard) or count <= hard:
        if soft != resource.RLIM_INFINITY and soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    except (OSError, ValueError):  # not allowed, or beyond the kernel's own maximum
        return hard
    return None
