"""A program that polls, as MPI's progress does, between two namespaces of a guest in virtual time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_NETWORK = """
set -e
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.9.0.1/24 dev va; ip -n b addr add 10.9.0.2/24 dev vb
ip -n a link set va up; ip -n b link set vb up
sleep 1
ip netns exec a "$0" -c "$1" &
sleep 1
exec ip netns exec b "$0" -c "$2"
"""
_ANSWERS = """
import socket, time
with socket.create_server(("10.9.0.1", 5000)) as server:
    caller, _ = server.accept()
    while wanted := caller.recv(64):
        time.sleep(int(wanted) / 1e6)
        caller.sendall(b"x")
"""
_POLLS = """
import ctypes, json, os, select, socket, time
caller = socket.create_connection(("10.9.0.1", 5000))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
ready = select.epoll()
ready.register(caller, select.EPOLLIN)
room, libc = ctypes.create_string_buffer(12), ctypes.CDLL(None)  # Python's own poll() reads the clock, which takes time
def in_vain():
    return libc.epoll_wait(ready.fileno(), room, 1, 0) == 0
def yielding():
    os.sched_yield()
    return in_vain()
def receiving():
    try:
        return not caller.recv(64, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return True
found = {}
for way in (in_vain, yielding, receiving):
    for wait_us in (100, 10_000, 1_000_000):
        begun, polls = time.monotonic_ns(), 1
        caller.sendall(b"%d" % wait_us)
        while way():
            polls += 1
        found[f"{way.__name__} {wait_us}"] = ((time.monotonic_ns() - begun) / 1e3, polls)
        caller.recv(64)
print(json.dumps(found))
"""


def test_a_program_that_polls_sees_what_it_waits_for_soon_after_it_came(tmp_path: Path) -> None:
    """The answer is up to 50 us late; a poll in vain takes up to 10 us, an EAGAIN 1 us, or a 256th of a long wait.

    A yield and a poll in one turn take both.
    """
    engine = Uml(virtual_time=True, stall_s=30.0)
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    lines: list[str] = []
    command = ("/bin/sh", "-c", _NETWORK, sys.executable, _ANSWERS, _POLLS)
    result = engine.run(GuestJob(command, tmp_path, (tmp_path,), {}, 256, 1, 200.0), lines.append)
    assert result.exit_code == 0, "\n".join(lines)
    found: dict[str, tuple[float, int]] = {key: (us, polls) for key, (us, polls) in json.loads(lines[-1]).items()}
    assert len(found) == 9
    for case, (took_us, polls) in found.items():
        wait_us = int(case.split()[1])
        only_asks = not case.startswith("receiving")
        turn_us = min(max(wait_us / 256, 10 if only_asks else 1), 100) * (2 if case.startswith("yielding") else 1)
        most = {100: 20, 10_000: 650, 1_000_000: 10_700} if only_asks else {100: 110, 10_000: 1_300, 1_000_000: 11_300}
        assert wait_us <= took_us <= wait_us + 60 + turn_us, case
        assert polls <= most[wait_us], case
