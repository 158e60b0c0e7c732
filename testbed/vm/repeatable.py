"""Repeatability of a guest in virtual time, for any caller and any checkout.

Its clock moves by 256 ns whenever it is read, and opening a file reads it. So all files are found along the same path
and as byte code. A command begins on a whole second of the guest, which cancels most effects of what came before it. It
waits for one more at least: the kernel removes the namespaces in which it was probed only after a while. Then the
kernel's random numbers begin again, so that losses do not depend on how many were drawn before. Not all is cancelled:
2,000 readings of the clock before it moved 209 of 340 events by a step or more. A fork, 200 readings, random bytes,
memory and opened files moved none. Hence every run makes the same probes (``failover.inject.needs``).
(Taking a lock in Python 3.11 reads the clock too. So does the first access to a functools.cached_property, and the
first call of many functions and methods of numpy, such as ``any``, ``all``, ``take`` and ``cumsum``. A new or removed
one in a run moves all later times.)
"""

from __future__ import annotations

import compileall
import fcntl
import os
import select
import sys
from collections.abc import Mapping

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.nftables import nft
from hpn.testbed.kernel.timerfd import Ticker
from hpn.testbed.package import FOLDER, PACKAGES
from hpn.testbed.vm import guest

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WHOLE_SECOND = "HPN_BEGIN_ON_WHOLE_SECOND"
_SECOND_NS = 1_000_000_000
_RNDRESEEDCRNG = 0x5207  # linux/random.h


def environment() -> Mapping[str, str]:
    """Return the command's environment in the guest; installed programs come before the caller's own PATH."""
    path = f"{_SYSTEM_PATH}:{os.environ.get('PATH', os.defpath)}"
    return {**guest.environment(), "PATH": path, _WHOLE_SECOND: "1"}


def compile_project() -> None:
    """Update the byte code of the project and all its loaded modules; files that cannot be written stay as they are.

    On the host: a guest writes none, and one stale file of a library would be compiled at every start of a worker.
    """
    compileall.compile_dir(FOLDER, maxlevels=0, quiet=2)
    for package in PACKAGES:
        compileall.compile_dir(FOLDER / package, quiet=2)
    files = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    for file in sorted(name for name in files if name is not None and name.endswith(".py")):
        compileall.compile_file(file, quiet=2)


def begin() -> None:
    """Wait for a second and then for a whole one, as the command's first step in a guest; no-op elsewhere.

    Libraries that some commands have opened by then, to check what a drill needs, are opened by all before.
    """
    if _WHOLE_SECOND in os.environ:
        nft.preload()
        ticker = Ticker()
        ticker.start((now_ns() // _SECOND_NS + 2) * _SECOND_NS, 0)
        select.select([ticker], [], [])
        ticker.close()
        _restart_random_numbers()


def _restart_random_numbers() -> None:
    """Make the kernel draw as if nothing had been drawn before (``uml-kernel.patch``); other kernels take a new key."""
    fd = os.open("/dev/urandom", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _RNDRESEEDCRNG)
    finally:
        os.close(fd)
