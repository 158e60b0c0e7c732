"""First process of a user-mode-linux guest: mounts, kernel modules, the command, its exit code, power off.

The kernel runs it as ``python -ISEB init.py`` (isolated: no project, no site). Its order is in the working folder
of the kernel as a process of the host. It communicates with the host over two terminals, which are files there:
TTY_COMMAND carries the command's output, TTY_CONTROL one line per message: ``start RELEASE``,
``beat SECONDS`` (CLOCK_MONOTONIC, once a guest second), ``exit CODE`` or ``fail WHY``.
In interactive use, the command leads a session on TTY_USER instead.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import struct
import termios
import time
from pathlib import Path
from typing import TypedDict

TTY_COMMAND, TTY_CONTROL, TTY_USER = "/dev/tty1", "/dev/tty2", "/dev/tty3"
_DESK = "/run/desk"
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
_QUIET = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_SYSTEM = (  # source, target, type, flags, options
    ("proc", "/proc", "proc", _QUIET, ""),
    ("sysfs", "/sys", "sysfs", _QUIET, ""),
    ("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "mode=620,ptmxmode=666"),
    ("shm", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777"),
    ("run", "/run", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755"),
)
_SYS_FINIT_MODULE = 313  # x86-64
_AF_INET, _SOCK_DGRAM = 2, 2  # the socket module is not worth its import: every file read takes guest time
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_RB_POWER_OFF = 0x4321FEDC
_EEXIST = 17
_PATIENCE_S = 3.0
"""Time for remaining processes to end, and once more when they are killed."""
_IUTF8 = 0o40000
_libc = ctypes.CDLL(None, use_errno=True)


class _Order(TypedDict):
    command: list[str]
    cwd: str
    writable: list[str]
    environment: dict[str, str]
    modules: list[tuple[str, str]]  # file, parameters
    settings: dict[str, int]  # below /proc/sys
    terminal: tuple[int, int] | None  # rows, columns


def main() -> None:
    """Execute the order and switch the guest off, whatever happens."""
    control = -1
    try:
        for what, where, kind, flags, options in _SYSTEM:
            os.makedirs(where, exist_ok=True)
            _mount(what, where, kind, flags, options)
        order = _read_order()
        control, output = _terminal(TTY_CONTROL), _terminal(TTY_COMMAND)
        for folder in order["writable"]:
            os.makedirs(folder, exist_ok=True)
            _mount("none", folder, "hostfs", 0, folder)
        for path, options in order["modules"]:
            _load(path, options)
        _loopback_up()
        for name, value in order["settings"].items():
            Path("/proc/sys", name).write_text(str(value))
        user = _user_terminal(*order["terminal"]) if order["terminal"] else -1
        _say(control, f"start {os.uname().release}")
        code = _run(order, control, output, user)
        os.sync()
        termios.tcdrain(output if user < 0 else user)
        _say(control, f"exit {code}")
        _end_the_rest()
    except (OSError, termios.error) as error:
        _say(control, f"fail {getattr(error, 'strerror', None) or error}")
    finally:
        if control >= 0:
            termios.tcdrain(control)
        os.sync()
        _libc.reboot(_RB_POWER_OFF)


def _read_order() -> _Order:
    os.makedirs(_DESK)
    _mount("none", _DESK, "hostfs", _MS_RDONLY, "/proc/self/cwd")  # a path of the host, seen by the kernel's process
    order: _Order = json.loads(Path(_DESK, "order.json").read_text())
    _libc.umount(_DESK.encode())
    os.rmdir(_DESK)
    return order


def _mount(what: str, where: str, kind: str, flags: int, options: str) -> None:
    if _libc.mount(what.encode(), os.fsencode(where), kind.encode(), flags, os.fsencode(options)) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"cannot mount {kind} on {where}: {os.strerror(errno)}")


def _load(path: str, options: str) -> None:
    """Insert a kernel module; one that is loaded already is fine."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.syscall(_SYS_FINIT_MODULE, fd, options.encode(), 0) != 0 and ctypes.get_errno() != _EEXIST:
            errno = ctypes.get_errno()
            raise OSError(errno, f"cannot load {path}: {os.strerror(errno)}")
    finally:
        os.close(fd)


def _loopback_up() -> None:
    """Bring up the loopback, so that services on 127.0.0.1, such as metrics, can be reached."""
    fd = _libc.socket(_AF_INET, _SOCK_DGRAM, 0)
    fcntl.ioctl(fd, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    os.close(fd)


def _terminal(path: str) -> int:
    """Open a terminal that passes bytes on unchanged."""
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    modes = termios.tcgetattr(fd)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(fd, termios.TCSANOW, modes)
    return fd


def _user_terminal(rows: int, columns: int) -> int:
    """Open the interactive terminal, with this process as the leader of its session.

    When a session's leader ends the kernel hangs up the terminal, and its last output may be lost.
    """
    Path("/proc/sys/kernel/hostname").write_text("guest")
    fd = os.open(TTY_USER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # this process uses it from the background
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    modes = termios.tcgetattr(fd)
    modes[0] |= _IUTF8
    termios.tcsetattr(fd, termios.TCSANOW, modes)
    return fd


def _say(control: int, line: str) -> None:
    if control >= 0:
        os.write(control, line.replace("\n", " ").encode(errors="replace") + b"\n")


def _run(order: _Order, control: int, output: int, user: int) -> int:
    """Run the command, relay its output, reap orphans, send beats; return its exit code as a shell does.

    Without ``user`` the command writes into a pipe, not a terminal, so that it does not expect a user.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    signal_reader, signal_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    child = os.fork()
    if child == 0:
        _become(order, writer, user)
    os.close(writer)
    beat, code, sources = 0.0, None, [reader, signal_reader]
    while True:
        ready, _, _ = select.select(sources, [], [], max(beat - time.monotonic(), 0.0) if code is None else 0.0)
        if reader in ready:
            data = os.read(reader, 1 << 16)
            _write_all(output, data)
            if not data:
                sources.remove(reader)
        elif code is not None:  # the command is gone; other holders of its pipe do not matter
            return code
        if signal_reader in ready:
            os.read(signal_reader, 1 << 10)
            code = _collect(child, code)
        if time.monotonic() >= beat:
            _say(control, f"beat {time.monotonic():.3f}")
            beat = time.monotonic() + 1.0


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _end_the_rest() -> None:
    """End remaining processes as a machine that is switched off does: SIGTERM first, then SIGKILL."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(-1, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _PATIENCE_S
        while _any_left() and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, max(deadline - time.monotonic(), 0.0))


def _any_left() -> bool:
    """Reap ended processes; return True if there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _become(order: _Order, output: int, user: int) -> None:
    """Execute the command in this child process; exit with 127 if that fails."""
    try:
        if user < 0:
            os.setsid()
        else:
            _to_foreground(user)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY) if user < 0 else user, 0)
        os.dup2(output if user < 0 else user, 1)
        os.dup2(output if user < 0 else user, 2)
        os.chdir(order["cwd"])
        os.execvpe(order["command"][0], order["command"], order["environment"])
    except OSError as error:
        os.write(2, f"cannot run the command: {error}\n".encode())
    finally:
        os._exit(127)


def _to_foreground(terminal: int) -> None:
    """Put the calling process into a process group of its own, in the terminal's foreground."""
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)


def _collect(child: int, code: int | None) -> int | None:
    """Reap every ended process; return the exit code of ``child`` once it is among them, else ``code``."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


if __name__ == "__main__":
    main()
