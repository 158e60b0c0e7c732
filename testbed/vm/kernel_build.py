"""Build of the user-mode-linux kernel that virtual time needs, once, into the cache.

Stages: fetch, unpack (with our patch), configure (every requested option is checked), compile, store. Each leaves a
complete result, so that an interrupted build continues from there. No root.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.kernel.process.processes import piped
from hpn.testbed.vm import kernel_cache, kernel_recipe, kernel_source, uml_kernel
from hpn.testbed.vm.console import Lines
from hpn.testbed.vm.group import ProcessGroup
from hpn.testbed.vm.kernel_cache import Built
from hpn.testbed.vm.kernel_source import Source

ROOM_MB = 1800
"""Space that a build needs while it runs; 10 MB remain."""

_TOOLS = {  # program: Debian's package
    "gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "patch": "patch", "tar": "tar",
    "xz": "xz-utils",
}  # fmt: skip
PACKAGES = (*_TOOLS.values(), "libc6-dev")
_COMPILE_LINES = 1390  # number of lines that make prints for this configuration; only the progress bar depends on it
_NOT_FOR_UML = ("*/drivers/gpu/*.[ch]", "*/sound/*.[ch]", "*/drivers/media/*.[ch]", "*/tools/testing/*")
_FIXED = {"KBUILD_BUILD_USER": "hpn", "KBUILD_BUILD_HOST": "hpn", "KBUILD_BUILD_TIMESTAMP": "2026-01-01"}
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class BuildStep:
    """Progress of the build: the stage, and the share of it (0 to 1) that is done."""

    stage: str
    done: float


OnStep = Callable[[BuildStep], None]


def build(
    on_step: OnStep,
    source: Path | None = None,
    *,
    later_suites: bool = False,
    tell: Callable[[str], None] = lambda _line: None,
) -> Built:
    """Return the kernel of ``source``, or of the newest package, from the cache or built now.

    ``later_suites``: include packages of the distribution's later suites. ``tell`` receives the choice and its reason.
    MachineError, naming the command that helps, when this machine cannot build it; InputError for a bad ``source``.
    """
    _check_machine()
    chosen = _chosen(source, kernel_cache.cache_folder() / "apt" if later_suites else None)
    tell(f"source: {' '.join(chosen.identity.split()[:-1])}, {chosen.why}")
    compiler = _first_line(["gcc", "--version"])
    key = kernel_cache.key_of(chosen.identity, compiler)
    for built in kernel_cache.all_built():
        if built.key == key:
            return built
    work = kernel_cache.cache_folder() / "build" / key
    begun = time.monotonic()
    with _claimed(work):
        _check_room(work)
        tree = _unpacked(chosen, work, on_step)
        on_step(BuildStep("configure", 0.0))
        _configure(tree, work)
        _compile(tree, work, on_step)
        release = uml_kernel.describe(tree / "linux").release
        made = Built(key, release, chosen.identity, kernel_recipe.checksum(), compiler, time.monotonic() - begun)
        kernel_cache.store(made, tree / "linux", tree / ".config")
        on_step(BuildStep("clean up", 0.0))
        shutil.rmtree(work)
    return made


def _chosen(source: Path | None, lists: Path | None) -> Source:
    if source is not None and lists is not None:
        raise InputError("--source names the kernel source already; leave out --later-suites")
    return kernel_source.of_file(source) if source is not None else kernel_source.newest_package(lists)


def missing_packages() -> list[str]:
    """Return Debian packages that a build needs and this machine lacks."""
    missing = [package for program, package in _TOOLS.items() if shutil.which(program) is None]
    if "gcc" in missing or not _compiles("#include <stdio.h>\nint main(void) { return 0; }\n"):
        missing.append("libc6-dev")
    return missing


def _check_machine() -> None:
    if platform.machine() != "x86_64":
        raise MachineError(f"user-mode Linux is built on x86-64 machines only, this is {platform.machine()}")
    missing = missing_packages()
    if missing:
        raise MachineError(f"a kernel build needs more packages: apt install {' '.join(missing)}")


def _check_room(work: Path) -> None:
    if (work / "tree").is_dir():
        return
    free_mb = shutil.disk_usage(work).free >> 20
    if free_mb < ROOM_MB:
        raise MachineError(
            f"a kernel build needs {ROOM_MB} MB and {work} has {free_mb} MB free; free some or set HPN_CACHE_DIR"
        )


@contextmanager
def _claimed(work: Path) -> Iterator[None]:
    """Lock the work folder, created if necessary, against other builds of the same kernel."""
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(work.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MachineError(
            f"cannot write to {work} ({error.strerror}); set HPN_CACHE_DIR to a folder of yours"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
        work.with_suffix(".lock").unlink(missing_ok=True)
    except BlockingIOError:
        raise MachineError("another hpn vm build-kernel is at work on this kernel; wait for it") from None
    finally:
        os.close(lock)


def _unpacked(source: Source, work: Path, on_step: OnStep) -> Path:
    """Return the patched source tree, unpacked if necessary."""
    tree = work / "tree"
    if tree.is_dir():
        return tree
    on_step(BuildStep("fetch", 0.0))
    tar = kernel_source.fetch(source, work)
    unfinished = work / "tree.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    _unpack(tar, unfinished, on_step)
    if not (unfinished / "arch" / "um" / "Makefile").is_file():
        shutil.rmtree(unfinished)
        raise InputError(f"{tar} holds no Linux source with user-mode Linux in it")
    for patch in kernel_recipe.needed(unfinished):
        if not _patch(unfinished, patch):
            raise MachineError(f"{patch.name} does not fit {source.identity.split()[0]}; use another source")
    kernel_recipe.add_own_source(unfinished)
    unfinished.rename(tree)
    return tree


def _patch(tree: Path, patch: Path) -> bool:
    """Apply a patch; False when it does not apply."""
    command = ["patch", "-p1", "--forward", "--batch"]
    with patch.open() as text:
        return subprocess.run(command, cwd=tree, stdin=text, capture_output=True, check=False).returncode == 0


def _unpack(tar: Path, into: Path, on_step: OnStep) -> None:
    option = kernel_source.tar_option(tar)
    excluded = [f"--exclude={pattern}" for pattern in _NOT_FOR_UML]
    command = ["tar", "-x", *([option] if option else []), "--strip-components=1", *excluded]
    size, fed = max(tar.stat().st_size, 1), 0
    process = subprocess.Popen(command, cwd=into, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    into_tar = piped(process.stdin)
    try:
        with tar.open("rb") as file:
            while chunk := file.read(_CHUNK):
                into_tar.write(chunk)
                fed += len(chunk)
                on_step(BuildStep("unpack", fed / size))
        into_tar.close()
    except BrokenPipeError:
        pass  # tar failed; see its exit code
    finally:
        if into_tar.closed:
            process.wait()
        else:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise MachineError(f"cannot unpack {tar}: damaged, or the disk is full")


def _configure(tree: Path, work: Path) -> None:
    """Write .config from our fragment. MachineError naming every option that the source does not support."""
    _make(tree, work, ["allnoconfig", f"KCONFIG_ALLCONFIG={kernel_recipe.FRAGMENT}"], lambda _line: None)
    missing = missing_options(kernel_recipe.FRAGMENT.read_text(), (tree / ".config").read_text())
    if missing:
        raise MachineError(f"this kernel source cannot have {', '.join(missing)}; use a newer one with --source")


def missing_options(wanted: str, config: str) -> list[str]:
    """Return the lines 'CONFIG_X=...' of ``wanted`` that ``config`` lacks."""
    have = set(config.splitlines())
    return [line for line in wanted.splitlines() if line.startswith("CONFIG_") and line not in have]


def _compile(tree: Path, work: Path, on_step: OnStep) -> None:
    log = work / "make.log"
    lines = len(log.read_bytes().splitlines()) if log.exists() else 0

    def count(_line: str) -> None:
        nonlocal lines
        lines += 1
        on_step(BuildStep("compile", min(lines / _COMPILE_LINES, 0.99)))

    _make(tree, work, [f"-j{os.cpu_count() or 1}", "linux"], count)
    on_step(BuildStep("compile", 1.0))


def _make(tree: Path, work: Path, arguments: Sequence[str], on_line: Callable[[str], None]) -> None:
    """Run make at low priority. MachineError with its error output; no process of it outlives us."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(work), "LC_ALL": "C", **_FIXED}
    command = ["nice", "-n", "10", "make", "ARCH=um", *arguments]
    said = Lines()
    last: list[str] = []
    with (work / "make.log").open("ab") as log, os.fdopen(reader, "rb", buffering=0) as output:
        try:
            group = ProcessGroup(command, cwd=tree, environment=environment, output=writer)
        finally:
            os.close(writer)
        try:
            while data := output.read(1 << 16):
                log.write(data)
                for line in said.feed(data):
                    last = [*last, line][-20:]
                    on_line(line)
            group.ended(60.0)
        finally:
            code = group.kill()
    if code != 0:
        words = next((line for line in last if "error" in line.lower() or "***" in line), last[-1] if last else "")
        raise MachineError(f"the kernel build failed: {words.strip()} (all of it: {work / 'make.log'})")


def _compiles(program: str) -> bool:
    done = subprocess.run(
        ["gcc", "-fsyntax-only", "-xc", "-"], input=program.encode(), capture_output=True, check=False
    )
    return done.returncode == 0


def _first_line(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n", 1)[0]
