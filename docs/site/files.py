"""The reference of files that users write: drills, topologies, suites; and of the drills that come with hpn."""

from __future__ import annotations

from docs.site.markdown import code, page, plain, prose, table
from docs.site.models import keys, section
from hpn.scenarios.batch.suite.suite import SuiteFile
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.schema import DrillFile, RestoredFaultEntry
from hpn.scenarios.drill.sections import SECTIONS
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.client.client import Client
from hpn.traffic.client.registry import CLIENTS


def drill_file() -> str:
    """The page of a drill file's keys."""
    return page(
        "# The drill file",
        "Every key, what it takes and what holds without it; [Drills](../docs/drills.md) explains them. "
        "[Faults](faults.md) and [expectations](metrics.md) have pages of their own.",
        keys(DrillFile),
        *(section(model, path) for path, model in SECTIONS.items()),
        section(RestoredFaultEntry, "timeline.faults"),
        "## workload.client",
        "Keys of every client; each has more of its own.",
        keys(Client),
        *(_client(client) for client in CLIENTS.values()),
    )


def topology_file() -> str:
    """The page of a topology file's keys, architectures and presets."""
    presets = ((code(name), plain(preset.summary)) for name, preset in PRESETS.items())
    architectures = ((code(each.name), plain(each.summary)) for each in ARCHITECTURES.values())
    return page(
        "# The topology file",
        "A topology names a `preset` and what differs, or all; see [Architectures](../docs/architectures.md).",
        "## Presets",
        table(("preset", ""), presets),
        "## Architectures",
        table(("architecture", ""), architectures),
        section(FabricSpec, "topology"),
    )


def suite_file() -> str:
    """The page of a suite file's keys."""
    words = "`hpn ci run` takes one; [Drills in CI](../docs/ci.md) has an example."
    return page("# The suite file", words, section(SuiteFile, "suite"))


def library() -> str:
    """The page of the drills that come with hpn."""
    return page(
        "# Drills that come with hpn",
        "`hpn drill show NAME` says what happens in one, `hpn drill run NAME` runs it.",
        *(page(f"## {drill.name}", plain(drill.summary), prose(drill.description)) for drill in catalogue.ls()),
    )


def _client(client: type[Client]) -> str:
    own = keys(client, left_out=Client.model_fields)
    return page(f"### {client.KEY}", plain(client.SUMMARY), own or "No keys of its own.")
