"""Slim Fly: 2q^2 switches, any two at most two links apart (Besta, Hoefler, SC 2014, doi 10.1109/SC.2014.34).

Its graph is that of McKay, Miller and Siran (1998). There are two kinds of switches, (x, y) and (m, c), numbers of the
field with q elements. (x, y) is joined with (x, y') where y - y' is in a set X, (m, c) with (m, c') where c - c' is in
a set X', and (x, y) with (m, c) where y = mx + c. So q is a power of a prime, 4w - 1, 4w or 4w + 1.

A pod is one of that paper's q racks: the q switches (x, .) and the q switches (m, .) with m = x. Hosts per switch are
half the links of one there: a balanced network.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.direct import MEANINGLESS, PER_SWITCH, Pair, built, counted, pair
from hpn.testbed.fabric.field import Field, is_prime_power
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_NAME = "slim-fly"
_LEAST, _MOST = 3, 64


def slim_fly_sizes() -> tuple[int, ...]:
    """Return the numbers q for which there is one, up to the most pods that a topology may have."""
    return tuple(q for q in range(_LEAST, _MOST + 1) if q % 4 != 2 and is_prime_power(q))


def generators(field: Field) -> tuple[frozenset[int], frozenset[int]]:
    """Return the sets X and X': even and odd powers of a primitive element, each as large as the other.

    Where q is 4w - 1, powers stop half-way and their negatives are added, for a difference has no sign.
    """
    q = field.size
    stop = (q + 1) // 2 if q % 4 == 3 else q
    even = {field.power(n) for n in range(0, stop - 1, 2)}
    odd = {field.power(n) for n in range(1, stop, 2)}
    sets = (even | {field.minus(0, each) for each in even}, odd | {field.minus(0, each) for each in odd})
    return frozenset(sets[0]), frozenset(sets[1])


def slim_fly_pairs(q: int) -> Iterator[Pair]:
    """Yield the pairs of joined switches; number 2qx + y is (x, y), and 2qm + q + c is (m, c)."""
    field = Field(q)
    of_kind = generators(field)
    for rack, kind in product(range(q), range(2)):
        first = 2 * q * rack + q * kind
        for one, other in combinations(range(q), 2):
            if field.minus(one, other) in of_kind[kind]:
                yield first + one, first + other
    for x, m, c in product(range(q), repeat=3):
        y = field.plus(field.times(m, x), c)
        yield pair(2 * q * x + y, 2 * q * m + q + c)


def _build(spec: FabricSpec) -> Fabric:
    return built(spec, slim_fly_pairs(spec.pods))


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield a q for which there is no graph, with the next that do, and another number of switches in a rack."""
    sizes, q = slim_fly_sizes(), spec.pods
    if q not in sizes:
        near = [
            max((each for each in sizes if each < q), default=0),
            min((each for each in sizes if each > q), default=0),
        ]
        text = f"pods is {q}, which is the q of a Slim Fly and a power of a prime, 4w - 1, 4w or 4w + 1"
        yield ("pods",), f"{text}; write {' or '.join(str(each) for each in near if each)}"
        return
    yield from counted(spec, q, 2 * q, f"a Slim Fly of q = {q} has q racks of 2q switches")


ARCHITECTURE = Architecture(
    _NAME,
    "2q^2 switches of which any two are at most two links apart, q racks of 2q; only for some q",
    MEANINGLESS,
    _build,
    _contradictions,
    cores=False,
    core_ports="hash",
    direct=True,
    presets=(
        Preset(
            "18 hosts on a Slim Fly of q = 3: 18 switches with 5 links each, 45 links, at most 2 apart",
            FabricSpec(name="tiny-slim-fly", architecture=_NAME, pods=3, segments=6, hosts=1, bgp=PER_SWITCH),
        ),
    ),
)
