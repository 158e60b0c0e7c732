"""Run's handle on the process that captures packets around edges: start it, send it the windows, wait for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hpn.scenarios.drill.capture import links_of, windows_of
from hpn.scenarios.drill.model import Drill
from hpn.testbed import versions
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Link
from hpn.testbed.kernel.packets.capturing import Order, TapOrder, WindowOrder
from hpn.testbed.kernel.process.processes import piped
from hpn.testbed.lab.lab import Lab
from hpn.testbed.package import ROOT

FOLDER = "captures"
_CLOSING_S = 30.0


class CaptureProcess:
    """Captures of ``drill`` on ``lab``, written to ``captures`` of the run folder; no-op if the drill has none.

    The process is separate, so that its cost falls on no event loop. Outside the windows no link is tapped.
    """

    def __init__(self, drill: Drill, lab: Lab, out: Path) -> None:
        self._drill = drill
        self._folder = out / FOLDER
        self._links: Sequence[Link] = ()
        self._spaces = lab.wiring.namespaces
        self._process: subprocess.Popen[bytes] | None = None
        if drill.captures is not None:
            self._links = links_of(drill.captures, lab.fabric, drill.timeline.faults)
            self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder.mkdir()
        with (self._folder / "captures.json").open("wb") as found, (self._folder / "stderr").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "hpn.testbed.kernel.packets.capturing"],
                stdin=subprocess.PIPE,
                stdout=found,
                stderr=log,
                pass_fds={self._spaces[link.upper.node].fd for link in self._links},
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )

    def begin(self, start_ns: int) -> None:
        """Send the taps and windows to the capture process; traffic starts at ``start_ns``."""
        if self._process is None or self._drill.captures is None:
            return
        timeline = self._drill.timeline
        taps = [
            TapOrder(link.name, link.upper.node, self._spaces[link.upper.node].fd, link.upper.name, link.rate_bps)
            for link in self._links
        ]
        windows = [
            WindowOrder(str(self._folder / f"{w.name}.pcapng"), start_ns + w.start_ns, start_ns + w.end_ns)
            for w in windows_of(self._drill.captures, timeline.faults, timeline.end_ns)
        ]
        order = Order(taps, windows, self._drill.captures.snap_bytes, f"hpn {versions.HPN}")
        stdin = piped(self._process.stdin)
        with suppress(BrokenPipeError):  # the process is gone; ``end`` reports it
            stdin.write(order.line())
            stdin.flush()

    async def end(self) -> None:
        """Let the process write what it captured and wait for its end. MachineError when it failed."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(BrokenPipeError):
            piped(process.stdin).close()
        try:
            await asyncio.to_thread(process.wait, _CLOSING_S)
        except subprocess.TimeoutExpired:
            process.kill()
        log = self._folder / "stderr"
        said = log.read_text(errors="replace").strip()
        if not (self._folder / "captures.json").stat().st_size:  # written last; another part may reap its exit code
            last = said.splitlines()[-1] if said else f"not done {_CLOSING_S:g} s after the run; capture fewer links"
            raise MachineError(f"the capture ended early: {last}")
        if not said:
            log.unlink()

    def kill(self) -> None:
        """Kill the process; used when the run ends early."""
        if self._process is not None:
            self._process.kill()
