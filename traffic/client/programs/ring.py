"""A ring of TCP connections: every step is an all-gather of random blocks, round the ring, checked by its hash.

    ring.py [BYTES] [PAUSE_MS]

Every rank listens at its address and connects to the next. In a step rank r makes a block of BYTES / ranks that only
its number and the step decide, and passes on what comes, until each has all blocks: BYTES in all, of which a rank
sends BYTES * (ranks - 1) / ranks. ``sum`` is the hash of all blocks in order of ranks: a wrong byte anywhere shows.
"""

from __future__ import annotations

import hashlib
import os
import random
import select
import socket
import sys
import time

PORT = 29400
RETRY_S = 0.05


def main(size: int, pause_s: float) -> None:
    """Prepare, wait for the begin, do steps until the run ends."""
    rank, world = int(os.environ["HPN_RANK"]), int(os.environ["HPN_WORLD_SIZE"])
    addresses = os.environ["HPN_ADDRESSES"].split(",")
    listener = socket.create_server((addresses[rank], PORT))
    following = connected(addresses[(rank + 1) % world], addresses[rank])
    before, _ = listener.accept()
    for each in (before, following):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        each.setblocking(False)
    print("hpn ready", flush=True)
    _, begin_ns, _, until_ns = sys.stdin.readline().split()
    time.sleep(max(0.0, (int(begin_ns) - time.monotonic_ns()) / 1e9))
    number = 0
    while time.monotonic_ns() < int(until_ns):
        started_ns = time.monotonic_ns()
        blocks = [b""] * world
        blocks[rank] = random.Random(number * world + rank).randbytes(size // world)
        for turn in range(world - 1):
            blocks[(rank - turn - 1) % world] = exchanged(following, before, blocks[(rank - turn) % world])
        found = hashlib.sha256(b"".join(blocks)).hexdigest()[:16]
        times = f"begin={started_ns} end={time.monotonic_ns()}"
        print(f"hpn step {number} {times} kind=all-gather bytes={size // world * world} sum={found}", flush=True)
        number += 1
        time.sleep(pause_s)


def connected(address: str, own: str) -> socket.socket:
    """A connection to the next rank, once that listens."""
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=None, source_address=(own, 0))
        except ConnectionRefusedError:
            time.sleep(RETRY_S)


def exchanged(following: socket.socket, before: socket.socket, block: bytes) -> bytes:
    """Send a block on and receive one as large, both at once: whoever only sends may wait for ever."""
    left, came = memoryview(block), bytearray()
    while left or len(came) < len(block):
        wanted = [before] if len(came) < len(block) else []
        readable, writable, _ = select.select(wanted, [following] if left else [], [])
        if readable:
            data = before.recv(len(block) - len(came))
            if not data:
                raise ConnectionError("the rank before has gone")
            came += data
        if writable:
            left = left[following.send(left) :]
    return bytes(came)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, float(sys.argv[2]) / 1e3 if len(sys.argv) > 2 else 0.0)
