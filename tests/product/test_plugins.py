"""What users keep in a folder of their own: the plug-ins of examples/plugins, and files that are none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = ROOT / "examples" / "plugins"
DRILL = OWN / "dim.yaml"


def hpn(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_drill_of_plug_ins_is_read_with_them_and_refused_without() -> None:
    shown = hpn("--plugin", str(OWN), "drill", "show", str(DRILL))
    assert shown.returncode == 0, shown.stderr
    assert "fabric    rack (one-rack): 4 hosts, 1 tor, 4 links" in shown.stdout
    assert "dim: dim p0.s0.h0.r0.0 (share 30 %, carrier stays)" in shown.stdout
    assert "traffic   ring: 16 queue pairs" in shown.stdout
    assert "  worst send gap of hit flows below 20 ms" in shown.stdout
    assert hpn("drill", "validate", str(DRILL), HPN_PLUGINS=str(OWN)).returncode == 0
    without = hpn("drill", "validate", str(DRILL))
    assert without.returncode == 2
    for unknown in (
        "topology.preset is 'rack'",
        "workload.pattern is 'ring'",
        "is 'dim'; write one of",
        "'worst_send_gap'",
    ):
        assert unknown in without.stderr
    assert "write one of permutation, pairs, incast" in without.stderr
    assert (
        "topology.path_control.policy is 'home-at-once'; write one of move-source-ports, steer-destinations, both,"
        " rebind, off" in without.stderr
    )


def test_a_lag_datapath_of_a_plug_in_is_a_word_of_topologies_and_says_what_it_cannot_honour(tmp_path: Path) -> None:
    drill = OWN / "sticky.yaml"
    good = hpn("--plugin", str(OWN), "drill", "validate", str(drill))
    assert good.returncode == 0
    assert f"next: hpn --plugin {OWN} drill run {drill}" in good.stderr, "without them it would be refused"
    without = hpn("drill", "validate", str(drill))
    assert without.returncode == 2
    assert f"{drill}:3: topology.lag is 'sticky'; write one of auto, kernel, nft" in without.stderr
    (tmp_path / "late.yaml").write_text("preset: tiny\nlag: sticky\nlacp: {down_delay_ms: 300}\n")
    found = hpn("--plugin", str(OWN), "plan", str(tmp_path / "late.yaml"))
    told = "3: lacp.down_delay_ms is 300, but a sticky LAG leaves a port without carrier at once; write lag: nft"
    assert found.stderr == f"hpn: {tmp_path / 'late.yaml'}:{told}\n"
    (tmp_path / "late.yaml").write_text("preset: tiny\nlacp: {down_delay_ms: 300}\n")
    unasked = hpn("--plugin", str(OWN), "plan", str(tmp_path / "late.yaml"))
    assert "Linux bonding" in unasked.stderr
    assert "sticky" not in unasked.stderr, "auto takes no plug-in"


def test_a_fault_of_a_plug_in_composes_and_its_architecture_names_its_contradictions(tmp_path: Path) -> None:
    both = DRILL.read_text().replace(
        "  settle", "    - {fault: silent-drop, target: p0.s0.h0.r0.0, at: 1400 ms, for: 2 s}\n  settle"
    )
    (tmp_path / "both.yaml").write_text(both)
    found = hpn("--plugin", str(OWN), "drill", "validate", str(tmp_path / "both.yaml"))
    assert "silent-drop leaves nothing of dim on p0.s0.h0.r0.0" in found.stderr
    (tmp_path / "wide.yaml").write_text("architecture: one-rack\nsegments: 2\n")
    found = hpn("--plugin", str(OWN), "plan", str(tmp_path / "wide.yaml"))
    assert f"{tmp_path / 'wide.yaml'}:2: segments is 2, but this is one rack; write 1" in found.stderr


def test_a_plug_in_that_was_written_before_hpn_was_one_package_gets_the_same_modules(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        "import failover.faults.base\nfrom testbed import errors\nfrom traffic.patterns import PATTERNS, Pattern\n"
        "import hpn.failover.faults.base, hpn.testbed.errors, hpn.traffic.flows.patterns\n"
        "assert failover.faults.base is hpn.failover.faults.base and errors is hpn.testbed.errors\n"
        "assert PATTERNS is hpn.traffic.flows.patterns.PATTERNS and errors.__spec__.name == 'hpn.testbed.errors'\n"
        "PATTERNS.add(Pattern('old-ring', 'as before', lambda *_: []))\n"
    )
    told = hpn("--plugin", str(tmp_path), "drill", "validate", str(DRILL))
    assert "write one of permutation, pairs, incast, near-and-far, probes, bursts, old-ring" in told.stderr


def test_what_a_plug_in_imports_does_not_hide_those_after_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from hpn import Lab, analyse, load_drill, run\nimport hpn.commands.drill\n")
    shown = hpn("--plugin", str(tmp_path), "--plugin", str(OWN), "drill", "show", str(DRILL))
    assert shown.returncode == 0, shown.stderr


def test_pods_that_nothing_joins_are_told(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("architecture: one-rack\nsegments: 1\naggs: 0\npods: 2\ncores: 2\n")
    found = hpn("--plugin", str(OWN), "plan", str(tmp_path / "pods.yaml"))
    assert f"{tmp_path}/pods.yaml:4: pods is 2, but one-rack has no Cores to join pods; write 1" in found.stderr
    assert f"{tmp_path}/pods.yaml:5: cores is 2, but one-rack has no Cores to join pods; write 0" in found.stderr


def test_a_plug_in_that_fails_when_it_is_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from hpn.traffic.flows.patterns import PATTERNS, Pattern\nPATTERNS.add(Pattern('mine', 'x', lambda: []))\n"
    )
    (tmp_path / "mine.yaml").write_text(DRILL.read_text().replace("pattern: ring", "pattern: mine"))
    found = hpn("--plugin", str(OWN), "--plugin", str(tmp_path), "drill", "validate", str(tmp_path / "mine.yaml"))
    assert found.returncode == 3
    assert f"a mistake of hpn itself or of a plug-in ({OWN}/" in found.stderr
    assert f"{tmp_path}/mine.py)" in found.stderr


def test_a_command_of_a_plug_in_is_listed_and_run() -> None:
    assert "cabling    Print every cable of a topology" in hpn("--plugin", str(OWN), "--help").stdout
    printed = hpn("--plugin", str(OWN), "cabling", "tiny-fat-tree")
    assert printed.returncode == 0, printed.stderr
    assert len(printed.stdout.splitlines()) == 1 + 48
    assert "access,0,p0.s0.h0,r0p0,p0.s0.t0.0,h0r0" in printed.stdout
    assert "No such command 'cabling'" in hpn("cabling").stderr


def test_a_command_that_is_announced_and_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from hpn.commands import COMMANDS, Command\nCOMMANDS.add(Command('mine', __name__))\n"
    )
    found = hpn("--plugin", str(tmp_path), "mine")
    assert (found.returncode, found.stdout) == (2, "")
    assert f"{tmp_path}/mine.py has no click command for 'hpn mine'" in found.stderr
    assert hpn("--plugin", str(tmp_path), "--help").returncode == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nimport nowhere\n", "mine.py:2: ModuleNotFoundError: No module named 'nowhere'"),
        ("x = (\n", "mine.py:1: SyntaxError"),
        ("import sys\n\nsys.exit(0)\n", "mine.py:3: SystemExit: 0"),
        ("class Mine(BaseException):\n    pass\n\n\nraise Mine('no lab')\n", "mine.py:5: Mine: no lab"),
        ("import asyncio\n\nraise asyncio.CancelledError\n", "mine.py:3: CancelledError"),
        (
            "from hpn.commands import COMMANDS, Command\n\nCOMMANDS.add(Command('up', __name__))\n",
            "mine.py:3: TypeError: command 'up' is there already; give this one another name",
        ),
        (
            "from hpn.failover.faults import FAULTS, LinkDown\n\nFAULTS.add(LinkDown)\n",
            "mine.py:3: TypeError: fault 'link-down' is there already; give this one another name",
        ),
        (
            "from hpn.failover.faults import FAULTS\nfrom hpn.failover.faults.base import LinkFault\n\n\n"
            "class Half(LinkFault):\n    KIND = 'half'\n\n\nFAULTS.add(Half)\n",
            "mine.py:9: TypeError: fault Half does not say its NEEDS, PER_MONTH, SESSIONS_DOWN, STEADY, TELLS, act",
        ),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    found = hpn("--plugin", str(tmp_path), "presets")
    assert (found.returncode, found.stdout) == (2, "")
    assert f"hpn: {tmp_path}/{said}" in found.stderr
    assert "Traceback" not in found.stderr


def test_hidden_files_and_what_is_no_file_are_no_plug_ins(tmp_path: Path) -> None:
    for name in (".mine.py", "._mine.py"):
        (tmp_path / name).write_text("raise RuntimeError('an editor left this')\n")
    (tmp_path / ".#mine.py").symlink_to("somebody@somewhere.42")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.py"))
    (tmp_path / "mine.py").write_text("print('loaded')\n")
    found = hpn("--plugin", str(tmp_path), "presets", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("loaded\n")


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").symlink_to(tmp_path / "gone.py")
    found = hpn("--plugin", str(tmp_path), "presets")
    assert found.returncode == 2
    assert f"{tmp_path}/mine.py:1: FileNotFoundError" in found.stderr


def test_a_pipe_in_the_place_of_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for found in (
        hpn("--plugin", str(tmp_path / "pipe"), "presets"),
        hpn("presets", HPN_PLUGINS=str(tmp_path / "pipe")),
    ):
        assert found.returncode == 2
        assert f"{tmp_path}/pipe is no folder" in found.stderr


def test_a_folder_whose_name_would_be_taken_for_two_is_told(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    found = hpn("--plugin", str(tmp_path / "a:b"), "presets")
    assert found.returncode == 2
    assert f"{tmp_path}/a:b holds ':', which stands between folders" in found.stderr


def test_a_folder_that_is_none_is_told() -> None:
    assert "/nowhere is no folder" in hpn("presets", HPN_PLUGINS="/nowhere").stderr


_PULSE = """
from hpn.traffic.flows.patterns import PATTERNS, Demand, Pattern, PatternRequest, Transfer
from hpn.traffic.flows.partners import permutation


