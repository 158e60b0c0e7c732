"""What is said of a guest that comes to a bad end, engine by engine: programs that play a guest end in every way."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm import qemu, qemu_initrd
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.qemu_command import Kernel
from hpn.testbed.vm.uml import Uml
from tests.vm.test_uml_kernel import ENOUGH, stand_in

Play = Callable[[str], str]
_STALL_S = 4.0
_BOOTS = "booting"  # what the kernel's console shows
_OOM = "Out of memory: Killed process 23 (python3) total-vm:2GB"
_STALL = "rcu: INFO: rcu_sched self-detected stall on CPU"
_PANIC = "Kernel panic - not syncing: No working init found."
_ENDS = (
    ("{boot}; kill -KILL $$", r"was killed by signal 9 \(this machine was short of memory, or .*\) while booting"),
    ("{boot}; exit 1", r"ended by itself \(code 1\) while booting"),
    ("{boot}; {start}; exit 0", r"ended by itself \(code 0\) while the command ran"),
    ("{boot}; {start}; kill -TERM $$", r"was killed by signal 15 while the command ran"),
    (f"{{boot}}; {{start}}; {{kernel}} '{_OOM}'", r"ran out of memory \(Out of memory: Killed .* command ran"),
    (f"{{boot}}; {{start}}; {{kernel}} '{_STALL}'", r"had a CPU stand still: .* starves it \(rcu: .* command ran"),
    (f"{{boot}}; {{kernel}} '{_PANIC}'", r"got into trouble \(Kernel panic .* No working init found.\) while booting"),
    (f"{{boot}}; {{start}}; {{over}}; {{kernel}} '{_PANIC}'", r"got into trouble .* after the command had ended"),
    ("{boot}; {start}; exec sleep 1000", r"has been silent for 4 s \(its clock stands at 0.0 s; .* it hangs"),
    ("{boot}; {start}; {beat}; exec sleep 1000", r"has been silent for 4 s \(its clock stands at 7.5 s; .* it hangs"),
)  # fmt: skip


@pytest.fixture(params=["uml", "qemu"])
def play(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Has an engine's guest played by a shell script, in which each {word} is what a guest does; the error's text."""
    return {"uml": _uml, "qemu": _qemu}[request.param](tmp_path, monkeypatch)


def _uml(folder: Path, _monkeypatch: pytest.MonkeyPatch) -> Play:
    words = {
        "start": "echo start 6.1.7 >> control", "beat": "echo beat 7.5 >> control", "over": "echo exit 0 >> control",
    }  # fmt: skip

    def played(script: str) -> str:
        made = stand_in(folder, ENOUGH, run=_script(script, words))
        return _failure(lambda job: Uml(made, stall_s=_STALL_S).run(job, lambda _line: None))

    return played


def _qemu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    kernel = Kernel(folder / "vmlinuz-6.1.7", "6.1.7")
    words = {
        "start": f"echo {qemu_initrd.READY} 6.1.7", "beat": f"echo {qemu_initrd.BEAT} 7.5 >&2",
        "over": f"echo {qemu_initrd.OVER} >&2",
    }  # fmt: skip
    monkeypatch.setattr(qemu.Qemu, "check", lambda _self: None)
    monkeypatch.setattr(qemu.Qemu, "kernel", lambda _self: kernel)
    monkeypatch.setattr(qemu.Qemu, "accelerator", lambda _self: "tcg")

    def played(script: str) -> str:
        command = ["/bin/sh", "-c", _script(script, words)]
        monkeypatch.setattr(qemu, "prepare", lambda *_what: command)
        return _failure(lambda job: qemu.Qemu(stall_s=_STALL_S).run(job, lambda _line: None))

    return played


def _script(script: str, words: dict[str, str]) -> str:
    return script.format(boot=f"echo {_BOOTS} >&2", kernel='say() { echo "$1" >&2; exec sleep 20; }; say', **words)


def _failure(run: Callable[[GuestJob], object]) -> str:
    job = GuestJob(("true",), Path("/"), (), {}, 16, 1, 100.0)
    with pytest.raises(MachineError) as ended:
        run(job)
    if "this machine starves it; run" in str(ended.value):
        pytest.skip("the machine is overloaded: a shell script does not get to run")
    return str(ended.value)


@pytest.mark.parametrize(("script", "said"), _ENDS)
def test_a_bad_end_is_told_as_what_it_was_and_when(play: Play, script: str, said: str) -> None:
    text = play(script)
    assert re.search(rf"^the (UML|qemu) guest {said}", text)
    assert _BOOTS in text


def test_a_first_process_that_fails_later_is_not_said_to_have_failed_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = _uml(tmp_path, monkeypatch)
    fail = "echo fail No space left on device >> control"
    assert "could not start the command: No space left" in play(f"{{boot}}; {fail}")
    assert "could not bring the command to its end: No space left" in play(f"{{boot}}; {{start}}; {fail}")


def test_what_a_command_leaves_behind_in_qemu_is_asked_to_end_and_then_killed(tmp_path: Path) -> None:
    """The script that is the guest's first process, run as the first process of a namespace of its own."""
    left = f"(trap 'echo asked > {tmp_path}/word; exit' TERM; echo > {tmp_path}/stands; while :; do sleep 1; done) &"
    deaf = f"(trap '' TERM; echo > {tmp_path}/stands2; while :; do sleep 1; done) &"
    wait = f"until [ -e {tmp_path}/stands ] && [ -e {tmp_path}/stands2 ]; do sleep 0.05; done"
    command = ("/bin/sh", "-c", f"{left} {deaf} {wait}; exit 7")
    text = qemu_initrd.script(command, tmp_path, {"PATH": "/usr/bin:/bin"}, tmp_path / "exit")
    (tmp_path / "console").touch()
    own = text.replace("> /dev/console", f">> {tmp_path}/console").replace("exec > $port", f"exec > {tmp_path}/port")
    own = own.partition("echo o > /proc/sysrq-trigger")[0] + f"others && echo left > {tmp_path}/left; exit 0\n"
    (tmp_path / "script").write_text(own)
    spaces = ["unshare", "--user", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child"]
    done = subprocess.run([*spaces, "/bin/sh", tmp_path / "script"], check=False, capture_output=True, timeout=60)
    if b"unshare" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert (tmp_path / "exit").read_text() == "7\n"
    assert (tmp_path / "word").read_text() == "asked\n"
    assert not (tmp_path / "left").exists()
    console = (tmp_path / "console").read_text()
    assert qemu_initrd.OVER in console
    assert qemu_initrd.BEAT in console
