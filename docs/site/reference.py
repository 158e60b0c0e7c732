"""The pages of the reference that are made from code, by the name of their file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.site.commands import commands
from docs.site.environment import environment
from docs.site.faults import faults
from docs.site.files import drill_file, library, suite_file, topology_file
from docs.site.metrics import metrics
from docs.site.records import run_folder
from docs.site.tables import lab_metrics, tables

REFERENCE: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "drill-file": drill_file,
    "faults": faults,
    "metrics": metrics,
    "topology-file": topology_file,
    "suite-file": suite_file,
    "library": library,
    "run-folder": run_folder,
    "tables": tables,
    "lab-metrics": lab_metrics,
    "environment": environment,
}
"""A page is Markdown, one heading at its top."""
