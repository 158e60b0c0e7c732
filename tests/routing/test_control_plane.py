"""ARP to /32 to BGP to the far ToR, in real namespaces with real BGP daemons of every kind."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from hpn.testbed.events import EventKind
from hpn.testbed.fabric.spec import CorePorts
from hpn.testbed.routing.daemons import DAEMONS
from tests.routing import fabrics
from tests.routing.asking import as_paths, sessions
from tests.routing.minilab import MiniLab

CORE_PORTS: dict[str, CorePorts] = {"bird": "preset", "frr": "hash"}
PEER_DIED = {
    "bird": {"Connection closed", "Connection lost (Connection reset by peer)", "Connection lost (Broken pipe)"},
    "frr": {"Peer closed the session"},
}
"""What a daemon says of a session whose other end crashed; the kernel resets one with words that nobody had read,
and one that writes at that moment hears of a broken pipe (EPIPE)."""


@pytest.fixture(params=DAEMONS)
def daemon(request: pytest.FixtureRequest) -> str:
    """The key of each daemon that this machine has."""
    name = str(request.param)
    missing = DAEMONS[name].missing()
    if missing is not None:
        pytest.skip(missing)
    return name


@pytest.mark.kernel
@pytest.mark.parametrize("cut_end", ["lower", "upper"])
async def test_an_announced_host_is_known_at_the_far_tor_and_gone_with_its_carrier(cut_end: str, daemon: str) -> None:
    lab = MiniLab(fabrics.hpn(daemon=daemon))
    await lab.start()
    nic = lab.fabric.nic("p0.s0.h0.r0")
    far, own = "p0.s1.t0.0", "p0.s0.t0.0"
    lab.greet(nic, 0)
    await lab.until(lambda: lab.routes(far, f"{nic.ip}/32") == {"up0", "up1"})
    assert lab.routes(own, f"{nic.ip}/32") == {"h0r0"}
    assert lab.routes("p0.s1.t0.1", f"{nic.ip}/32") == set()  # planes share nothing
    lab.cut(getattr(nic.links[0], cut_end))
    await lab.until(lambda: not lab.routes(far, f"{nic.ip}/32"), 5)  # below BIRD's kernel scan of 20 s: by event
    assert lab.routes(own, f"{nic.ip}/32") == set()
    assert lab.routes(own, nic.subnet) == {"drop"}  # the fallback attracts ...
    assert lab.routes(far, nic.subnet) == {"up0", "up1"}  # ... and is still announced
    lab.mend(getattr(nic.links[0], cut_end))
    await lab.until(lambda: lab.routes(far, f"{nic.ip}/32") == {"up0", "up1"}, again=lambda: lab.greet(nic, 0))
    told = [(e.subject, e.what) for e in lab.events if e.kind is EventKind.NEIGHBOUR and e.node == own]
    assert told == [(nic.ip, "learned"), (nic.ip, "lost"), (nic.ip, "learned")]


@pytest.mark.kernel
async def test_an_ordinary_arp_request_for_the_gateway_is_enough(daemon: str) -> None:
    lab = MiniLab(fabrics.hpn(daemon=daemon))
    await lab.start()
    nic = lab.fabric.nic("p0.s0.h0.r0")
    lab.home(nic, 0)
    lab.spaces[nic.host].socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.0.1.1", 4791))
    await lab.until(lambda: lab.routes("p0.s1.t0.0", f"{nic.ip}/32") == {"up0", "up1"})


@pytest.mark.kernel
async def test_a_host_cannot_claim_an_address_outside_its_subnet_or_the_gateway(daemon: str) -> None:
    lab = MiniLab(fabrics.hpn(hosts=2, daemon=daemon))
    await lab.start()
    honest, liar = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s0.h1.r0")
    lab.greet(honest, 0)
    await lab.until(lambda: lab.routes("p0.s0.t0.0", f"{honest.ip}/32") == {"h0r0"})
    for ip in ("10.0.1.1", honest.gateway, honest.ip):
        stolen = type(liar)(**{name: getattr(liar, name) for name in liar.__slots__} | {"ip": ip})
        lab.greet(stolen, 0)
    lab.greet(liar, 0)
    await lab.until(lambda: lab.routes("p0.s0.t0.0", f"{liar.ip}/32") == {"h1r0"})
    learned = [e.subject for e in lab.events if e.kind is EventKind.NEIGHBOUR]
    assert learned == [honest.ip, liar.ip]
    assert lab.routes("p0.s0.t0.0", f"{honest.ip}/32") == {"h0r0"}


@pytest.mark.kernel
async def test_in_a_shared_plane_the_twin_tor_takes_over_by_bgp_alone(daemon: str) -> None:
    lab = MiniLab(fabrics.clos(daemon=daemon))
    await lab.start()
    nic = lab.fabric.nic("p0.s0.h0.r0")
    lab.greet(nic, 0)
    lab.greet(nic, 1)
    await lab.until(lambda: lab.routes("p0.a0.0", f"{nic.ip}/32") == {"s0r0t0", "s0r0t1"})
    lab.cut(nic.links[0].lower)
    await lab.until(lambda: lab.routes("p0.a0.0", f"{nic.ip}/32") == {"s0r0t1"})
    await lab.until(lambda: lab.routes("p0.s0.t0.0", f"{nic.ip}/32") == {"up0", "up1"})
    lab.mend(nic.links[0].lower)
    await lab.until(lambda: "h0r0" in lab.routes("p0.s0.t0.0", f"{nic.ip}/32"), again=lambda: lab.greet(nic, 0))
    await lab.until(lambda: lab.routes("p0.a0.0", f"{nic.ip}/32") == {"s0r0t0", "s0r0t1"})


@pytest.mark.kernel
async def test_pods_reach_each_other_through_the_core_and_no_path_runs_through_a_valley(daemon: str) -> None:
    lab = MiniLab(fabrics.pods(core_ports=CORE_PORTS[daemon], daemon=daemon))
    await lab.start()
    nic = lab.fabric.nic("p0.s0.h0.r0")
    lab.greet(nic, 0)
    await lab.until(lambda: lab.routes("p1.s0.t0.0", f"{nic.ip}/32") == {"up0", "up1"})
    await lab.until(lambda: lab.routes("p0.a0.0", f"{nic.ip}/32") == {"s0r0t0"})
    for name in lab.bgp:
        for as_path in as_paths(lab.bgp[name], f"{nic.ip}/32"):
            tiers = [asn // 100 * 100 for asn in as_path]
            # ASNs: ToR 65100, Agg 65200, Core 65500. Nearest first, so once it goes down it never goes up again.
            assert tiers in ([], [65100], [65200, 65100], [65500, 65200, 65100], [65200, 65500, 65200, 65100]), name
    assert len(as_paths(lab.bgp["p0.a0.0"], f"{nic.ip}/32")) == 1


@pytest.mark.kernel
async def test_sessions_are_told_as_they_come_and_go_and_a_crashed_daemon_comes_back(daemon: str) -> None:
    lab = MiniLab(fabrics.hpn(daemon=daemon))
    await lab.start()
    agg = lab.bgp["p0.a0.0"]
    assert sessions(lab.fabric, agg) == [("s0r0t0", True, 65100), ("s1r0t0", True, 65100)]
    processes = len(agg.pids)
    lab.events.clear()
    agg.kill()
    await lab.until(lambda: sum(e.what == "down" for e in lab.events) == 4)
    died = [e for e in lab.events if e.kind is EventKind.DAEMON]
    assert [(e.node, e.what, e.detail["exit_code"]) for e in died] == processes * [("p0.a0.0", "died", -9)]
    reasons = {(e.node, e.subject): e.detail["reason"] for e in lab.events if e.kind is EventKind.BGP}
    assert reasons["p0.s0.t0.0", "up0"] in PEER_DIED[daemon]
    assert reasons["p0.a0.0", "s0r0t0"] == f"{agg.TITLE} died"
    agg.start()
    await lab.until(lambda: agg.established == {"s0r0t0", "s1r0t0"})
    lab.events.clear()
    link = lab.fabric.link("p0.s0.t0.0-p0.a0.0")
    lab.cut(link.upper)
    await lab.until(lambda: sum(e.what == "down" for e in lab.events) == 2)
    lab.mend(link.upper)
    await lab.until(lambda: agg.established == {"s0r0t0", "s1r0t0"})
    assert agg.trouble is None
    os.kill(min(agg.pids), signal.SIGTERM)
    await agg.gone()
    assert not agg.running
    assert agg.trouble is not None
    assert agg.trouble.startswith(f"p0.a0.0: {agg.TITLE}")


@pytest.mark.kernel
async def test_a_tor_that_drains_announces_its_subnet_and_no_host(daemon: str) -> None:
    lab = MiniLab(fabrics.hpn(daemon=daemon))
    await lab.start()
    nic, far, own = lab.fabric.nic("p0.s0.h0.r0"), "p0.s1.t0.0", lab.bgp["p0.s0.t0.0"]
    lab.greet(nic, 0)
    await lab.until(lambda: lab.routes(far, f"{nic.ip}/32") == {"up0", "up1"})
    own.withdraw()
    await lab.until(lambda: not lab.routes(far, f"{nic.ip}/32"))
    assert lab.routes(far, nic.subnet) == {"up0", "up1"}
    assert lab.routes("p0.s0.t0.0", f"{nic.ip}/32") == {"h0r0"}
    own.announce()
    await lab.until(lambda: lab.routes(far, f"{nic.ip}/32") == {"up0", "up1"})
