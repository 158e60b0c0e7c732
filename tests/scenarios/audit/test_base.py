"""The base of an audit is the topology file of a commit; what is no such file is refused in one line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpn.scenarios.audit.base import topology_at
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.wired.configs import configs_of
from hpn.testbed.fabric.wired.host_configs import own_hosts as own_hosts_of
from tests.fabric import own_hosts, own_network


def _git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "as it is")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A topology below a repository: two hosts a segment once, three now, four in the work tree."""
    nets = tmp_path / "nets"
    nets.mkdir()
    found = nets / "my net.yaml"
    _git(tmp_path, "init", "-q")
    for hosts in (2, 3):
        found.write_text(f"preset: tiny\nhosts: {hosts}\n")
        _git(tmp_path, "add", "nets")
        _git(tmp_path, "commit", "-q", "-m", f"{hosts} hosts")
    found.write_text("preset: tiny\nhosts: 4\n")
    return found


def test_the_base_is_the_file_of_the_commit(file: Path) -> None:
    assert topology_at("HEAD~1", str(file)).hosts == 2
    assert topology_at("HEAD", str(file)).hosts == 3


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        ("nowhere", "git knows no such commit"),
        ("--output=x", "is no commit"),
        ("", "is no commit"),
        ("HEAD:nets", "git knows no such commit"),
        ("HEAD; touch x", "git knows no such commit"),
    ],
)
def test_what_is_no_commit_is_refused(file: Path, commit: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        topology_at(commit, str(file))
    assert sorted(path.name for path in file.parent.iterdir()) == ["my net.yaml"]


def test_a_file_that_was_not_there_is_refused(file: Path) -> None:
    new = file.with_name("new.yaml")
    new.write_text("preset: tiny\n")
    with pytest.raises(InputError, match=r"new\.yaml in 'HEAD'"):
        topology_at("HEAD", str(new))
    with pytest.raises(InputError, match="no file"):
        topology_at("HEAD", str(file.with_name("gone.yaml")))


def test_mistakes_of_the_old_file_are_told_with_its_commit(file: Path) -> None:
    file.write_text("preset: tiny\nhosts: many\n")
    _git(file.parent, "commit", "-qam", "bad")
    with pytest.raises(InputError, match=r"my net\.yaml@HEAD:2: hosts is 'many'"):
        topology_at("HEAD", str(file))


def test_a_preset_has_no_base() -> None:
    with pytest.raises(InputError, match="is a preset, which has no earlier version"):
        topology_at("HEAD", "tiny")


def test_configurations_are_those_of_the_commit_too(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    path = own_network.write(folder)
    _git(folder, "init", "-q")
    _commit(folder)
    own_network.edit(folder, "leaf1", "maximum-paths 64", "maximum-paths 1")
    specs = load_topology(str(path)), topology_at("HEAD", str(path))
    now, then = (configs_of(spec.wiring)["leaf1"].text for spec in specs)
    assert "maximum-paths 1\n" in now
    assert "maximum-paths 64\n" in then
    path.write_text(path.read_text().replace("leaf1/frr.conf", "../frr.conf"))
    _commit(folder)
    with pytest.raises(InputError, match="leads out of the topology file's folder"):
        topology_at("HEAD", str(path))


def test_folders_of_hosts_are_those_of_the_commit_too(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    path = own_hosts.write(folder)
    _git(folder, "init", "-q")
    _commit(folder)
    netdev = folder / "gpu-c" / "10-bond0.netdev"
    netdev.write_text(netdev.read_text().replace("=fast", "=slow"))
    specs = load_topology(str(path)), topology_at("HEAD", str(path))
    now, then = (own_hosts_of(spec)["gpu-c"].options["bond0"] for spec in specs)
    assert (now.bonding.lacp_rate, then.bonding.lacp_rate) == ("slow", "fast")
