"""Runs drills with a dumpcap on every LAG of their labs: python captured.py OUT DRILL_FILE... (in a guest, as root).

The dumpcaps join from outside once the lab has converged, before traffic begins, and live in the hosts' network
namespaces only, so that they end when they are told to and not with the lab. They know nothing of us, we only where to
look: OUT/NAME is the run folder, OUT/NAME.captures has HOST.LAG.pcap for each LAG and NAME.txt, what the drill said.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

_CLI = Path(__file__).resolve().parents[2] / "cli.py"
_HEADERS = "96"  # bytes of each frame: Ethernet, IPv4, UDP, BTH and what follows
_HAND_OVER_S = 0.5  # libpcap has the kernel hand packets over every 250 ms, and what was not is lost at the end


def main(out: Path, drills: list[Path]) -> int:
    """Run each drill; the worst exit code."""
    return max(_captured(drill, out) for drill in drills)


def _captured(drill: Path, out: Path) -> int:
    place = out / f"{drill.stem}.captures"
    place.mkdir()
    command = (sys.executable, str(_CLI), "drill", "run", str(drill), "--keep-records", "--out", str(out))
    with (place / f"{drill.stem}.txt").open("w") as said, ExitStack() as captures:
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert run.stdout is not None
        for line in run.stdout:
            said.write(line)
            if line.rstrip().endswith(": converged"):
                for host, lag in _lags():
                    captures.enter_context(_Dumpcap(host, lag, place / f"{host.name}.{lag}.pcap"))
        code = run.wait()
        time.sleep(_HAND_OVER_S)
        return code


def _lags() -> Iterator[tuple[Path, str]]:
    """The namespace and name of each LAG in the sandbox that a drill made; there is one drill in the whole guest."""
    inside = (each / "root" / "run" / "netns" for each in Path("/proc").iterdir() if each.name.isdigit())
    netns = next(place for place in inside if place.is_dir())
    for host in sorted(netns.iterdir()):
        shown = subprocess.run(
            ["nsenter", f"--net={host}", "cat", "/proc/net/dev"], check=True, capture_output=True, text=True
        )
        for lag in re.findall(r"^ *(bond\d+):", shown.stdout, re.MULTILINE):
            yield host, lag


class _Dumpcap:
    """One dumpcap, capturing when entered; told to end, and waited for, at the end.

    It writes into the guest's own memory first: it gives up root's right to write into the folders of others, and the
    guest's root is another user to the host's files when somebody other than root started the guest.
    """

    def __init__(self, host: Path, lag: str, to: Path) -> None:
        self._to, self._own = to, Path(tempfile.gettempdir()) / to.name
        capture = ("dumpcap", "-P", "-q", "-s", _HEADERS, "-i", lag, "-w", str(self._own))
        self._command = ("nsenter", f"--net={host}", *capture)

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("File: "):
                return
        raise RuntimeError(f"dumpcap did not start: {' '.join(self._command)}")

    def __exit__(self, *_exception: object) -> None:
        self._process.send_signal(signal.SIGINT)
        _, said = self._process.communicate()
        shutil.copyfile(self._own, self._to)
        self._own.unlink()
        if re.search(r"dropped on interface .*: \d+/[1-9]", said):
            raise RuntimeError(f"dumpcap missed packets: {said}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
