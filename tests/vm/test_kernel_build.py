"""Building a kernel: what is refused before any work is done, and that a broken build says why."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from testbed.errors import InputError, MachineError
from testbed.vm import kernel_build, kernel_cache, kernel_source
from testbed.vm.kernel_build import Step, _patch, build, missing_options


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_patch_for_large_cpu_states_is_taken_where_it_fits(tmp_path: Path) -> None:
    registers = "arch/x86/um/os-Linux/registers.c"
    expected = _expected(kernel_cache.XSTATE_PATCH)
    (tmp_path / registers).parent.mkdir(parents=True)
    (tmp_path / registers).write_text("".join(f"{line}\n" for line in expected))
    assert _patch(tmp_path, kernel_cache.XSTATE_PATCH, "--dry-run")
    assert (tmp_path / registers).read_text().splitlines() == expected
    assert _patch(tmp_path, kernel_cache.XSTATE_PATCH)
    assert "xstate_bytes = iov.iov_len;" in (tmp_path / registers).read_text()
    (tmp_path / registers).write_text("a newer source\n")
    assert not _patch(tmp_path, kernel_cache.XSTATE_PATCH, "--dry-run")


def _expected(patch: Path) -> list[str]:
    """A file the patch fits: its context lines at their places, blank lines between."""
    lines: list[str] = []
    for line in patch.read_text().split("+++", 1)[1].splitlines()[1:]:
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0].removeprefix("-"))
            lines += [""] * (start - 1 - len(lines))
        elif not line.startswith("+"):
            lines.append(line[1:])
    return lines


def _silent(_step: Step) -> None:
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


def test_a_source_the_patch_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"uml-kernel\.patch does not fit"):
        build(_silent, _tar(tmp_path, {"arch/um/Makefile": "", "arch/um/os-Linux/util.c": "int other;\n"}))


def test_a_build_that_fails_gives_the_reason_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """The 'kernel' is a Makefile: it configures, fails to compile once, and is taken up again without unpacking."""
    config = "\n".join(line for line in kernel_cache.FRAGMENT.read_text().splitlines() if line.startswith("CONFIG_"))
    program = (
        "#!/bin/sh\\ncase $$1 in --version) echo 6.99.1;; --help) echo User Mode Linux;; *) echo CONFIG_A=y;; esac"
    )
    makefile = (
        "allnoconfig:\n\tcp wanted .config\n"
        "linux:\n\t@test -f again || { touch again; echo 'x.c:1: error: no luck'; exit 1; }\n"
        f"\tprintf '{program}\\n' > linux; chmod +x linux\n"
    )
    util = "".join(f"{line[1:]}\n" for line in _patched_lines())
    source = _tar(tmp_path, {"Makefile": makefile, "wanted": config, "arch/um/Makefile": "", _UTIL: util})
    with pytest.raises(MachineError, match=r"x\.c:1: error: no luck"):
        build(_silent, source)
    stages: list[str] = []
    built = build(lambda step: stages.append(step.stage), source)
    assert built.release == "6.99.1"
    assert "unpack" not in stages
    assert kernel_cache.newest() == built
    assert build(lambda _step: pytest.fail("it is in the cache"), source) == built


_UTIL = "arch/um/os-Linux/util.c"


def _patched_lines() -> list[str]:
    """The lines the patch expects to find, after as many that are of no interest as it skips."""
    lines = kernel_cache.PATCH.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("@@"))
    return [" //"] * 98 + [line for line in lines[at + 1 :] if not line.startswith("+")]


def _tar(tmp_path: Path, files: dict[str, str]) -> Path:
    root = tmp_path / "linux-0"
    for name, text in {"COPYING": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    path = tmp_path / "linux-0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(root, "linux-0")
    return path
