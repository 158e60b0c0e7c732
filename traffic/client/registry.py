"""The clients that a drill may name. PURE: nothing of what they run is imported."""

from __future__ import annotations

from testbed.entries import Registry
from traffic.client.client import Client, lacks
from traffic.client.clients.command import Command

CLIENTS: Registry[type[Client]] = Registry("client", lambda client: client.KEY, (Command,), lacks)
"""By what ``workload.client.run`` says."""
