"""AllReduce in two levels, for rail-optimised fabrics: inside hosts, and between hosts rail by rail. PURE.

Inside each host the GPUs reduce one shard each over NVLink. A ring on every rail sums the shards of all hosts. Then the
GPUs of a host exchange their shards. No traffic crosses rails in the fabric, and every NIC carries its share: 2 (hosts
- 1) / hosts of a shard. The time on NVLink is modelled (``Inside``).
"""

from __future__ import annotations

from hpn.testbed.errors import InputError
from hpn.traffic.collectives import levels
from hpn.traffic.collectives.levels import DIRECT, RING, Level
from hpn.traffic.collectives.plan import Plan


def all_reduce(plan: Plan) -> None:
    """Lay out the AllReduce. InputError unless every host of the group takes part with the same rails."""
    hosts: dict[str, list[int]] = {}
    for place in plan.places:
        hosts.setdefault(place.host, []).append(place.rail)
    rails = {host: sorted(there) for host, there in hosts.items()}
    first, *others = rails
    for other in others:
        if rails[other] != rails[first]:
            raise InputError(
                f"all-reduce/hierarchical needs the same rails at every host: {first} has {rails[first]},"
                f" {other} has {rails[other]}; take ranks of whole hosts, or the algorithm ring"
            )
    inside = Level([rails[first].index(place.rail) for place in plan.places], DIRECT)
    numbers = {host: number for number, host in enumerate(hosts)}
    levels.all_reduce(plan, [(inside, Level([numbers[place.host] for place in plan.places], RING))])
