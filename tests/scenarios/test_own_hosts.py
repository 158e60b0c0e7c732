"""Drills on a network whose hosts bring their own network files: limits, run folders and experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.page.setup import fabric_line
from hpn.results.run.fabric import fabric_from, fabric_json
from hpn.results.run.identity import identity_of
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.phase import span_ns
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_fabric
from tests.fabric.own_hosts import INTERFACES, topology, write

_SILENT = """\
drill: silent
summary: a port loses all frames and keeps its light
topology: own-hosts.yaml
workload: {{pattern: permutation}}
timeline:
  healthy: 1 s
  faults:
    - {{id: silent, fault: silent-drop, target: "{link}", at: 1 s, for: 120 s}}
  settle: 6 s
expect:
  - detect: {{at_most: 4 s, edge: failure}}
"""


def drill(folder: Path, link: str) -> str:
    (folder / "silent.yaml").write_text(_SILENT.format(link=link))
    return str(folder / "silent.yaml")


def test_a_limit_counts_the_timers_of_the_host_that_is_hit(tmp_path: Path) -> None:
    write(tmp_path, topology(more="lacp: {rate: slow, host_rate: fast}"))
    assert catalogue.load(drill(tmp_path, "gpu-b:eth0")).name == "silent", "it asks fast"
    with pytest.raises(
        InputError, match=r"with LACP slow not before 59.5 s; write lacp: \{rate: fast\}, or write 90 s"
    ):
        catalogue.load(drill(tmp_path, "gpu-a:eth0"))


def test_the_file_of_a_run_has_the_options_and_a_page_counts_such_hosts(tmp_path: Path) -> None:
    fabric = load_fabric(str(write(tmp_path)))
    again = fabric_from(tmp_path / "fabric.json", fabric_json(fabric))
    assert [nic.bonding for nic in again.nics] == [nic.bonding for nic in fabric.nics]
    assert "(2 hosts by configurations of their own)" in fabric_line(again)
    tiny = fabric_json(load_fabric("tiny"))
    assert b"bonding" not in tiny, "run folders of other networks stay as they are"


def test_another_option_is_another_experiment(tmp_path: Path) -> None:
    digests = []
    for text in (INTERFACES, INTERFACES.replace("miimon 100", "miimon 50"), INTERFACES.replace("# The", "# A")):
        fabric = load_fabric(str(write(tmp_path, interfaces=text)))
        found = catalogue.load(drill(tmp_path, "gpu-b:eth0"))
        digests.append(identity_of(fabric, asked_of(found, fabric)).digests["fabric"])
    assert digests[0] == digests[2] != digests[1]


def test_repeats_meet_the_timers_of_every_host_at_any_phase(tmp_path: Path) -> None:
    assert span_ns(load_fabric(str(write(tmp_path))).spec) == 30 * 10**9