def _pulse(asked: PatternRequest) -> Demand:
    chosen = permutation(asked.fabric, asked.seed, asked.across_segments)
    return [Transfer(src, dst, 64 * 4096, 300_000_000) for src, dst in chosen]


PATTERNS.add(Pattern("pulse", "256 KiB every 300 ms", _pulse))
"""


def test_a_pattern_of_a_plug_in_sends_transfers_and_what_they_cannot_answer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pulse.py").write_text(_PULSE)
    drill = tmp_path / "pulse.yaml"
    drill.write_text(
        "drill: pulse\nsummary: s\ntopology: tiny\nworkload: {pattern: pulse}\nexpect:\n"
        "  - transfers_incomplete: {at_most: 0}\n"
    )
    shown = hpn("--plugin", str(tmp_path), "drill", "show", str(drill))
    assert shown.returncode == 0, shown.stderr
    assert "256 KiB (64 packets) on each queue pair in 26.6 ms, every 300 ms" in shown.stdout
    drill.write_text(drill.read_text() + "  - worst_outage: {below: 50 ms}\n")
    refused = hpn("--plugin", str(tmp_path), "drill", "validate", str(drill))
    assert refused.returncode == 2
    assert (
        f"{drill}:7: expect[1].worst_outage can never be judged: queue pairs pause between transfers" in refused.stderr
    )
