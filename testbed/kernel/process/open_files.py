"""How many files a process may have open: raised to what is needed, where this process may."""

from __future__ import annotations

import resource


def limit_below(count: int) -> int | None:
    """The limit that ``allow(count)`` would run into; None: there would be none. Nothing is changed."""
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
    """Let this process have ``count`` files open; the limit where that is lower and it may not be raised.

    The hard limit is raised too by who has CAP_SYS_RESOURCE: root of most machines, and of a guest, which starts with
    4,096.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard) or count <= hard:
        if soft != resource.RLIM_INFINITY and soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    except (OSError, ValueError):  # not allowed, or beyond what its kernel has for anybody
        return hard
    return None
