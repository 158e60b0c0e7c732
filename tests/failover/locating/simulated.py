"""Probes on a fabric by arithmetic: their paths, and what a fault takes from them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hpn.failover.locating.parts import Part, Suspects, ends_of, suspects_of, ways_of
from hpn.failover.locating.seen import Counts, Seen
from hpn.scenarios.model.router import Lag, ModelRouter
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lag.jhash import nft_jhash
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import flows_for
from hpn.traffic.fluid.forwarding import Forwarding


@dataclass(frozen=True)
class Probed:
    """Probes and their suspects; ``pps``: packets per second of each path."""

    suspects: Suspects
    pps: Counts
    flows: tuple[FlowSpec, ...] = ()

    def seen(self, seconds: float, loss: Mapping[Part, float], seed: int = 1) -> Seen:
        """Return what these losses (0 .. 1, by part) leave of ``seconds`` of probes."""
        dice = np.random.default_rng(seed)
        sent = np.maximum(np.rint(self.pps * seconds), 1).astype(np.int64)
        arriving = np.ones(len(sent))
        for part, share in loss.items():
            suspect = self.suspects.of(part)
            assert suspect is not None, f"no path crosses {part}"
            arriving[self.suspects.across(suspect)] *= 1 - share
        return Seen(self.suspects, sent, dice.binomial(sent, 1 - arriving).astype(np.int64))

    def in_bucket(self, part: Part, buckets: int, bucket: int, seed: int) -> Seen:
        """Return what one second of probes shows of a part that loses one hash bucket of flows."""
        suspect = self.suspects.of(part)
        assert suspect is not None, f"no path crosses {part}"
        crossing = self.suspects.across(suspect)
        hashes = np.array([nft_jhash(_tuple(flow), buckets, seed) for flow in self.flows])
        sent = np.maximum(self.pps, 1).astype(np.int64)
        return Seen(self.suspects, sent, np.where(crossing & (hashes == bucket), sent, 0))


def _tuple(flow: FlowSpec) -> bytes:
    """Return a flow's 5-tuple as nftables hashes it."""
    addresses = socket.inet_aton(flow.src_ip) + socket.inet_aton(flow.dst_ip)
    return addresses + struct.pack("!HxxHxx", flow.sport, ROCE_PORT)


def probed(fabric: Fabric, pattern: str = "probes", choice: str = "covering", queue_pairs: int = 4) -> Probed:
    """Return the probes of a pattern at 1 % load."""
    flows = flows_for(fabric, pattern, load=0.01, queue_pairs=queue_pairs, path_mtu=256)
    router = ModelRouter(fabric, Lag(fabric), Forwarding(fabric))
    router.look_up_all(flows)
    chosen = CHOICES[choice].choose(flows, router, (), fabric.spec.seed).flows
    ends = ends_of(fabric)
    paths = [
        ways_of(ends, fabric.nic(flow.src_nic).host, router.links(flow.src_nic, flow.dst_nic, flow.sport))
        for flow in chosen
    ]
    return Probed(suspects_of(ends, paths), np.array([flow.rate_pps for flow in chosen]), tuple(chosen))
