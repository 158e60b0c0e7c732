"""What of hpn cannot run where every NIC has an RDMA device: what receives at the port that the driver has. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.files.document import Where
from hpn.traffic.flows.flow import ROCE_PORT


def port_problem(*, job: bool, streams: bool, client: bool) -> Iterator[tuple[Where, str]]:
    """Where a drill on such a topology says what cannot be, and what to do; nothing where a client is alone.

    ``client``: whether there is one, which is why there are devices or does no harm.
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
