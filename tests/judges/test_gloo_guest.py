"""PyTorch's gloo judges how long our ring AllReduce takes: the same ranks, bytes and links, in virtual time.

Both in one guest, one after the other. TCP needs some steps to find its window, so gloo's first ten are left out; ours
has no window to find. Later ones were within 0.01 % of each other in 18 of 20 draws of seeds and ports; in one four of
them took up to 0.8 ms more, in one of CI's all did, up to 9 ms: TCP's affair. So the faster half is what is judged.

Whether acknowledgements share a port with data is for the hashes to say, and those go by port numbers that the kernel
hands out and by the seeds of the checkout's path: gloo's steps lie between those of ports that carry none and of ports
that carry one for each segment.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from statistics import fmean

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from hpn.traffic.flows.framing import ACK_BYTES, ETHERNET_BYTES, IMMEDIATE_BYTES, IP_UDP_BYTES, RETH_BYTES, wire_bytes

pytestmark = [pytest.mark.guest, pytest.mark.extra, pytest.mark.timeout(600)]

_ROOT = Path(__file__).parents[2]
_RANKS, _SIZE, _SLICES = 4, 4_000_000, 8
_MEMORY_MB = 3072
_IMPORTS_S = 400.0  # four ranks import torch in a guest that says nothing meanwhile
_WINDOW_FOUND, _CONNECTED = 10, 1  # steps that are left out, of gloo's and of ours
_PORT_BPS = 200_000_000
_PATH_MTU, _ACK_EVERY = 4096, 16
_MTU = 4200
_TCP_IP_BYTES = 20 + 20 + 12  # with time stamps (RFC 7323)
_TCP_ACK_BYTES = ETHERNET_BYTES + _TCP_IP_BYTES
_PART = 0.01  # so near the wire's time a step is to be
_PAYLOAD = 2 * (_RANKS - 1) / _RANKS * _SIZE  # that a rank has to send in a step at the least

_GLOO = f"""\
drill: gloo
summary: gloo sums over all hosts
topology: tiny
workload:
  client: {{run: torch, work: all-reduce, size: {_SIZE // 10**6} MB, pause: 50 ms}}
timeline:
  healthy: 5 s
expect:
  - job_survives: yes
  - wrong_results: {{at_most: 0}}
"""
_OURS = f"""\
drill: ours
summary: our ring sums over all hosts
topology: tiny
job:
  collective: {{kind: all-reduce, algorithm: ring, size: {_SIZE // 10**6} MB, slices: {_SLICES}, pause: 50 ms}}
  gpus: 1
timeline:
  healthy: 2 s
expect:
  - wrong_results: {{at_most: 0}}
"""


def _tcp_ms() -> tuple[float, float]:
    """Full segments with Ethernet, IP and TCP headers: without acknowledgements of what comes, with one for each."""
    segments = _PAYLOAD / (_MTU - _TCP_IP_BYTES)
    data = _PAYLOAD + segments * _TCP_ACK_BYTES
    return _wire_ms(data), _wire_ms(data + segments * _TCP_ACK_BYTES)


def _rocev2_ms() -> float:
    """Packets of the path MTU with Ethernet, IP, UDP, BTH and ICRC; RETH and immediate of each message; ACKs."""
    messages = 2 * (_RANKS - 1) * _SLICES
    packets = messages * -(-_PAYLOAD / messages // _PATH_MTU)
    headers = packets * (wire_bytes(_PATH_MTU) - _PATH_MTU) + messages * (RETH_BYTES + IMMEDIATE_BYTES)
    acks = packets / _ACK_EVERY + messages
    return _wire_ms(_PAYLOAD + headers + acks * (ETHERNET_BYTES + IP_UDP_BYTES + ACK_BYTES))


def _wire_ms(frames_bytes: float) -> float:
    """How long a port takes for so many bytes of frames."""
    return 8e3 * frames_bytes / _PORT_BPS


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is missing; a build for CPUs is enough")
    engine = Uml(virtual_time=True, stall_s=_IMPORTS_S)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    place = tmp_path_factory.mktemp("gloo")
    (place / "gloo.yaml").write_text(_GLOO)
    (place / "ours.yaml").write_text(_OURS)
    drills = (str(place / "gloo.yaml"), str(place / "ours.yaml"))
    command = (sys.executable, "-B", str(_ROOT / "cli.py"), "drill", "run", *drills, "--out", str(place))
    job = GuestJob(command, place, (place,), {"HPN_STATE_DIR": "/run/hpn-state"}, _MEMORY_MB, 1, 560.0)
    lines: list[str] = []
    result = engine.run(job, lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    return place


def _steps_ms(run: Path, left_out: int) -> list[float]:
    """How long each all-reduce took its slowest rank, behind those that are left out."""
    took: dict[int, float] = {}
    for line in (run / "spans.jsonl").read_text().splitlines():
        span = json.loads(line)
        if span["kind"] == "all-reduce":
            ms = (span["end_ns"] - span["begin_ns"]) / 1e6
            took[span["iteration"]] = max(ms, took.get(span["iteration"], 0.0))
    found = [ms for _, ms in sorted(took.items())][left_out:]
    assert len(found) >= 4
    return found


def _settled_ms(run: Path) -> float:
    """What gloo's steps take when its TCP has nothing to repeat: the faster half of those behind the first ten."""
    steps = sorted(_steps_ms(run, _WINDOW_FOUND))
    return fmean(steps[: (len(steps) + 1) // 2])


def test_an_all_reduce_takes_as_long_as_gloo_s_header_for_header(out: Path) -> None:
    ours, gloos = fmean(_steps_ms(out / "ours", _CONNECTED)), _settled_ms(out / "gloo")
    least, most = _tcp_ms()
    print(f"ours {ours:.3f} ms of {_rocev2_ms():.3f}, gloo {gloos:.3f} ms of {least:.3f} to {most:.3f}")
    assert (1 - _PART) * _rocev2_ms() / most <= ours / gloos <= (1 + _PART) * _rocev2_ms() / least
    assert ours == pytest.approx(_rocev2_ms(), rel=_PART)


def test_gloo_takes_what_its_frames_take(out: Path) -> None:
    """The link decides, and nothing else does: this machine's CPU would make every step longer."""
    (least, most), steps = _tcp_ms(), _steps_ms(out / "gloo", _WINDOW_FOUND)
    print(f"gloo {min(steps):.4f} to {max(steps):.4f} ms")
    assert (1 - _PART) * least <= min(steps)
    assert _settled_ms(out / "gloo") <= (1 + _PART) * most
