"""Directed links of a fabric, numbered: link i of the fabric is 2i towards the Aggs and 2i + 1 down again. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.traffic.fluid.solve import Floats

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Both directions of every link of ``fabric``; arrays and tuples are by number."""

    fabric: Fabric
    names: tuple[str, ...]  # 'p0.s0.h0.r0.0 up': from the host to its ToR
    capacity: Floats  # bit/s, scaled as the fabric's rates are
    tier: tuple[LinkKind, ...]
    plane: Numbers
    leaving: Mapping[tuple[str, str], int]  # node and name of a port to the directed link that leaves by it

    @classmethod
    def of(cls, fabric: Fabric) -> Links:
        """Return the directed links of a fabric, including those of spare hosts."""
        twice = [link for link in fabric.links for _ in range(2)]
        leaving: dict[tuple[str, str], int] = {}
        for at, link in enumerate(fabric.links):
            leaving[link.lower.node, link.lower.name] = 2 * at
            leaving[link.upper.node, link.upper.name] = 2 * at + 1
        return cls(
            fabric,
            tuple(f"{link.name} {('up', 'down')[at % 2]}" for at, link in enumerate(twice)),
            np.array([link.rate_bps for link in twice], dtype=np.float64),
            tuple(link.kind for link in twice),
            np.array([link.plane for link in twice], dtype=np.int64),
            leaving,
        )

    def __len__(self) -> int:
        """Number of directed links."""
        return len(self.names)

    def out_of(self, node: str, port: str) -> int:
        """Return the directed link that leaves ``node`` by the interface ``port``. KeyError if there is none."""
        return self.leaving[node, port]

    def into(self, node: str, port: str) -> int:
        """Return the directed link that enters ``node`` by the interface ``port``. KeyError if there is none."""
        return self.leaving[node, port] ^ 1

    def of_parts(self, names: Iterable[str]) -> Numbers:
        """Return both directions of these links, and of all links of these nodes and NICs. InputError for others."""
        cables = {self.leaving[link.lower.node, link.lower.name] for link in self.fabric.links_of_all(names)}
        return np.array(sorted(at + way for at in cables for way in (0, 1)), dtype=np.int64)

    def of_plane(self, plane: int) -> Numbers:
        """Return every directed link of a plane."""
        return np.flatnonzero(self.plane == plane)

    def of_tier(self, tier: LinkKind) -> Numbers:
        """Return every directed link of a tier."""
        return np.flatnonzero(np.array([kind is tier for kind in self.tier], dtype=np.bool_))

    def without(self, numbers: Numbers) -> Floats:
        """Return the capacities with these directed links failed: 0 there."""
        return self.scaled(numbers, 0.0)

    def scaled(self, numbers: Numbers, factor: float) -> Floats:
        """Return the capacities with these directed links at ``factor`` of theirs."""
        capacity = self.capacity.copy()
        capacity[numbers] *= factor
        return capacity
