"""sockperf as a third-party reference for the cost of a packet: one UDP run at a rate between two namespaces."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process.processes import piped
from hpn.traffic.tools.foreign import ended, said, spawn

_SENT = re.compile(r"Total of (\d+) messages sent in ([\d.]+) sec")
_CAME = re.compile(r"Total (\d+) messages received")


@dataclass(frozen=True, slots=True)
class Throughput:
    """Message counts of sockperf at both ends. The few warm-up messages may be among those received."""

    seconds: float
    sent: int
    received: int


def installed() -> bool:
    """Return True if sockperf is installed."""
    return shutil.which("sockperf") is not None


async def udp(
    client: NetNs, server: NetNs, server_ip: str, packets_per_s: int, seconds: int, payload_bytes: int, port: int = 5202
) -> Throughput:
    """Send UDP from ``client`` to ``server`` at that rate. MachineError on failure."""
    if not installed():
        raise MachineError("sockperf is not installed; apt-get install sockperf")
    at = ["-i", server_ip, "-p", str(port)]
    sending = ["sockperf", "throughput", *at, "-m", str(payload_bytes), "-t", str(seconds), "--mps", str(packets_per_s)]
    with tempfile.TemporaryFile() as told:
        listener = spawn(server, ["sockperf", "server", *at], subprocess.PIPE)
        try:
            await said(listener, b"block on socket", 5.0, "sockperf server")
            sender = spawn(client, sending, told)
            try:
                await ended(sender, seconds + 10.0, "sockperf client")
            finally:
                sender.kill()
                sender.wait()
            listener.send_signal(signal.SIGINT)  # makes it print its totals
            os.set_blocking(piped(listener.stdout).fileno(), True)
            heard, _ = listener.communicate(timeout=10)
        finally:
            listener.kill()
            listener.wait()
        told.seek(0)
        return parse(told.read().decode(errors="replace"), heard.decode(errors="replace"))


def parse(client: str, server: str) -> Throughput:
    """Parse the final output of both ends. MachineError when it is not understood."""
    sent, came = _SENT.search(client), _CAME.search(server)
    if sent is None or came is None:
        raise MachineError(f"sockperf's answer is not understood: {client[-200:]!r}, {server[-200:]!r}")
    return Throughput(float(sent[2]), int(sent[1]), int(came[1]))
