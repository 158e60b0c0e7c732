"""Drain of a link: it is taken out of use by its protocols, while it still forwards, and put back.

Changes when an operator would take a link out in another way. An access link leaves its LAG: its ToR puts LACP out of
Synchronization at that port. Over a link between switches the BGP session is shut, so that both ends drop its routes.
``rebind`` is milder: the adapter sends the queue pairs bound to a port by its others, and receives as before.
"""

from __future__ import annotations

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Link, LinkKind
from hpn.testbed.lab.lab import Lab


def drain(lab: Lab, link: Link) -> None:
    """Take a link out of use. InputError if nothing routes over it; the daemon's error if it refuses."""
    _set(lab, link, drained=True)


def undrain(lab: Lab, link: Link) -> None:
    """Put a link back into use; no-op for a switch that has booted since."""
    _set(lab, link, drained=False)


def rebind(lab: Lab, link: Link) -> None:
    """Move the queue pairs of a NIC off a port that its adapter binds them to. InputError for another link."""
    _avoid(lab, link, avoided=True)


def unbind(lab: Lab, link: Link) -> None:
    """Let the queue pairs return to the port they are bound to."""
    _avoid(lab, link, avoided=False)


def _avoid(lab: Lab, link: Link, *, avoided: bool) -> None:
    if link.kind is not LinkKind.ACCESS:
        raise InputError(f"{link.name}: no adapter binds queue pairs to it")
    lab.nics[lab.fabric.nic_of_link(link.name).name].avoid(link.lower.name, avoided=avoided)


def _set(lab: Lab, link: Link, *, drained: bool) -> None:
    if link.kind is LinkKind.ACCESS:
        lab.tors[link.upper.node].refuse(link.upper.name, drained)
        return
    if not link.is_routed:
        raise InputError(f"{link.name}: no protocol runs over it that could drain it")
    daemon = lab.bgp[link.lower.node]
    if daemon.running:
        (daemon.shut if drained else daemon.unshut)(link.lower.name)
