"""A rank of torch.distributed with gloo: how ranks meet, and what both torch programs are told.

Changes when torch wants to be started in another way. They meet through a file, as TCP's store would need a rank that
all others reach before the lab is used.
"""

from __future__ import annotations

import argparse
import datetime

import torch
import torch.distributed as dist

from hpn.traffic.client.programs.rank import Rank


def options(about: str) -> argparse.ArgumentParser:
    """The command line that both torch programs have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--pause-ns", type=int, default=0, help="between two steps")
    parser.add_argument("--timeout-ns", type=int, required=True, help="how long gloo waits for a rank")
    return parser


def join(timeout_ns: int) -> Rank:
    """Meet the other ranks. GLOO_SOCKET_IFNAME says through which interface; one thread, as ranks share a machine."""
    torch.set_num_threads(1)
    me = Rank.from_environment()
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(me.rendezvous / "torch"), me.world),
        rank=me.rank,
        world_size=me.world,
        timeout=datetime.timedelta(microseconds=timeout_ns // 1000),
    )
    return me
