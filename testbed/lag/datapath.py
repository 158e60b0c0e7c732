"""What a LAG datapath is: the thing between a host's LAG interface and its member ports (DESIGN rule 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

UDP = 17
ETHERTYPE_PATH_CONTROL = 0x88B5
"""Host-switch path control, an IEEE local experimental ethertype; like LACP it belongs to one member port."""


class LagDatapath(Protocol):
    """The datapath of one NIC's LAG."""

    def setup(self) -> None:
        """Make it, with no port active: nothing but port-bound control frames passes."""

    def set_active(self, ports: Sequence[str]) -> None:
        """From now on exactly these member ports collect and distribute."""

    def port_for(self, src_ip: str, dst_ip: str, sport: int, dport: int, proto: int, active: Sequence[str]) -> str:
        """The member port that carries such a packet while ``active`` (in configured order, not empty) are active."""

    def close(self) -> None:
        """Take it away; the LAG carries nothing afterwards."""


def arp_rules(ports: Sequence[str]) -> list[str]:
    """nftables rules that send an ARP to each of ``ports``.

    Every ToR must hear every ARP: its host route stands on its own neighbour entry.
    """
    copies = [f'ether type arp dup to "{port}"' for port in ports[1:]]
    return copies + [f'ether type arp fwd to "{port}"' for port in ports[:1]]
