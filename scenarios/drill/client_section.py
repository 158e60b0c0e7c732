"""Reader of a drill's ``workload.client``: the client that runs on the hosts, and the places of its ranks."""

from __future__ import annotations

import sys
from pathlib import Path

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import Mistakes, did_you_mean
from hpn.testbed.files.document import shorten
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.ranks import ranks_of
from hpn.traffic.client.registry import CLIENTS

WHERE = ("workload", "client")


def has_client(mistakes: Mistakes) -> bool:
    """Return True if the document names a client, valid or not."""
    data = mistakes.document.data.get("workload")
    return isinstance(data, dict) and "client" in data


def is_alone(mistakes: Mistakes) -> bool:
    """Return True if the workload has nothing but the client: then no streams run, and a job may run alongside it."""
    data = mistakes.document.data.get("workload")
    return isinstance(data, dict) and set(data) == {"client"}


def client_of(mistakes: Mistakes, fabric: Fabric | None, base: Path) -> Client | None:
    """Return the client of a document in folder ``base`` for a fabric; None if there is none or it is invalid."""
    data = mistakes.document.data.get("workload")
    given = data.get("client") if isinstance(data, dict) else None
    if given is None and has_client(mistakes):
        mistakes.add(WHERE, f"workload.client is empty; write run: {' or '.join(CLIENTS)} below it")
    if not isinstance(given, dict):
        return None
    key = given.get("run")
    if not isinstance(key, str) or key not in CLIENTS:
        problem = "does not say what it is" if "run" not in given else f"runs {shorten(key)}"
        hint = did_you_mean(str(key), CLIENTS, "write one of")
        mistakes.add((*WHERE, "run") if "run" in given else WHERE, f"workload.client {problem}; {hint}")
        return None
    client = mistakes.check(CLIENTS[key], given, WHERE)
    if client is None or fabric is None:
        return client
    try:
        client.plan(ranks_of(fabric, client.ranks, client.per, client.rail), Site(base.absolute(), sys.executable))
    except InputError as error:
        about = next((key for keys in error.about for key in keys if key in given), "")
        mistakes.add_all((*WHERE, about) if about else WHERE, error, "workload.client: ")
        return None
    return client
