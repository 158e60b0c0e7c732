"""iperf3 as a third-party reference for throughput: one UDP run between two namespaces."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.tools.foreign import ended, said, spawn


@dataclass(frozen=True, slots=True)
class UdpResult:
    """Result of iperf3. ``goodput_bps``: payload bits per second that the server received."""

    seconds: float
    packets: int
    lost: int
    goodput_bps: float


async def udp(
    client: NetNs, server: NetNs, server_ip: str, rate_bps: int, seconds: int, payload_bytes: int, port: int = 5201
) -> UdpResult:
    """Send UDP from ``client`` to ``server`` at ``rate_bps`` of payload. MachineError on failure."""
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
