"""The clients that a drill may name. PURE: no program of theirs is imported."""

from __future__ import annotations

from hpn.testbed.entries import Registry
from hpn.traffic.client.client import Client, lacks
from hpn.traffic.client.clients.command import Command
from hpn.traffic.client.clients.iperf3 import Iperf3
from hpn.traffic.client.clients.mpi import Mpi
from hpn.traffic.client.clients.perftest import Perftest
from hpn.traffic.client.clients.rping import Rping
from hpn.traffic.client.clients.rxe_pingpong import RxePingpong
from hpn.traffic.client.clients.torch import Torch
from hpn.traffic.client.clients.verbs import Verbs

CLIENTS: Registry[type[Client]] = Registry(
    "client", lambda client: client.KEY, (Command, Iperf3, Mpi, Perftest, Rping, RxePingpong, Torch, Verbs), lacks
)
"""Clients, by the value of ``workload.client.run``."""
