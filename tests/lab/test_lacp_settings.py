"""What a topology's LACP settings do, as a packet socket on the host's port has it, not as our machines say.

The host is Linux bonding where the kernel has it, else our own speaker. ``tests/vm`` runs this in a guest too.

host r0p0 [sniffed] -- ToR 0: passive, independent, late to attach, late to be restored
"""

from __future__ import annotations

import asyncio

import pytest

from tests.lab.running import cut, mend, running, tiny
from tests.lag.sniffed import ACTIVE, COLLECTS, DISTRIBUTES, SYNC, Heard, Sniffer, first

pytestmark = pytest.mark.kernel
AGGREGATE_S, RESTORE_S = 1.2, 1.7
LACP = {
    "mode": "passive",
    "mux": "independent",
    "aggregate_wait_ms": round(AGGREGATE_S * 1000),
    "wait_to_restore_ms": round(RESTORE_S * 1000),
    "reload_delay_s": 0,
}


async def test_a_tor_does_on_the_wire_what_its_settings_say() -> None:
    async with running(tiny(lacp=LACP)) as lab:
        nic = lab.fabric.nics[0]
        link, host = nic.links[0], lab.nics[nic.name]
        tor = lab.tors[link.upper.node].speakers[link.upper.name]
        space = lab.wiring.namespaces[nic.host]

        cut(lab, link)
        await lab.wait_for(lambda: host.active == (1,) and not tor.active_ports, 10)  # the kernel tells no blink
        sniffer = Sniffer(space, link.lower.name)
        mend(lab, link)
        restored = await _distributing_again(sniffer)
        assert _in_sync_after(restored) >= RESTORE_S

        lab.breakage.crash([link.upper.node])
        await lab.wait_for(lambda: host.active == (1,), 10)
        sniffer = Sniffer(space, link.lower.name)
        await lab.breakage.boot([link.upper.node])
        booted = await _distributing_again(sniffer)
        assert booted[0].sent, "a passive ToR does not begin"
        assert _in_sync_after(booted) >= AGGREGATE_S
        print(f"restored {_in_sync_after(restored):.2f} s, aggregated {_in_sync_after(booted):.2f} s")

        for heard in (restored, booted):
            assert not any(each.state & ACTIVE for each in heard if not each.sent), "the ToR is not active"
            _collects_before_it_distributes(heard)


async def _distributing_again(sniffer: Sniffer) -> list[Heard]:
    """All that was said of a port that was lost until its ToR says that it distributes."""
    async with asyncio.timeout(60):
        while not any(each.state & DISTRIBUTES for each in sniffer.heard() if not each.sent):
            await asyncio.sleep(0.1)
    return sniffer.heard()


def _in_sync_after(heard: list[Heard]) -> float:
    """From the host's first LACPDU, before which nobody hears it, to the ToR's first in Synchronization, s."""
    of_host, of_tor = ([each for each in heard if each.sent == sent] for sent in (True, False))
    return first(of_tor, SYNC).at_s - of_host[0].at_s


def _collects_before_it_distributes(heard: list[Heard]) -> None:
    """The ToR collects; the host, which hears that it is in Synchronization, collects; then the ToR distributes."""
    of_tor = [each for each in heard if not each.sent]
    collects, both = first(of_tor, COLLECTS, without=DISTRIBUTES), first(of_tor, COLLECTS | DISTRIBUTES)
    host = first([each for each in heard if each.sent and each.at_s >= collects.at_s], COLLECTS)
    assert collects.at_s < host.at_s < both.at_s
