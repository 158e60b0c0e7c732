"""A /sys that shows the interfaces of the caller's own network namespace: setns alone does not change it.

sysfs shows the namespace it was mounted in. So who looks there (MPI, UCX) needs a mount of its own, in a mount
namespace of its own, as ``ip netns exec`` does it too.
"""

from __future__ import annotations

from contextlib import suppress

from hpn.testbed.kernel.ns import CLONE_NEWNS, unshare
from hpn.testbed.kernel.process.sandbox import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, mount

_QUIET = MS_NOSUID | MS_NODEV | MS_NOEXEC


def own_sys() -> None:
    """Give the calling process a mount namespace whose /sys is that of its network namespace.

    Where the kernel lets nobody mount sysfs (in a container that hides parts of it) /sys stays as it was. For
    processes with one thread, such as a child before it runs a program.
    """
    with suppress(OSError):
        unshare(CLONE_NEWNS)
        mount("none", "/", "none", MS_REC | MS_PRIVATE)
        mount_sys()


def mount_sys() -> None:
    """Mount sysfs of the caller's network namespace on /sys, in a mount namespace of its own. OSError on failure."""
    try:
        mount("sysfs", "/sys", "sysfs", _QUIET)
    except OSError:  # a read-only one is what an unprivileged user gets where the machine's own is read-only
        mount("sysfs", "/sys", "sysfs", _QUIET | MS_RDONLY)
