"""Fault actions on the control plane and ports of a running lab, each next to its inverse.

No daemon is notified: ports lose carrier, processes stop or die, packets are dropped, and the lab has to detect it. A
repeated action has no further effect, and neither has an inverse with nothing to undo.

Ports and switches are held down ``by`` a holder, and come back when their last holder releases them. So a cable that
was cut stays cut when the switch or host at its end comes back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from hpn.testbed.fabric.model import Link, LinkKind
from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.lab.breaking.fib_lag import FibLag
from hpn.testbed.lab.parts import LabParts
from hpn.testbed.lab.wire import PORTS_GROUP

K = TypeVar("K")

End = tuple[Link, str]
"""A link and the node at one of its ends."""

_LAG = "lag"
"""Holder of a forwarding that lags behind BGP."""

_TABLE = "hpn_dataplane"


def _drop_all(family: str) -> str:
    """Return rules that forward nothing; ``family``: of IPv4 alone, or of IPv6 too (inet)."""
    return f"table {family} {_TABLE} {{\nchain dead {{\ntype filter hook forward priority -300; policy drop;\n}}\n}}"


def _drop_none(family: str) -> str:
    return f"delete table {family} {_TABLE}"


class Breakage:
    """Current faults of one lab. ``prepare`` opens the sockets that a fault needs, so that the fault itself is fast."""

    def __init__(self, grips: LabParts) -> None:
        self._lab = grips
        self._nft: dict[str, Nft] = {}
        self._family = "ip" if grips.fabric.spec.srv6 is None else "inet"
        self._deaf: dict[str, set[Hashable]] = {}  # switches whose forwarding is down, with their holders
        self.fib = FibLag(
            grips, lambda name: self.stop_forwarding(name, _LAG), lambda name: self.start_forwarding(name, _LAG)
        )
        self._held: dict[tuple[str, str], set[Hashable]] = {}  # link and node of ends that are down, with their holders
        self._down: dict[str, set[Hashable]] = {}  # switches that crashed, with their holders
        self._withdrawn: set[str] = set()  # ToRs that do not announce host routes

    def down(self) -> set[str]:
        """Return the names of links with an end that is held down, and of switches that crashed."""
        return {link for link, _ in self._held} | self._down.keys()

    def held(self) -> dict[Hashable, set[str]]:
        """Return the names of links and switches that are down, by holder."""
        found: dict[Hashable, set[str]] = {}
        everything = [*((link, by) for (link, _), by in self._held.items()), *self._down.items()]
        for name, holders in everything:
            for holder in holders:
                found.setdefault(holder, set()).add(name)
        return found

    def prepare(self, nodes: Iterable[str]) -> None:
        """Open the request sockets of these nodes."""
        for node in nodes:
            self._lab.requests(node)

    def ports_down(self, ends: Sequence[End], by: Hashable = None) -> None:
        """Take these ends down, one batch per node: veth has no carrier switch, so the far end loses carrier."""
        self._tell(self._put_down(ends, by))

    def _put_down(self, ends: Sequence[End], by: Hashable) -> list[End]:
        """Take down the ends that had no holder yet, and return them."""
        changed = [end for end in ends if _hold(self._held, _key(end), by)]
        for node, links in _by_node(changed).items():
            self._lab.requests(node).run(self._set(node, links, up=False))
        return changed

    def ports_up(self, ends: Sequence[End], by: Hashable = None) -> None:
        """Bring these ends up again and restore their neighbours; ends with other holders stay down."""
        self._tell(self._put_up(ends, by), both=True)

    def _put_up(self, ends: Sequence[End], by: Hashable) -> list[End]:
        """Bring up the ends that have no other holder, and return them."""
        changed = [end for end in ends if _let_go(self._held, _key(end), by)]
        for node, links in _by_node(changed).items():
            forgotten = [request for link in links for request in _forgotten(link, node)]
            self._lab.requests(node).run([*self._set(node, links, up=True), *forgotten])
        return changed

    def _set(self, node: str, links: Sequence[Link], *, up: bool) -> list[bytes]:
        """Return requests that set the state of these ports: a single one if they are all ports of a switch.

        Otherwise the neighbours of the first port compete for the kernel's lock before the next port is set.
        """
        if self._lab.fabric.node(node).is_switch and len(links) == len(self._lab.fabric.links_of(node)):
            return [rtnl.set_group(PORTS_GROUP, up=up)]
        return [rtnl.set_link(link.end_at(node).ifindex, up=up) for link in links]

    def _tell(self, changed: Sequence[End], *, both: bool = False) -> None:
        """Process far-end carrier changes at once if one kernel run cannot handle them all; ``both``: on all ends."""
        if 2 * len(changed) <= linkwatch.AT_A_RUN:
            return
        for node, links in _by_node(changed).items():
            requests, ports = self._lab.requests(node), [link.end_at(node).ifindex for link in links]
            linkwatch.carry_out_far(requests, ports)
            if both:
                linkwatch.carry_out(requests, ports)

    def crash(self, switches: Sequence[str], by: Hashable = None) -> None:
        """Crash switches together: no daemon sends a farewell, all ports lose carrier in one batch per switch."""
        dying = [name for name in switches if _hold(self._down, name, by)]
        for name in dying:
            self.fib.end(name)
            self._lab.bgp[name].freeze()
            if name in self._lab.tors:
                self._lab.tors[name].crash()
        self._tell([end for name in dying for end in self._put_down(self._ports_of(name), name)])
        for name in dying:
            self._lab.bgp[name].kill()
            self._lab.watcher.reread(name)  # no message reported its lost routes; else it looks converged at boot

    async def boot(self, switches: Sequence[str], by: Hashable = None) -> None:
        """Boot crashed switches with empty state: ports, LACP, BGP; ports that they had shut themselves come up too."""
        booting = [name for name in switches if _let_go(self._down, name, by)]
        for name in booting:
            await self._lab.bgp[name].gone()
            behind = self.fib.begin(name)
            if name in self._lab.tors:
                self._lab.tors[name].start(reload=True, behind=behind)
        self._tell([end for name in booting for end in self._put_up(self._ports_of(name), name)], both=True)
        for name in booting:
            self._lab.bgp[name].start()
        self._withdrawn.difference_update(booting)

    def _ports_of(self, switch: str) -> list[End]:
        return [(link, switch) for link in self._lab.fabric.links_of(switch)]

    def hang(self, tor: str) -> None:
        """Freeze a ToR's daemons; its kernel still forwards and answers ARP, as an ASIC would."""
        self._lab.bgp[tor].freeze()
        self._lab.tors[tor].freeze()

    def resume(self, tor: str) -> None:
        """Let the daemons continue with their old state and detect what they missed."""
        self._lab.bgp[tor].thaw()
        ports = [link.end_at(tor) for link in self._lab.fabric.links_of(tor)]
        self._lab.tors[tor].thaw({port.name for port in ports if self._lab.watcher.carrier(tor, port.ifindex)})

    def withdraw(self, tor: str) -> None:
        """Withdraw a ToR's host routes from BGP; it keeps the routes, its sessions and its subnet routes."""
        self._withdrawn.add(tor)
        self._lab.bgp[tor].withdraw()

    def announce(self, tor: str) -> None:
        """Announce the host routes again; no-op for a ToR that has booted since, or has yet to."""
        if tor not in self._withdrawn:
            return
        self._withdrawn.remove(tor)
        if tor not in self._down:
            self._lab.bgp[tor].announce()

    def leave(self, tor: str) -> None:
        """Take a ToR's LACP out of Synchronization with all partners while it still forwards; no-op after a crash."""
        if tor not in self._down:
            self._lab.tors[tor].leave()

    def rejoin(self, tor: str) -> None:
        """Put the ToR's LACP back into Synchronization."""
        self._lab.tors[tor].rejoin()

    def prepare_forwarding(self, switch: str) -> None:
        """Open nftables on the switch."""
        if switch not in self._nft:
            self._nft[switch] = Nft(self._lab.spaces[switch])

    def stop_forwarding(self, switch: str, by: Hashable = None) -> None:
        """Drop all traffic this switch would forward; traffic to itself (BGP, LACP, ARP, path control) continues."""
        self.prepare_forwarding(switch)
        if _hold(self._deaf, switch, by):
            self._nft[switch].run(_drop_all(self._family))

    def start_forwarding(self, switch: str, by: Hashable = None) -> None:
        """Resume forwarding, unless it has another holder."""
        if _let_go(self._deaf, switch, by):
            self._nft[switch].run(_drop_none(self._family))

    def reset_session(self, link: Link) -> None:
        """Make a link's lower end restart its BGP session, which recovers by itself. MachineError when it refuses."""
        self._lab.bgp[link.lower.node].reset(link.lower.name)

    def standing(self) -> dict[str, str]:
        """Return faults that links, LACP, BGP and routes need not show: part to condition."""
        found = {f"forwarding of {name}": self._forwarding(name) for name in self._nft}
        conditions = {f"daemons of {name}": tor.condition for name, tor in self._lab.tors.items()}
        return {key: text for key, text in (found | conditions).items() if text}

    def _forwarding(self, switch: str) -> str:
        return "dead" if _TABLE in self._nft[switch].run("list tables") else ""


