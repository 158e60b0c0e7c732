"""Job in its own sandbox: run sequences in turn on one lab until one violates an invariant.

Every engine does this, on this machine, in a guest or on another machine. Results are appended to the report as they
come, so that a crash leaves the earlier ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_json

from hpn.scenarios.campaign.last_words import last_words
from hpn.scenarios.campaign.result import Report, Result, SequenceJob
from hpn.scenarios.campaign.sequences import Bench
from hpn.scenarios.run.remote_task import RemoteTask, in_guest
from hpn.testbed.background import ended_by_failures
from hpn.testbed.errors import HpnError
from hpn.testbed.fabric.build import build
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.processes import reap_strangers
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import preflight
from hpn.testbed.vm.engines import EngineSpec

REPORT = "report.jsonl"
_START_S, _SEQUENCE_S = 90.0, 60.0
_GUEST_SLOWNESS = 20.0
_JOB = TypeAdapter(SequenceJob)
_RESULT = TypeAdapter(Result)


def run(job: SequenceJob, folder: Path) -> int:
    """Run a job in a sandbox and wait; append results, and the error that ended it, to the report in ``folder``.

    The exit code is not 0 when the lab's process ended by something other than an error of hpn.
    """
    before = _interfaces()
    with (folder / REPORT).open("ab", buffering=0) as lines:

        def tell(kind: str, content: object) -> None:
            lines.write(json.dumps({kind: content}).encode() + b"\n")

        try:
            preflight.check(build(job.plan.topology))
            box = sandbox.spawn(lambda: _first_process(job, folder, tell))
            space = os.stat(f"/proc/{box.first_pid}/ns/pid").st_ino
            code = box.wait()
        except HpnError as error:
            tell("error", [str(error), error.exit_code])
            return 0
        left = [*_members(space), *(f"interface {name}" for name in sorted(_interfaces() - before))]
        if left:
            tell("leaks", left)
    return code


def _first_process(job: SequenceJob, scratch: Path, tell: Callable[[str, object], None]) -> int:
    try:
        asyncio.run(_sequences(job, scratch, tell))
    except HpnError as error:
        tell("error", [str(error), error.exit_code])
    return 0


async def _sequences(job: SequenceJob, scratch: Path, tell: Callable[[str, object], None]) -> None:
    lab = Lab.start(build(job.plan.topology), lambda _event: None)
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
    with ended_by_failures():
        await lab.converged()
        bench = Bench(job.plan, lab, scratch)
        tell("stood", True)
        for sequence in job.sequences:
            result = await bench.run(sequence)
            tell("result", _RESULT.dump_python(result, mode="json"))
            if result.violations:
                break  # later results of this lab may be caused by this sequence
    lab.close()


def read_report(folder: Path) -> Report:
    """Return the content of the report in ``folder`` so far, without a line cut off by a crash."""
    path = folder / REPORT
    results: list[Result] = []
    error, exit_code, crash, leaks, stood = "", 0, "", (), False
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if "result" in found:
            results.append(_RESULT.validate_python(found["result"]))
        elif "error" in found:
            error, exit_code = found["error"]
        elif "crash" in found:
            crash = found["crash"]
        elif "leaks" in found:
            leaks = tuple(found["leaks"])
        else:
            stood = True
    return Report(tuple(results), error, exit_code, crash, leaks, stood)


def body_of(job: SequenceJob) -> JsonValue:
    """Return the body of a job for ``asked``."""
    body: JsonValue = _JOB.dump_python(job, mode="json")
    return body


def asked(body: JsonValue, _spec: EngineSpec) -> int:
    """Run a job from inside the folder for its report."""
    return run(_JOB.validate_json(to_json(body)), Path())


def timeout_s(job: SequenceJob) -> float:
    """Return the maximum time of a job, in seconds of its own clock."""
    return _START_S + _SEQUENCE_S * len(job.sequences)


def asked_on(body: JsonValue, spec: EngineSpec) -> int:
    """Run a job on any engine: here, or in a guest, whose errors go into the report."""
    if spec.start is None:
        return asked(body, spec)
    job = _JOB.validate_json(to_json(body))
    here = Path.cwd()
    try:
        limit_s = timeout_s(job) * _GUEST_SLOWNESS
        ended = in_guest(RemoteTask("sequences", spec.name, body), spec, here, limit_s, lambda _line: None, cpus=1)
        words = last_words((*ended.console_tail, ended.last_line))  # skip the kernel's final messages
        trouble: dict[str, object] = {"crash": f"code {ended.exit_code}: {words}"} if ended.exit_code else {}
    except HpnError as error:
        trouble = {"error": [str(error), error.exit_code]}
    if trouble:
        with (here / REPORT).open("ab") as lines:
            lines.write(b"\n" + json.dumps(trouble).encode() + b"\n")  # the guest may have left an incomplete line
    return 0


def _interfaces() -> frozenset[str]:
    return frozenset(line.partition(":")[0].strip() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])


def _members(space: int) -> list[str]:
    """Return the processes in that PID namespace."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}/ns/pid").st_ino == space:
                found.append(f"process {name} ({Path(f'/proc/{name}/comm').read_text().strip()})")
        except OSError:  # it ended, or belongs to another user
            continue
    return found
