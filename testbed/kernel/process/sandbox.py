"""The sandbox: namespaces around one process, so that killing that process removes everything (DESIGN rule 2).

User namespace (when not root, or on request), network, mount, IPC and PID namespaces; a private tmpfs on /run and
a /proc of its own. The first process of the PID namespace is the sandbox's lifetime: when it dies the kernel
kills every other process in there and, with the last of them, drops mounts, namespaces and interfaces.

Two processes are created: a *warden* outside the PID namespace, which only waits, and the *first process*
inside. Each dies with its parent, unless the sandbox is detached.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    libc,
    setns,
    unshare,
)

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
_MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
_PR_SET_PDEATHSIG = 1
_INTERRUPTED = 128 + signal.SIGINT
_ENTER_ORDER = (("user", CLONE_NEWUSER), ("mnt", CLONE_NEWNS), ("net", CLONE_NEWNET), ("pid", CLONE_NEWPID))
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment in which numpy starts no threads. A process with threads may not enter a user namespace."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox seen from outside: process IDs of its warden and its first process."""

    warden_pid: int
    first_pid: int

    def wait(self) -> int:
        """Block until the sandbox ends; return the first process's exit code, or 128 + signal number."""
        _, status = os.waitpid(self.warden_pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def needs_user_namespace() -> bool:
    """Return True if this process may not create network namespaces without a user namespace."""
    return os.geteuid() != 0


def spawn(
    body: Callable[[], int],
    *,
    user_namespace: bool | None = None,
    detach: bool = False,
    keep: Collection[int] = (),
    afterwards: Callable[[], None] = lambda: None,
) -> Sandbox:
    """Fork ``body`` as the first process of a new sandbox; return once the sandbox is set up.

    ``body`` returns the exit code. With ``detach`` the sandbox outlives the caller, in a session of its own. It then
    inherits only the caller's descriptors 0 to 2 and ``keep``. The warden calls ``afterwards`` when the sandbox has
    ended for any reason. MachineError, with a remedy, when the kernel refuses the namespaces.
    """
    with_user = needs_user_namespace() if user_namespace is None else user_namespace
    reader, writer = os.pipe2(os.O_CLOEXEC)
    flush()
    parent = os.getpid()
    warden = os.fork()
    if warden == 0:
        try:
            os.close(reader)
            if detach:
                close_all_but({writer, *keep})
            _be_warden(body, writer, with_user, None if detach else parent, afterwards)
        except KeyboardInterrupt:  # the caller gets it too and cleans up; do not do that twice
            os._exit(_INTERRUPTED)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode(errors="replace")
    if not answer.startswith("pid "):
        os.waitpid(warden, 0)
        raise MachineError(answer or "the sandbox died before it stood")
    return Sandbox(warden, int(answer[4:]))


def ask(question: Callable[[], object], *, user_namespace: bool | None = None) -> object:
    """Run ``question`` in a throw-away sandbox; return its result, which must be JSON. MachineError without one."""
    reader, writer = os.pipe()

    def body() -> int:
        with os.fdopen(writer, "w") as pipe:
            json.dump(question(), pipe)
        return 0

    try:
        box = spawn(body, user_namespace=user_namespace)
    finally:
        os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    if box.wait() != 0 or not answer:
        raise MachineError("a process in a sandbox failed; its last words are above")
    return json.loads(answer)


def enter(pid: int, *, for_its_network: bool = False) -> None:
    """Move the calling process into the sandbox of first process ``pid``.

    A child forked afterwards is in its PID namespace. With ``for_its_network`` the caller keeps its mounts, processes
    and /proc; ``root_of`` gives access to the sandbox's files. Only for single-threaded processes (``ONE_THREAD``).
    MachineError when the sandbox is gone or belongs to another user.
    """
    try:
        own_user = os.stat("/proc/self/ns/user").st_ino
        wanted = [
            (os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind)
            for name, kind in _ENTER_ORDER
            if name != "user" or os.stat(f"/proc/{pid}/ns/user").st_ino != own_user
            if name in ("user", "net") or not for_its_network
        ]
        for fd, kind in wanted:
            setns(fd, kind)
            os.close(fd)
    except OSError as error:
        raise MachineError(f"cannot enter process {pid}: {error.strerror}; is that lab yours and still up?") from error


def root_of(pid: int, path: Path) -> Path:
    """Return the path from outside of ``path`` in the sandbox of first process ``pid``."""
    return Path(f"/proc/{pid}/root") / path.relative_to("/")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Call mount(2). OSError on failure."""
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"mount {kind} on {target}: {os.strerror(errno)}")


def bind_mount(source: str, target: Path) -> None:
    """Bind-mount ``source`` (a file) at ``target``, which is created."""
    target.touch(exist_ok=True)
    mount(source, str(target), "none", _MS_BIND)


def die_with_parent() -> None:
    """Make the kernel SIGKILL the calling process when its parent thread dies (PR_SET_PDEATHSIG)."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def let_go_of_terminal(log_fd: int | None = None) -> None:
    """Redirect standard input to /dev/null and output to ``log_fd`` or /dev/null, so that no reader waits for us."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, target in ((0, nothing), (1, log_fd), (2, log_fd)):
        os.dup2(nothing if target is None else target, fd)
    os.close(nothing)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor above 2 that is not ``kept``; they would keep the caller's locks held."""
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd > 2 and fd not in kept:
            with suppress(OSError):  # the descriptor of the listing is closed by now
                os.close(fd)


def flush() -> None:
    """Flush Python's buffers before a fork, which would otherwise write them twice."""
    sys.stdout.flush()
    sys.stderr.flush()


def _be_warden(
    body: Callable[[], int], writer: int, with_user: bool, parent: int | None, afterwards: Callable[[], None]
) -> NoReturn:
    """Enter the namespaces, fork the first process, report its process ID and wait for it; without parent: detached."""
    try:
        if parent is None:
            os.setsid()
        else:
            die_with_parent()
            if os.getppid() != parent:  # it died before the request
                os._exit(MachineError.exit_code)
        _unshare(with_user)
        go_reader, go_writer = os.pipe2(os.O_CLOEXEC)
        first = os.fork()
        if first == 0:
            os.close(go_writer)
            _be_first(body, go_reader, writer)
        os.close(go_reader)
        os.write(go_writer, f"pid {first}".encode())  # stays open: its end shows that the warden is dead
        os.close(writer)
    except OSError as error:
        os.write(writer, _explain(error).encode())
        os._exit(MachineError.exit_code)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if parent is None:
        let_go_of_terminal()
    code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    with suppress(OSError):  # a warden has nowhere to report errors
        afterwards()
    os._exit(code if code >= 0 else 128 - code)


def _be_first(body: Callable[[], int], go_reader: int, writer: int) -> NoReturn:
    """Set up mounts, report that the sandbox is ready, run ``body``."""
    code = 1
    try:
        die_with_parent()
        own_pid = os.read(go_reader, 32)
        if not own_pid or _is_hung_up(go_reader):
            os._exit(MachineError.exit_code)  # the warden died before die_with_parent took effect
        os.close(go_reader)
        try:
            _mounts()
        except OSError as error:
            os.write(writer, _explain(error).encode())
            os._exit(MachineError.exit_code)
        _tell_caller(writer, own_pid)
        os.close(writer)
        code = body()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:  # noqa: BLE001 - the edge of a process: nothing above it could report
        traceback.print_exc()
    finally:
        flush()
        os._exit(code)


def _tell_caller(writer: int, words: bytes) -> None:
    """Report that the sandbox is ready; exit silently if a signal made the caller stop listening."""
    try:
        os.write(writer, words)
    except BrokenPipeError:
        os._exit(MachineError.exit_code)


def _is_hung_up(reader: int) -> bool:
    poller = select.poll()
    poller.register(reader, 0)
    return bool(poller.poll(0))


def _unshare(with_user: bool) -> None:
    uid, gid = os.geteuid(), os.getegid()
    unshare((CLONE_NEWUSER if with_user else 0) | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC)
    if with_user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def _mounts() -> None:
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("hpn", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=256m")


def _explain(error: OSError) -> str:
    way_out = (
        "run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000 (older Debian:"
        " kernel.unprivileged_userns_clone=1, Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)"
    )
    return f"cannot make a sandbox ({error.strerror or error}): {way_out}"