def probe(space: NetNs) -> str | None:
    """Return why this kernel cannot stop a switch's forwarding, None if it can; tested in ``space``."""
    nft = Nft(space)
    try:
        nft.run(_drop_all("ip"))
        nft.run(_drop_none("ip"))
    except OSError as error:
        return str(error).splitlines()[0]
    finally:
        nft.close()
    return None


def _hold(held: dict[K, set[Hashable]], what: K, by: Hashable) -> bool:
    """Add a holder; return True if it is the first."""
    first = what not in held
    held.setdefault(what, set()).add(by)
    return first


def _let_go(held: dict[K, set[Hashable]], what: K, by: Hashable) -> bool:
    """Remove a holder; return True if it was the last, False also if ``by`` was not a holder."""
    if by not in held.get(what, ()):
        return False
    held[what].remove(by)
    if held[what]:
        return False
    del held[what]
    return True


def _key(end: End) -> tuple[str, str]:
    link, node = end
    return link.name, node


def _by_node(ends: Sequence[End]) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link, node in ends:
        found.setdefault(node, []).append(link)
    return found


def _forgotten(link: Link, node: str) -> list[bytes]:
    """Return requests for the permanent neighbours that vanished when their interface was taken down."""
    there = link.far_end(node)
    if link.kind is LinkKind.ACCESS or there.address is None:
        return []
    return [rtnl.add_neighbour(link.end_at(node).ifindex, there.ip, there.mac)]
