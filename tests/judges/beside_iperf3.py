"""iperf3 measures what hpn measures: python beside_iperf3.py OUT (in a guest, as root).

OUT/full.yaml, a drill, runs alone; then its network, OUT/network.yaml, stands as a lab, and iperf3 sends in it. Then
OUT/cut.yaml runs, with an iperf3 in its lab that joins from outside once that has converged, and knows nothing of what
is cut. OUT/streams.json says for ``full`` and for ``cut`` what iperf3 sends: a list of ``Stream``. OUT gets the run
folders, and in NAME.N.json what the server of stream N said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypedDict

_CLI = Path(__file__).resolve().parents[2] / "cli.py"
_HPN = (sys.executable, str(_CLI))
_PASS, _FAIL = 0, 1
INTERVAL_S = 0.1
"""Of iperf3's report."""


class Stream(TypedDict):
    """UDP from a host to another, for ``seconds``, in datagrams of ``size`` bytes, ``bps`` of them."""

    source: str
    source_ip: str
    target: str
    target_ip: str
    port: int
    size: int
    bps: int
    seconds: int


def main(out: Path) -> int:
    """Measure; the exit code of ``cut``. A link that is offered too much loses packets, so ``full`` does not pass."""
    streams: Mapping[str, list[Stream]] = json.loads((out / "streams.json").read_text())
    if _drill(out, "full", []) not in (_PASS, _FAIL):
        return 2
    subprocess.run((*_HPN, "up", str(out / "network.yaml")), check=True)
    with ExitStack() as measured:
        for number, stream in enumerate(streams["full"]):
            measured.enter_context(_measured(stream, out / f"full.{number}.json"))
    subprocess.run((*_HPN, "down"), check=True)
    return _drill(out, "cut", streams["cut"])


def _drill(out: Path, name: str, beside: list[Stream]) -> int:
    command = (*_HPN, "drill", "run", str(out / f"{name}.yaml"), "--out", str(out))
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.stdout is not None
    with ExitStack() as measured:
        for line in run.stdout:
            print(line, end="", flush=True)
            if line.rstrip().endswith(": converged"):
                for number, stream in enumerate(beside):
                    measured.enter_context(_measured(stream, out / f"{name}.{number}.json"))
    return run.wait()


@contextmanager
def _measured(stream: Stream, said: Path) -> Iterator[None]:
    """One iperf3 at each end, from here on; at the end it is waited for."""
    netns = _namespaces()
    at = ("-p", str(stream["port"]), "-i", str(INTERVAL_S), "--forceflush")
    server = subprocess.Popen(
        (*_in(netns / stream["target"]), "iperf3", "-s", "-1", "-B", stream["target_ip"], "-J", *at),
        stdout=said.open("w"),
    )
    sends = ("-u", "-b", str(stream["bps"]), "-l", str(stream["size"]), "-t", str(stream["seconds"]))
    ends = ("-c", stream["target_ip"], "-B", stream["source_ip"])
    # A connection that is refused, as the server does not listen yet, is tried again.
    again = (
        "for try in 1 2 3 4 5 6 7 8 9; do sleep 0.05; " + " ".join(("iperf3", *ends, *at, *sends)) + " && break; done"
    )
    client = subprocess.Popen((*_in(netns / stream["source"]), "sh", "-c", again), stdout=subprocess.DEVNULL)
    yield
    client.wait()
    server.wait()


def _in(namespace: Path) -> tuple[str, ...]:
    return ("nsenter", f"--net={namespace}")


def _namespaces() -> Path:
    """Those of the lab that stands; there is one in the whole guest."""
    inside = (each / "root" / "run" / "netns" for each in Path("/proc").iterdir() if each.name.isdigit())
    return next(place for place in inside if place.is_dir() and any(place.iterdir()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
