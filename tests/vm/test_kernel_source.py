"""Which kernel source is taken, and why: of this machine's package lists, and of later suites where that is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.vm import kernel_build, kernel_source, later_suites

_APT_GET = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$*" in
  *indextargets*) echo "{mirror}";;
  *update*) {update};;
esac
"""
_APT_CACHE = """#!/bin/sh
case "$*" in *sourcelist*) offered="{later}";; *) offered="{own}";; esac
case "$*" in
  *pkgnames*) for one in $offered; do echo linux-source-${{one%-*}}; done; echo linux-source-6.1-doc;;
  *show*) for one in $offered; do case "$*" in *-${{one%-*}}) echo "Version: $one"; echo "SHA256: 12ab";; esac; done;;
esac
"""
DEBIAN = "http://mirror.example/debian bookworm Debian"


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_source, "INSTALLED", tmp_path / "none")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return tmp_path


def _offer(folder: Path, own: str, later: str = "", *, mirror: str = DEBIAN, update: str = ":") -> None:
    """An apt that offers these versions, in this machine's lists and in those of later suites."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in (("apt-get", _APT_GET), ("apt-cache", _APT_CACHE), ("dpkg-query", "#!/bin/sh\n")):
        (folder / "bin" / name).write_text(
            text.format(folder=folder, own=own, later=later, mirror=mirror, update=update)
        )
        (folder / "bin" / name).chmod(0o755)


def test_the_newest_of_this_machines_lists_is_taken(apt: Path) -> None:
    _offer(apt, "6.1.9-1 6.12.117-1 6.9.4-2", "7.3.4-1")
    found = kernel_source.newest_package()
    assert (found.package, found.version) == ("linux-source-6.12.117", "6.12.117-1")
    assert found.identity == "linux-source-6.12.117 6.12.117-1 sha256:12ab"
    assert found.why == "the newest in this machine's package lists"
    assert not (apt / "asked").exists()


def test_later_suites_are_asked_where_that_is_allowed(apt: Path) -> None:
    _offer(apt, "6.12.117-1", "7.2.13-1 7.3.4-1")
    found = kernel_source.newest_package(apt / "lists")
    assert found.version == "7.3.4-1"
    assert found.why == (
        "the newest in stable-backports and unstable; this machine's own lists offer linux-source-6.12.117 6.12.117-1"
    )
    lists = (apt / "lists" / "later-suites.list").read_text().splitlines()
    assert [line.split("] ")[-1].removeprefix("deb ") for line in lists] == [
        "http://mirror.example/debian stable-backports main",
        "http://mirror.example/debian unstable main",
    ]
    update = (apt / "asked").read_text().splitlines()[-1].split()
    assert update[-1] == "update"
    assert tuple(update[: len(found.apt)]) == found.apt
    assert f"Dir::State::Lists={apt}/lists/lists" in found.apt


def test_what_is_newer_here_is_kept(apt: Path) -> None:
    _offer(apt, "7.3.4-2", "7.3.4-1")
    found = kernel_source.newest_package(apt / "lists")
    assert (found.version, found.apt) == ("7.3.4-2", ())
    assert found.why.endswith("stable-backports and unstable have none that is newer")


def test_only_later_suites_may_have_one(apt: Path) -> None:
    _offer(apt, "", "7.3.4-1")
    assert kernel_source.newest_package(apt / "lists").why.endswith("this machine's own lists offer none")
    _offer(apt, "", "")
    with pytest.raises(MachineError, match="stable-backports and unstable included"):
        kernel_source.newest_package(apt / "lists")
    with pytest.raises(MachineError, match=r"apt offers no linux-source package \(apt-get update\?\)"):
        kernel_source.newest_package()


@pytest.mark.parametrize(
    "mirror", ["http://archive.example/ubuntu noble Ubuntu", "http://mirror.example/debian bookworm-updates Debian", ""]
)
def test_later_suites_need_a_mirror_of_debian(apt: Path, mirror: str) -> None:
    _offer(apt, "6.8.0-1", mirror=mirror)
    with pytest.raises(MachineError, match="apt names no mirror of it here; name a kernel source tar with --source"):
        later_suites.update(apt / "lists")


def test_lists_that_cannot_be_read_are_told_with_the_way_out(apt: Path) -> None:
    _offer(apt, "6.12.117-1", update="echo 'E: no such suite' >&2; exit 100")
    with pytest.raises(MachineError, match=r"later suites: E: no such suite; name a kernel source tar with --source"):
        later_suites.update(apt / "lists")


def test_a_named_source_leaves_no_choice(tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(b"")
    assert kernel_source.of_file(tmp_path / "linux.tar.xz").why == "named with --source"
    with pytest.raises(InputError, match="leave out --later-suites"):
        kernel_build.build(lambda _step: None, tmp_path / "linux.tar.xz", later_suites=True)
