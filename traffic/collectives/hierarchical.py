"""AllReduce in two levels, for rail-optimised fabrics: inside hosts, and between hosts rail by rail. PURE.

Inside each host the GPUs reduce one shard each over NVLink. A ring on every rail sums the shards of all hosts. Then the
GPUs of a host exchange their shards. No traffic crosses rails in the fabric, and every NIC carries its share: 2 (hosts
- 1) / hosts of a shard. The time on NVLink is modelled (``Inside``).
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.errors import InputError
from hpn.traffic.collectives import ring
from hpn.traffic.collectives.plan import At, Plan
from hpn.traffic.collectives.split import split_twice


def all_reduce(plan: Plan) -> None:
    """Lay out the AllReduce. InputError unless every host of the group takes part with the same rails."""
    hosts = _members_by_host(plan)
    shards = len(hosts[0])
    buffer = plan.buffer(split_twice(plan.size_bytes, shards * len(hosts), plan.slices, plan.path_mtu))

    def chunk(shard: int, part: int) -> list[At]:
        first = (shard * len(hosts) + part) * plan.slices
        return [(buffer, first + at) for at in range(plan.slices)]

    pieces = [[piece for part in range(len(hosts)) for piece in chunk(shard, part)] for shard in range(shards)]
    for members in hosts:
        _each_to_each(plan, members, pieces, gather=False)
    for shard in range(shards):
        rail, chunks = [members[shard] for members in hosts], [chunk(shard, part) for part in range(len(hosts))]
        ring.reduce_round(plan, rail, chunks)
        ring.gather_round(plan, rail, chunks)
    for members in hosts:
        _each_to_each(plan, members, pieces, gather=True)
    for member in range(plan.members):
        for piece in (piece for of_shard in pieces for piece in of_shard):
            plan.expect(member, piece, range(plan.members))


def _each_to_each(plan: Plan, members: Sequence[int], pieces: Sequence[Sequence[At]], *, gather: bool) -> None:
    """Exchange shards in a host: the i-th member gets shard i from every other to sum, or gives it to every other."""
    for ahead in range(1, len(members)):
        for at, source in enumerate(members):
            to = (at + ahead) % len(members)
            for piece in pieces[at if gather else to]:
                plan.move(source, members[to], piece, reduce=not gather)


def _members_by_host(plan: Plan) -> list[list[int]]:
    """Return the members of each host, in the order of their rails."""
    found: dict[str, dict[int, int]] = {}
    for member, place in enumerate(plan.places):
        found.setdefault(place.host, {})[place.rail] = member
    rails = {host: sorted(members) for host, members in found.items()}
    first, *others = rails
    for other in others:
        if rails[other] != rails[first]:
            raise InputError(
                f"all-reduce/hierarchical needs the same rails at every host: {first} has {rails[first]},"
                f" {other} has {rails[other]}; take ranks of whole hosts, or the algorithm ring"
            )
    return [[members[rail] for rail in sorted(members)] for members in found.values()]
