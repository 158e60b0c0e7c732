"""A /sys that shows the interfaces of the caller's own network namespace: setns alone does not change it.

sysfs shows the namespace it was mounted in. So programs that look there (MPI, UCX) need a mount of their own, in a
mount namespace of their own, as with ``ip netns exec``.
"""

from __future__ import annotations

from contextlib import suppress

from hpn.testbed.kernel.ns import CLONE_NEWNS, unshare
from hpn.testbed.kernel.process.sandbox import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, mount

_QUIET = MS_NOSUID | MS_NODEV | MS_NOEXEC


def own_sys() -> None:
    """Give the calling process a mount namespace whose /sys is that of its network namespace.

    If the kernel does not allow to mount sysfs (in a container that hides parts of it), /sys stays as it was. Only for
    single-threaded processes, such as a child before it runs a program.
    """
    with suppress(OSError):
        unshare(CLONE_NEWNS)
        mount("none", "/", "none", MS_REC | MS_PRIVATE)
        mount_sys()


def mount_sys() -> None:
    """Mount sysfs of the caller's network namespace on /sys, in the current mount namespace. OSError on failure."""
    try:
        mount("sysfs", "/sys", "sysfs", _QUIET)
    except OSError:  # where the machine's own /sys is read-only, an unprivileged user may only mount a read-only one
        mount("sysfs", "/sys", "sysfs", _QUIET | MS_RDONLY)
