"""iperf3 as a foreign judge of throughput: one UDP run between two namespaces."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO

from testbed.errors import MachineError
from testbed.kernel.ns import NetNs
from testbed.kernel.processes import piped


@dataclass(frozen=True, slots=True)
class UdpResult:
    """What iperf3 measured. ``goodput_bps``: payload bits per second that the server received."""

    seconds: float
    packets: int
    lost: int
    goodput_bps: float


async def udp(
    client: NetNs, server: NetNs, server_ip: str, rate_bps: int, seconds: int, payload_bytes: int, port: int = 5201
) -> UdpResult:
    """Send UDP from ``client`` to ``server`` at ``rate_bps`` of payload. MachineError when that fails."""
    tool = shutil.which("iperf3")
    if tool is None:
        raise MachineError("iperf3 is not installed; apt-get install iperf3")
    common = [tool, "-p", str(port), "--forceflush"]
    sending = ["-c", server_ip, "-u", "-b", str(rate_bps), "-l", str(payload_bytes), "-t", str(seconds), "-J"]
    with tempfile.TemporaryFile() as heard, tempfile.TemporaryFile() as told:
        listener = spawn(server, [*common, "-s", "-1"], subprocess.PIPE)
        try:
            await said(listener, b"listening", 5.0, "iperf3 server")
            sender = spawn(client, [*common, *sending], told, heard)
            try:
                await ended(sender, seconds + 10.0, "iperf3 client")
            finally:
                sender.kill()
                sender.wait()
        finally:
            listener.kill()
            listener.communicate()
        told.seek(0)
        return _parse(told.read(), payload_bytes)


def spawn(
    ns: NetNs, command: list[str], stdout: int | IO[bytes], stderr: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program in a namespace."""
    # A child is born into the namespace its parent's thread is in.
    with ns.entered():
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr or subprocess.DEVNULL)


async def said(server: subprocess.Popen[bytes], words: bytes, timeout_s: float, who: str) -> None:
    """Wait for the words with which a server says that it listens. MachineError when it ends, or says nothing."""
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
    """Wait for the end of a program. MachineError when that takes longer."""
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


def _parse(text: bytes, payload_bytes: int) -> UdpResult:
    try:
        report = json.loads(text)
        if "error" in report:
            raise MachineError(f"iperf3: {report['error']}")
        total = report["end"]["sum"]
        packets, lost, seconds = int(total["packets"]), int(total["lost_packets"]), float(total["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise MachineError(f"iperf3's answer is not understood: {text[:200].decode(errors='replace')!r}") from error
    return UdpResult(seconds, packets, lost, (packets - lost) * payload_bytes * 8 / seconds)
