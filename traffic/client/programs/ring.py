"""A ring of TCP connections: every step is an all-gather of random blocks, round the ring, checked by its hash.

    ring.py [BYTES] [PAUSE_MS] [CONNECTIONS]

Every rank listens at its address and connects to the next, so many times; each connection carries a part of a block.
In a step rank r makes a block of BYTES / ranks that only its number and the step decide, and passes on what comes,
until each has all blocks: BYTES in all, of which a rank sends BYTES * (ranks - 1) / ranks. ``sum`` is the hash of all
blocks in order of ranks: a wrong byte anywhere shows.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import select
import socket
import sys
import time

PORT = 29400
RETRY_S = 0.05


def main(size: int, pause_s: float, connections: int) -> None:
    """Prepare, wait for the begin, do steps until the run ends."""
    rank, world = int(os.environ["HPN_RANK"]), int(os.environ["HPN_WORLD_SIZE"])
    addresses = os.environ["HPN_ADDRESSES"].split(",")
    listener = socket.create_server((addresses[rank], PORT))
    following = [connected(addresses[(rank + 1) % world], addresses[rank], at) for at in range(connections)]
    before = accepted(listener, connections)
    for each in (*before, *following):
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


def connected(address: str, own: str, number: int) -> socket.socket:
    """Return a connection to the next rank, once it listens; the connection begins with its number."""
    while True:
        try:
            made = socket.create_connection((address, PORT), timeout=None, source_address=(own, 0))
        except ConnectionRefusedError:
            time.sleep(RETRY_S)
            continue
        made.sendall(bytes([number]))
        return made


def accepted(listener: socket.socket, connections: int) -> list[socket.socket]:
    """Accept all connections of the rank before, in the order of their numbers."""
    found = {}
    for _ in range(connections):
        made, _address = listener.accept()
        found[made.recv(1)[0]] = made
    return [found[at] for at in range(connections)]


def exchanged(following: list[socket.socket], before: list[socket.socket], block: bytes) -> bytes:
    """Send a block on and receive one of the same size, at the same time: sending first could deadlock."""
    ends = [len(block) * at // len(following) for at in range(len(following) + 1)]
    parts = list(itertools.pairwise(ends))
    left = {sock: memoryview(block)[begin:end] for sock, (begin, end) in zip(following, parts, strict=True)}
    came = {sock: bytearray() for sock in before}
    missing = {sock: end - begin for sock, (begin, end) in zip(before, parts, strict=True)}
    while any(left.values()) or any(missing.values()):
        receiving = [sock for sock, count in missing.items() if count]
        sending = [sock for sock, data in left.items() if data]
        readable, writable, _ = select.select(receiving, sending, [])
        for sock in readable:
            data = sock.recv(missing[sock])
            if not data:
                raise ConnectionError("the rank before has gone")
            came[sock] += data
            missing[sock] -= len(data)
        for sock in writable:
            left[sock] = left[sock][sock.send(left[sock]) :]
    return b"".join(came.values())


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, "1000000")), float(given.get(2, "0")) / 1e3, int(given.get(3, "1")))
