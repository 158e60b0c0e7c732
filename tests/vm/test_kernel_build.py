"""Building a kernel: what is refused before any work is done, and that a broken build says why."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.vm import kernel_build, kernel_cache, kernel_recipe, kernel_source
from hpn.testbed.vm.kernel_build import BuildStep, _patch, build, missing_options
from hpn.testbed.vm.kernel_recipe import PATCHES


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _unpatched(patch: Path) -> dict[str, str]:
    """Files that the patch fits, by path: its context lines at their places, blank lines between."""
    files: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in patch.read_text().split("\n--- ", 1)[1].splitlines()[1:]:
        if line.startswith("+++ b/"):
            lines = files.setdefault(line.removeprefix("+++ b/"), [])
        elif line.startswith("@@"):
            start = int(line.split()[1].split(",")[0].removeprefix("-"))
            lines += [""] * (start - 1 - len(lines))
        elif line.startswith((" ", "-")) and not line.startswith("--- "):
            lines.append(line[1:])
    return {file: "".join(f"{line}\n" for line in lines) for file, lines in files.items()}


def _source() -> dict[str, str]:
    """A source with a place for every patch."""
    return {file: text for patch in PATCHES for file, text in _unpatched(patch.path).items()}


_PLACE = {"net/sched/Makefile": "obj-y += sch_generic.o\n"}
"""Place of our own source."""


def test_our_own_source_is_added_to_those_of_its_place(tmp_path: Path) -> None:
    _write(tmp_path, _PLACE)
    kernel_recipe.add_own_source(tmp_path)
    assert (tmp_path / "net/sched/Makefile").read_text() == "obj-y += sch_generic.o\nobj-y += sch_mmu.o\n"
    assert (tmp_path / "net/sched/sch_mmu.c").read_bytes() == kernel_recipe.OWN_SOURCE.read_bytes()


def test_another_source_of_ours_is_another_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel_recipe.checksum()
    changed = tmp_path / "sch_mmu.c"
    changed.write_bytes(kernel_recipe.OWN_SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(kernel_recipe, "OWN_SOURCE", changed)
    assert kernel_recipe.checksum() != before


def _write(tree: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def test_every_patch_is_taken_and_once_only(tmp_path: Path) -> None:
    _write(tmp_path, _source())
    patches = list(kernel_recipe.needed(tmp_path))
    assert sorted(patches) == sorted(kernel_recipe.FRAGMENT.parent.glob("*.patch"))
    assert all(_patch(tmp_path, patch) for patch in patches)
    patched = {line for file in _source() for line in (tmp_path / file).read_text().splitlines()}
    for patch in patches:
        assert {
            line[1:] for line in patch.read_text().splitlines() if line.startswith("+") and not line.startswith("+++")
        } <= patched
    assert not any(_patch(tmp_path, patch) for patch in patches)


def test_a_source_that_does_something_itself_needs_no_patch_for_it(tmp_path: Path) -> None:
    """Soft-RoCE in every namespace, registers of any size: newer sources have these. Older ones map single pages."""
    newer = {
        "arch/x86/um/os-Linux/registers.c": "unsigned long host_fp_size;\n",
        "arch/um/kernel/trap.c": "flush_tlb_page(vma, address);\n",
        "drivers/infiniband/sw/rxe/rxe_net.c": "\trt = ip_route_output_key(net, &fl);\n",
    }
    _write(tmp_path, _source() | newer)
    assert {patch.name for patch in kernel_recipe.needed(tmp_path)} == {"uml-kernel.patch", "uml-kernel-polling.patch"}


@pytest.mark.parametrize("patch", [patch.path for patch in PATCHES], ids=lambda path: path.stem)
def test_a_source_that_needs_a_patch_and_does_not_take_it_is_refused(tmp_path: Path, patch: Path) -> None:
    place = {"uml-kernel-xstate": "have_xstate_support", "uml-kernel-rxe": "ip_route_output_key(&init_net, &fl)"}
    changed = dict.fromkeys(_unpatched(patch), f"int other; /* {place.get(patch.stem, '')} */\n")
    with pytest.raises(MachineError, match=rf"{patch.name} does not fit linux-0"):
        build(_silent, _tar(tmp_path, {"arch/um/Makefile": "", **_source(), **changed}))


def _silent(_step: BuildStep) -> None:
    pass


def test_every_missing_package_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("gcc", "make", "bc", "tar", "xz"):
        _program(tmp_path / "bin" / tool, "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(MachineError, match="apt install flex bison patch libc6-dev"):
        build(_silent)


def test_an_option_the_source_cannot_have_is_named() -> None:
    wanted = '# why\nCONFIG_NET=y\nCONFIG_TUN=y\nCONFIG_CON="fd:0"\n'
    assert missing_options(wanted, 'CONFIG_NET=y\n# CONFIG_TUN is not set\nCONFIG_CON="fd:0"\n') == ["CONFIG_TUN=y"]


def test_something_that_is_no_tar_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "linux.zip").write_text("")
    for path in (tmp_path / "linux.zip", tmp_path / "missing.tar.xz", tmp_path):
        with pytest.raises(InputError, match=r"name a tar file such as linux-6\.12\.tar\.xz"):
            kernel_source.of_file(path)


def test_a_full_disk_is_noticed_before_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_build, "ROOM_MB", 10**9)
    with pytest.raises(MachineError, match="HPN_CACHE_DIR"):
        build(_silent, _tar(tmp_path, {}))


def test_a_tar_file_without_a_kernel_is_refused_and_a_torn_one_too(tmp_path: Path) -> None:
    whole = _tar(tmp_path, {"README": "something else"})
    with pytest.raises(InputError, match="no Linux source"):
        build(_silent, whole)
    torn = tmp_path / "torn.tar.gz"
    torn.write_bytes(whole.read_bytes()[:40])
    with pytest.raises(MachineError, match="damaged"):
        build(_silent, torn)


def test_a_build_that_fails_gives_the_reason_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """The 'kernel' is a Makefile: it configures, fails to compile once, and is taken up again without unpacking."""
    config = "\n".join(line for line in kernel_recipe.FRAGMENT.read_text().splitlines() if line.startswith("CONFIG_"))
    program = (
        "#!/bin/sh\\ncase $$1 in --version) echo 6.99.1;; --help) echo User Mode Linux;; *) echo CONFIG_A=y;; esac"
    )
    makefile = (
        "allnoconfig:\n\tcp wanted .config\n"
        "linux:\n\t@test -f again || { touch again; echo 'x.c:1: error: no luck'; exit 1; }\n"
        f"\tprintf '{program}\\n' > linux; chmod +x linux\n"
    )
    source = _tar(tmp_path, {"Makefile": makefile, "wanted": config, "arch/um/Makefile": "", **_source(), **_PLACE})
    with pytest.raises(MachineError, match=r"x\.c:1: error: no luck"):
        build(_silent, source)
    stages: list[str] = []
    built = build(lambda step: stages.append(step.stage), source)
    assert built.release == "6.99.1"
    assert "unpack" not in stages
    assert kernel_cache.newest() == built
    assert build(lambda _step: pytest.fail("it is in the cache"), source) == built


def _tar(tmp_path: Path, files: dict[str, str]) -> Path:
    root = tmp_path / "linux-0"
    _write(root, {"COPYING": "", **files})
    path = tmp_path / "linux-0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(root, "linux-0")
    return path
