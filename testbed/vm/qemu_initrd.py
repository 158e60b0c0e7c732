"""Start-up of a QEMU guest before the command: our /init on top of virtme-ng's initramfs, then a shell script.

Pure. Changes when a guest must mount or load something else. virtme-ng's own init would start udev and
systemd-tmpfiles, half of the boot time under emulation. It would also mount the host's files uncached, which makes
Python start four times slower.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpn.testbed.vm.guest import SETTINGS, Terminal

READY = "hpn-guest-ready"
"""First word of the first line on the output port; the kernel release follows."""

OVER = "hpn-guest-over"
"""Line on the kernel's console: the command has ended, and the guest now switches itself off."""

BEAT = "hpn-guest-beat"
"""First word of a line on the kernel's console as a sign of life; the guest's uptime in seconds follows."""

OUTPUT_PORT = "virtme.stdout"
TERMINAL = "/dev/ttyS1"
"""Terminal for interactive use."""

_9P = "trans=virtio,version=9p2000.L,access=any,msize=524288,cache=loose"
"""Options of 9p mounts; ``loose``: only the guest changes its writable files, and other files count as constant."""

_TRIES = 30
"""Tenths of a second for remaining processes to end, and once more when they are killed."""

_INIT = """\
#!/bin/sh
# busybox; /modules is virtme-ng's. Every line may fail: what is missing shows when the command needs it.
mount -t proc proc /proc
. /modules/load_all.sh
umount /proc
if ! mount -t 9p -o ro,{options} /dev/root /newroot; then
  echo "hpn: cannot mount the host's files over 9p" > /dev/console
  exit 1
fi
inside() {{ busybox chroot /newroot /bin/sh -c "$1"; }}
mount -t proc -o nosuid,noexec,nodev proc /newroot/proc
mount -t sysfs -o nosuid,noexec,nodev sys /newroot/sys
mount -t devtmpfs -o nosuid dev /newroot/dev
mkdir -p /newroot/dev/pts /newroot/dev/shm
mount -t devpts -o nosuid,noexec,mode=620,ptmxmode=666 devpts /newroot/dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 shm /newroot/dev/shm
mount -t tmpfs -o nosuid,nodev,mode=755 run /newroot/run
inside 'PATH=/usr/sbin:/usr/bin:/sbin:/bin modprobe -a {modules}'
# What the host has in /tmp can be read, what the guest writes there is forgotten.
mount -t tmpfs scratch /tmproot
mkdir /tmproot/upper /tmproot/work
mount -t overlay -o lowerdir=/newroot/tmp,upperdir=/tmproot/upper,workdir=/tmproot/work scratch /newroot/tmp
busybox chmod 1777 /newroot/tmp
busybox ifconfig lo up
{mounts}
{settings}
exec /bin/switch_root /newroot /bin/sh {script}
"""

_SCRIPT = """\
for entry in /sys/class/virtio-ports/*; do
  read name < $entry/name && [ "$name" = {port} ] && port=/dev/${{entry##*/}}
done
exec > $port 2>&1 < /dev/null
read _ _ kernel _ < /proc/version
echo {ready} $kernel
{{ trap : TERM; while read up _ < /proc/uptime; do echo {beat} $up; sleep {beat_s:g}; done; }} > /dev/console 2>&1 &
beat=$!
{command}
code=$?
exec > /dev/console
echo {over}
kill -KILL $beat
others() {{
  for each in /proc/[0-9]*; do
    line=
    [ $each = /proc/1 ] || read -r line < $each/cmdline
    [ -z "$line" ] || return 0
  done 2> /dev/null
  return 1
}}
for signal in TERM KILL; do
  others && kill -$signal -1
  tries=0
  while [ $tries -lt {tries} ] && others; do sleep 0.1; tries=$((tries + 1)); done
done
echo $code > {exit_file}
sync
echo o > /proc/sysrq-trigger
while :; do sleep 60; done
"""


def init(writable: Sequence[Path], modules: Sequence[str], script: Path) -> bytes:
    """Return the initramfs's /init. ``writable`` in the order of their mount tags, virtme.initmount0 and on."""
    mounts = []
    for number, folder in enumerate(writable):
        target = shlex.quote(f"/newroot{folder}")
        mounts += [f"mkdir -p {target}", f"mount -t 9p -o rw,{_9P} virtme.initmount{number} {target}"]
    text = _INIT.format(
        options=_9P,
        modules=" ".join(modules),
        mounts="\n".join(mounts),
        settings="\n".join(f"echo {value} > /newroot/proc/sys/{name}" for name, value in SETTINGS.items()),
        script=shlex.quote(str(script)),
    )
    return text.encode()


_LEADER = '"$@"; ended=$?; stty sane; exit $ended'
"""Session leader. When a leader ends, the line is hung up and its buffer lost; stty waits until that is sent."""


def script(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    exit_file: Path,
    terminal: Terminal | None = None,
    beat_s: float = 10.0,
) -> str:
    """Return the script on the host's files: the command with its output on the port, then its exit code in a file.

    With ``terminal`` the command leads a session on the guest's end of it instead. Every ``beat_s`` the guest gives a
    sign of life. Remaining processes get SIGTERM, and are killed if they do not end.
    """
    words = (*(f"{name}={value}" for name, value in environment.items()), *command)
    run = f"cd {shlex.quote(str(cwd))} && env -i {shlex.join(words)}"
    if terminal is not None:
        leader = f"setsid --wait --ctty sh -c {shlex.quote(_LEADER)} sh env -i {shlex.join(words)}"
        run = _on(terminal, f"cd {shlex.quote(str(cwd))} && {leader}")
    return _SCRIPT.format(
        port=OUTPUT_PORT,
        ready=READY,
        command=run,
        exit_file=shlex.quote(str(exit_file)),
        over=OVER,
        beat=BEAT,
        beat_s=beat_s,
        tries=_TRIES,
    )


def _on(terminal: Terminal, run: str) -> str:
    """Wrap ``run`` with the guest's end of the terminal, which forgets its size unless it is held open."""
    size = f"115200 rows {terminal.rows} columns {terminal.columns}"
    named = "echo guest > /proc/sys/kernel/hostname"
    return f"{named}\n{{ stty sane iutf8 {size}; {run}; }} <> {TERMINAL} >&0 2>&0"


def cpio(name: str, content: bytes, mode: int) -> bytes:
    """Return a cpio archive with one file, which replaces that file when appended to an initramfs.

    The 'newc' format of Documentation/driver-api/early-userspace/buffer-format.rst; the kernel unpacks concatenated
    archives one after the other.
    """
    return _entry(name, content, 0o100000 | mode) + _entry("TRAILER!!!", b"", 0)


def _entry(name: str, content: bytes, mode: int) -> bytes:
    named = name.encode() + b"\0"
    #         ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(named), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + named
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
