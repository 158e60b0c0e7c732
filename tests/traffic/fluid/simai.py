"""SimAI's AllReduce over 256 GPUs on single ToRs without rails, by our rates: its topology, its messages, its hash.

What it does is from aliyun/SimAI and aliyun/ns-3-alibabacloud, read at cef83f9d and c2bfbf46; docs/model.md says what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.flows import Flows
from hpn.traffic.fluid.pods import Pods
from hpn.traffic.fluid.routes import FailedParts, paths_of
from hpn.traffic.fluid.solve import Floats, Numbers, max_min

GPUS = 256
A_HOST = 8
A_TOR = 64
DCN_PLUS = FabricSpec(architecture="single-tor", segments=GPUS // A_TOR, hosts=A_TOR, rails=1, aggs=64)
"""``gen_Topo_Template.py -topo DCN+ -g 256 -psn 64 -bw 400Gbps``: 64 GPUs on a ToR, all of a host on one, and a link of
400G from each ToR to each of 64 Aggs. A host of one NIC stands for a GPU."""
MESSAGES = 2 * (GPUS // A_HOST - 1)
"""That a GPU sends: the workload's AllReduce is of gradients, over groups of one GPU of each host, eight at once."""
_FIRST_PORT, _PORT = 10_000, 100
_FIRST_TOR = GPUS + GPUS // A_HOST  # numbers of nodes: GPUs, NVLink switches, ToRs, Aggs

Words = npt.NDArray[np.uint32]
Port = Callable[[Numbers], Numbers]


def one_a_message(message: Numbers) -> Numbers:
    """SimAI's: the next source port for each message between two GPUs."""
    return _FIRST_PORT + message


def one_for_all(message: Numbers) -> Numbers:
    """A queue pair that stays, as NCCL's do."""
    return np.full_like(message, _FIRST_PORT)


def bus_gbyte_s(port: Port, spec: FabricSpec = DCN_PLUS) -> Floats:
    """Bus bandwidth of each of the eight groups, GB/s: the rate of a NIC, by how much longer their messages took."""
    pods = Pods.of(spec)
    return pods.port_bps / 8e9 * MESSAGES / _ends(pods, _paths(pods, port))


def murmur(words: Sequence[Words], seed: Words) -> Words:
    """MurmurHash3 for 32 bits (Appleby; public domain), by which ns-3's switches choose among next hops."""

    def rotated(word: Words, bits: int) -> Words:
        return word << np.uint32(bits) | word >> np.uint32(32 - bits)

    found = seed.astype(np.uint32)
    for word in words:
        mixed = rotated(word.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        found = rotated(found ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    found = found ^ np.uint32(4 * len(words))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        found = (found ^ found >> np.uint32(shift)) * np.uint32(factor)
    return found ^ found >> np.uint32(16)


def _address(gpu: Numbers) -> Words:
    return (0x0B000001 + (gpu // 256 << 16) + (gpu % 256 << 8)).astype(np.uint32)


def _paths(pods: Pods, port: Port) -> npt.NDArray[np.int32]:
    """Directed links of every message: GPU by GPU, in the order in which it sends them."""
    src = np.repeat(np.arange(GPUS, dtype=np.int64), MESSAGES)
    dst = (src + A_HOST) % GPUS
    ports = port(np.tile(np.arange(MESSAGES, dtype=np.int64), GPUS))
    key = [_address(src), _address(dst), (ports | _PORT << 16).astype(np.uint32)]
    agg = murmur(key, (_FIRST_TOR + src // A_TOR).astype(np.uint32)) % np.uint32(pods.aggs)
    none = np.zeros(len(src), np.int8)
    flows = Flows(src, dst, MESSAGES, none, none, agg.astype(np.int16)[:, None], none.astype(np.int16)[:, None])
    return paths_of(pods, flows, FailedParts.nothing(pods)).reshape(GPUS, MESSAGES, -1)


def _ends(pods: Pods, paths: npt.NDArray[np.int32]) -> Floats:
    """When each group has its last message, in times that one takes alone.

    A GPU sends one after the other, each when it has the one before of the GPU before; rates change when one ends.
    """
    capacity = pods.capacity() / pods.port_bps
    sent, may, left = np.zeros(GPUS, np.int64), np.ones(GPUS, np.int64), np.ones(GPUS)
    ends, now = np.zeros(A_HOST), 0.0
    while len(at := np.flatnonzero(sent < np.minimum(may, MESSAGES))):
        rates = max_min(paths[at, sent[at]], capacity)
        step = float((left[at] / rates).min())
        now += step
        left[at] -= rates * step
        ended = at[left[at] < 1e-9]
        left[ended] = 1.0
        sent[ended] += 1
        may[(ended + A_HOST) % GPUS] += 1
        ends[ended % A_HOST] = now
    return ends
