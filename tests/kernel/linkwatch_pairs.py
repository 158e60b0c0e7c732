"""250 links between two namespaces, and who asks and who listens there."""

from __future__ import annotations

from hpn.testbed.kernel import linkwatch, ns
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent

PAIRS = 250
NEAR, FAR = range(1000, 1000 + PAIRS), range(2000, 2000 + PAIRS)


def pairs() -> tuple[Netlink, Monitor]:
    """The links are up: who asks at the near ends, and who listens at the far ones."""
    here, there = ns.create("here"), ns.create("there")
    made = [
        rtnl.add_veth(f"n{at}", near, here, f"f{at}", far, there, mac=_mac(1, at), peer_mac=_mac(2, at), mtu=1500)
        for at, (near, far) in enumerate(zip(NEAR, FAR, strict=True))
    ]
    Netlink(ns.current("root")).run(made)
    asking, monitor = Netlink(here), Monitor(there, link=True)
    Netlink(there).run([rtnl.set_link(far, up=True) for far in FAR])
    linkwatch.carry_out_far(asking, NEAR)
    heard(monitor)
    return asking, monitor


def heard(monitor: Monitor) -> dict[int, bool]:
    """The carrier that each far end was last said to have, of all that waits to be read."""
    found: dict[int, bool] = {}
    while events := monitor.read():  # as much as a turn of a loop may take
        found |= {event.ifindex: event.carrier for event in events if isinstance(event, LinkEvent)}
    return found


def _mac(side: int, at: int) -> str:
    return f"02:00:00:{side:02x}:{at >> 8:02x}:{at & 255:02x}"
