"""What has a guest in virtual time do the same whoever starts it, and from whatever checkout.

Its clock moves by 256 ns whenever it is read, and opening a file reads it. So all files are found along the same way
and as byte code, and a command begins on a whole second of the guest, where what came before it is forgotten.
(Whoever takes a lock of Python 3.11 reads it too. The first look at a functools.cached_property does, and the first
call of many functions and methods of numpy, such as ``any``, ``all``, ``take`` and ``cumsum``: a new one in what a run
does, or one that is no longer there, moves all later times.)
"""

from __future__ import annotations

import compileall
import os
import select
import sys
from collections.abc import Mapping

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.timerfd import Ticker
from hpn.testbed.package import FOLDER, PACKAGES
from hpn.testbed.vm import guest

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WHOLE_SECOND = "HPN_BEGIN_ON_WHOLE_SECOND"
_SECOND_NS = 1_000_000_000


def environment() -> Mapping[str, str]:
    """For the command in the guest. What is installed is found before the caller's own PATH matters."""
    path = f"{_SYSTEM_PATH}:{os.environ.get('PATH', os.defpath)}"
    return {**guest.environment(), "PATH": path, _WHOLE_SECOND: "1"}


def compile_project() -> None:
    """Bring the byte code of the project, and of all it has loaded, up to date; what cannot be written stays as it is.

    On the host: a guest writes none, and one stale file of a library would be compiled at every start of a worker.
    """
    compileall.compile_dir(FOLDER, maxlevels=0, quiet=2)
    for package in PACKAGES:
        compileall.compile_dir(FOLDER / package, quiet=2)
    files = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    for file in sorted(name for name in files if name is not None and name.endswith(".py")):
        compileall.compile_file(file, quiet=2)


def begin() -> None:
    """In the guest, the command's first act; nothing anywhere else."""
    if _WHOLE_SECOND in os.environ:
        ticker = Ticker()
        ticker.start((now_ns() // _SECOND_NS + 1) * _SECOND_NS, 0)
        select.select([ticker], [], [])
        ticker.close()
