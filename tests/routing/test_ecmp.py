"""A switch's sysctls: right values, and a kernel that takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.routing.ecmp import namespace_sysctls, port_sysctls
from tests.routing import fabrics


def test_the_hash_can_be_traced_and_seeds_differ_by_switch() -> None:
    fabric = fabrics.hpn()
    settings = {n.name: {s.path: s.value for s in namespace_sysctls(n)} for n in fabric.switches}
    assert all(s["net/ipv4/fib_multipath_hash_policy"] == "3" for s in settings.values())
    assert all(int(s["net/ipv4/fib_multipath_hash_fields"]) == 0x37 for s in settings.values())
    seeds = [s["net/ipv4/fib_multipath_hash_seed"] for s in settings.values()]
    assert len(set(seeds)) == len(seeds)


def test_only_tors_answer_arp_for_others() -> None:
    fabric = fabrics.hpn()
    proxies = {n.name for n in fabric.switches if any("proxy_arp" in s.path for s in namespace_sysctls(n))}
    assert proxies == {n.name for n in fabric.switches if ".t" in n.name}
    assert port_sysctls(fabric, fabric.node("p0.a0.0")) == ()


def test_port_settings_name_access_ports_only() -> None:
    fabric = fabrics.hpn(hosts=2)
    ports = {s.path.split("/")[3] for s in port_sysctls(fabric, fabric.node("p0.s0.t0.0"))}
    assert ports == {"h0r0", "h1r0"}


@pytest.mark.kernel
def test_this_kernel_takes_every_required_setting_and_new_interfaces_inherit() -> None:
    node = fabrics.hpn().node("p0.s0.t0.0")
    space = ns.create("tor")
    with space.entered():
        for setting in namespace_sysctls(node):
            path = Path("/proc/sys", setting.path)
            if setting.required or path.exists():
                path.write_text(setting.value)
                assert path.read_text().strip() == setting.value, setting.path
