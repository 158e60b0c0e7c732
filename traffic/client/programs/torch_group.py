"""A torch.distributed rank with gloo: how ranks meet, and the options of both torch programs.

Changes when the start of torch changes. Ranks meet through a file, as TCP's store would need a rank that all others
reach before the lab is used.
"""

from __future__ import annotations

import argparse
import datetime

import torch
import torch.distributed as dist

from hpn.traffic.client.programs.rank import Rank


def options(about: str) -> argparse.ArgumentParser:
    """Return the command line parser of both torch programs."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--pause-ns", type=int, default=0, help="between two steps")
    parser.add_argument("--timeout-ns", type=int, required=True, help="how long gloo waits for a rank")
    return parser


def join(timeout_ns: int) -> Rank:
    """Meet the other ranks. GLOO_SOCKET_IFNAME sets the interface; one thread, as ranks share a machine."""
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
