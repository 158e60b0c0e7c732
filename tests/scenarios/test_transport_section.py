"""What a drill's job says of its transport: read, and refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpn.scenarios.drill.describe import traffic_in_words
from hpn.scenarios.drill.job import plan_of
from hpn.scenarios.drill.job_settings import told
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.traffic.multipath.settings import Multipath

MS = 1_000_000
_TRIMS = "{priority: 3, dscp: [3], weight: 15, limit: 100 KB, trim: yes}"


def _drill(section: str, topology: str = "", more: str = "") -> Drill:
    text = f"""drill: d
summary: s
topology: {{preset: tiny{topology}}}
job:
  {{collective: {{kind: all-reduce, size: 1 MB}},
  {section}}}
{more}timeline: {{healthy: 1 s}}
expect: [job_survives: yes]
"""
    return drill_from(parse(text, "d.yaml"), Path())


def test_what_switches_trim_is_known_to_the_transport_the_manifest_and_the_plan_in_words() -> None:
    trims = f", switch: {{classes: [{_TRIMS}]}}"
    for topology, dscp in ((trims, 11), (f"{trims}, srv6: {{}}", 11), (", switch: {}", None), ("", None)):
        drill = _drill("transport: multipath", topology)
        assert drill.job is not None
        assert drill.job.multipath == Multipath(trimmed_dscp=dscp)
        fabric = build(drill.topology)
        assert told(drill.job, fabric)["multipath_trimming"] == ("dscp 11" if dscp else "no")
        assert any("trimmed" in line for line in traffic_in_words(drill, fabric)) == (dscp is not None)


@pytest.mark.parametrize("section", ["gpus: 1", "transport: rc", "transport: {use: rc}"])
def test_a_reliable_connection_is_the_default_and_has_no_settings(section: str) -> None:
    drill = _drill(section)
    assert drill.job is not None
    assert drill.job.multipath is None
    assert "transport" not in told(drill.job, build(drill.topology))


def test_settings_are_read_and_recovery_is_selective() -> None:
    drill = _drill("transport: {use: multipath, paths: 64, probe_interval: 5 ms, skip_for: 2 ms, deny_after: 2}")
    assert drill.job is not None
    assert drill.job.multipath == Multipath(64, 5 * MS, 2 * MS, 2)
    assert drill.job.recovery == "selective-repeat"
    fabric = build(drill.topology)
    assert plan_of(drill.job, fabric).transport.multipath == drill.job.multipath
    assert told(drill.job, fabric)["multipath_paths"] == 64
    assert any("64 paths" in line for line in traffic_in_words(drill, fabric))
    plain = _drill("transport: multipath, recovery: selective-repeat").job
    assert plain is not None
    assert plain.multipath == Multipath()


@pytest.mark.parametrize(
    ("section", "topology", "message"),
    [
        ("transport: multipaht", "", "d.yaml:6: job.transport is 'multipaht'; did you mean multipath"),
        ("transport: {paths: 8}", "", "d.yaml:6: 'use' is missing in job.transport"),
        ("transport: {use: rc, paths: 8}", "", "d.yaml:6: job.transport: rc has no settings; leave paths out"),
        (
            "transport: {use: multipath, paths: 257}",
            "",
            "d.yaml:6: job.transport.paths is 257; write a whole number from 2 to 256",
        ),
        (
            "transport: {use: multipath, paths: 1}",
            "",
            "d.yaml:6: job.transport.paths is 1; write a whole number from 2 to 256",
        ),
        (
            "transport: multipath, recovery: go-back-n",
            "",
            "d.yaml:6: job.recovery is 'go-back-n', with transport: multipath, would send again whatever overtakes",
        ),
        (
            "transport: multipath, spray: {ports: 4}, recovery: selective-repeat",
            "",
            "d.yaml:6: job.spray, with transport: multipath, has nothing left to spread; leave spray out",
        ),
        ("transport: multipath, rehash: {}", "", "d.yaml:6: job.rehash, with transport: multipath, finds no path"),
        ("transport: multipath, window: 4096", "", "d.yaml:6: job.window is 4096, with transport: multipath, is more"),
        (
            "transport: multipath, queue_pairs: 2, port_failover: yes, port_use: active-standby",
            "",
            "d.yaml:6: job.port_use is 'active-standby', with transport: multipath, has no standby",
        ),
        (
            "transport: multipath, congestion: hpcc",
            ", switch: {}",
            "d.yaml:6: job.congestion: hpcc-200g compares reports of one path, and packets take many",
        ),
        (
            "transport: multipath",
            ", nic: {port_selection: queue-affinity}",
            "d.yaml:6: job.transport: multipath: a bound queue pair leaves by one port alone",
        ),
        (
            "transport: multipath",
            ", switch: {balancing: {policy: spray}}",
            "d.yaml:6: job.transport: multipath: an entropy value is no path when switches choose",
        ),
        (
            "transport: multipath",
            ", srv6: {}, ecn: {kmin_bytes: 10000, kmax_bytes: 20000, pmax: 0.1}",
            "d.yaml:6: job.transport: multipath: ecn marks the outer header of SRv6, and no host copies the mark; let",
        ),
        (
            "congestion: nscc",
            ", ecn: {kmin_bytes: 10000, kmax_bytes: 20000, pmax: 0.1}",
            "d.yaml:6: job.congestion: uec-2025 takes marks from acknowledgements that name them; write transport:",
        ),
        (
            "transport: multipath, congestion: nscc",
            "",
            "d.yaml:6: job.congestion: uec-2025 waits for marks and no switch marks; write ecn: {kmin_bytes: 30000,",
        ),
        (
            "transport: multipath, congestion: {use: uec-2025, target: 10 ns, smoothing: 1.0}",
            ", ecn: {kmin_bytes: 10000, kmax_bytes: 20000, pmax: 0.1}",
            "d.yaml:6: job.congestion: target: 10 ns are over before a packet is sent",
        ),
        (
            "transport: multipath",
            ", srv6: {}, mtu: 4199",
            "job.path_mtu 4096 needs an mtu of 4220, the topology has 4199; write path_mtu: 2048 or mtu: 4220",
        ),
        (
            "transport: {use: multipath, paths: 7}",
            ", planes: 8",
            "d.yaml:6: job.transport.paths is 7, so that some of a NIC's 8 ports carry nothing; write 8 or more",
        ),
        (
            "transport: {use: multipath, paths: 32, dark_after: 5}",
            ", planes: 8",
            "d.yaml:6: job.transport.dark_after is 5, and 32 paths are 4 a port: no port would ever look dark; write 4",
        ),
    ],
)
def test_what_it_does_not_go_with_is_refused_with_its_place(section: str, topology: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        _drill(section, topology)


@pytest.mark.parametrize("section", ["{use: multipath, paths: 8}", "{use: multipath, paths: 32, dark_after: 4}"])
def test_a_path_for_each_port_is_enough(section: str) -> None:
    assert _drill(f"transport: {section}", ", planes: 8").job is not None


def test_a_client_brings_its_own_transport() -> None:
    client = "workload: {client: {run: iperf3, ranks: 2}}\n"
    with pytest.raises(InputError, match=r"d.yaml:6: job.transport: multipath beside workload.client: a client brings"):
        _drill("transport: multipath", more=client)
