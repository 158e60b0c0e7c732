"""Third-party programs in a namespace: start, wait for an output line, wait for the end."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import IO

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process.processes import piped


def spawn(
    ns: NetNs, command: list[str], stdout: int | IO[bytes], stderr: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in a namespace."""
    # A child inherits the namespace of its parent's thread.
    with ns.entered():
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr or subprocess.DEVNULL)


async def said(server: subprocess.Popen[bytes], words: bytes, timeout_s: float, who: str) -> None:
    """Wait until a server's output contains ``words``, its ready line. MachineError when it ends or prints nothing in
    time."""
    fd = piped(server.stdout).fileno()
    os.set_blocking(fd, False)
    heard = b""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while words not in heard:
        await _readable(fd, deadline - asyncio.get_running_loop().time(), who)
        more = os.read(fd, 4096)
        if not more:
            raise MachineError(f"{who} ended: {heard.decode(errors='replace').strip() or 'it said nothing'}")
        heard += more


async def ended(process: subprocess.Popen[bytes], timeout_s: float, who: str) -> None:
    """Wait for the end of a program. MachineError after ``timeout_s``."""
    pidfd = os.pidfd_open(process.pid)
    try:
        await _readable(pidfd, timeout_s, who)
    finally:
        os.close(pidfd)


async def _readable(fd: int, timeout_s: float, who: str) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _set, ready)
    try:
        async with asyncio.timeout(max(timeout_s, 0.0)):
            await ready
    except TimeoutError as error:
        raise MachineError(f"{who} did not answer within {timeout_s:.0f} s") from error
    finally:
        loop.remove_reader(fd)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
