"""The clients that a drill may name. PURE: nothing of what they run is imported."""

from __future__ import annotations

from testbed.entries import Registry
from traffic.client.client import Client, lacks
from traffic.client.clients.command import Command
from traffic.client.clients.iperf3 import Iperf3
from traffic.client.clients.mpi import Mpi
from traffic.client.clients.perftest import Perftest
from traffic.client.clients.rping import Rping
from traffic.client.clients.rxe_pingpong import RxePingpong
from traffic.client.clients.torch import Torch
from traffic.client.clients.verbs import Verbs

CLIENTS: Registry[type[Client]] = Registry(
    "client", lambda client: client.KEY, (Command, Iperf3, Mpi, Perftest, Rping, RxePingpong, Torch, Verbs), lacks
)
"""By what ``workload.client.run`` says."""
