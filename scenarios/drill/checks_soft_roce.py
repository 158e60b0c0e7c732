"""Check for traffic of hpn that cannot run with RDMA devices: it receives at the port of their driver. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.files.document import Where
from hpn.traffic.flows.flow import ROCE_PORT


def port_problem(*, job: bool, streams: bool, client: bool) -> Iterator[tuple[Where, str]]:
    """Yield the place and problem of traffic that such a topology does not allow; nothing for a client alone.

    ``client``: True if the drill has a client, which needs the devices or is compatible with them.
    """
    if not job and not streams:
        return
    what, key = ("a job", "job") if job else ("streams", "workload")
    text = f"{what} of hpn cannot receive where Soft-RoCE does (UDP port {ROCE_PORT})"
    if client:
        others = "job" if job else "the other keys of workload"
        yield ("workload", "client"), f"{text}; leave {others} out, or write another client"
    else:
        yield (key,), f"{text}; leave topology.soft_roce out, or write workload.client and nothing beside it"
