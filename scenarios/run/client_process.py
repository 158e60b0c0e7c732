"""One process of a client on a lab: start it in its host, read its output, signal the run's start, notice its end.

Changes when a process is started or ended in another way. The owner decides what its lines mean for the run
(``scenarios.run.clients_on_lab``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from hpn.scenarios.run.client_output import ClientOutput
from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process.confined import Confined, Ended
from hpn.traffic.client.lines import Line, Output, Said
from hpn.traffic.client.log import Log
from hpn.traffic.client.plan import Adapter, ClientProcess

Heard = Callable[["RunningClient", Said, int], None]


class RunningClient:
    """Process of a client; ``heard`` gets its messages on standard output, ``gone`` is called when it has ended.

    ``ended`` and ``ended_at_ns`` are its exit status and time, None while it runs.
    """

    def __init__(
        self,
        process: ClientProcess,
        space: NetNs,
        adapter: Adapter,
        heard: Heard,
        gone: Callable[[RunningClient], None],
    ) -> None:
        self.process = process
        self.log = Log()
        self.ended: Ended | None = None
        self.ended_at_ns: int | None = None
        self._adapter = adapter
        self._heard = heard
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._confined = Confined(space)
        self._outputs = (
            ClientOutput(self._confined.stdout, self._printed),
            ClientOutput(self._confined.stderr, self._complained),
        )
        self._loop.add_reader(self._confined.pidfd, self._exited)

    @property
    def name(self) -> str:
        """Name for messages: 'rank 2 in p0.s1.h0', 'ranks 0 to 3 in p0.s0.h0'."""
        ranks = self.process.ranks
        which = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
        return f"{which} in {self.process.host}"

    @property
    def pid(self) -> int:
        """Process ID of the first process of its PID namespace."""
        return self._confined.pid

    def run(self, env: Mapping[str, str], cwd: Path, at_ns: int = 0, *, batch: bool) -> None:
        """Execute the program in this process at ``at_ns``; ``batch`` as in ``Confined.order``."""
        self._confined.order(self.process.argv, env, cwd, at_ns, batch=batch)

    def tell(self, line: str) -> None:
        """Write a line to its standard input; a process that no longer reads is noticed when it ends."""
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._confined.stdin, line.encode())

    def terminate(self) -> None:
        """Send it the request to terminate."""
        if self.ended is None:
            self._confined.terminate()

    def kill(self) -> None:
        """Kill it with all its children and return when it is gone. The second call is a no-op."""
        if self.ended is None:
            self._confined.kill()
            self._exited()

    def _printed(self, line: Line, at_ns: int) -> None:
        self.log.add(line.text, at_ns)
        for said in self._adapter.heard(line):
            self._heard(self, said, at_ns)

    def _complained(self, line: Line, at_ns: int) -> None:
        self.log.add(line.text, at_ns)
        self._heard(self, Output(line.text), at_ns)

    def _exited(self) -> None:
        at_ns = now_ns()
        self._loop.remove_reader(self._confined.pidfd)
        ended = self._confined.ended()
        for output in self._outputs:
            output.end()
        self._confined.close()
        self.ended, self.ended_at_ns = ended, at_ns
        self._gone(self)
