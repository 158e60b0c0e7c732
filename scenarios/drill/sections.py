"""Sections of a drill file and the models that read them: for the schema, the reference and their tests. Pure.

Changes when a drill file gets a section with its own model. A fault, an expectation or a client, which a key selects,
is no section: each kind has its registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from hpn.scenarios.drill.failover_section import PortRecoverySection
from hpn.scenarios.drill.job_keys import (
    CheckpointsSection,
    CollectiveSection,
    JobSection,
    MessagesSection,
    RestartSection,
    TrainingSection,
)
from hpn.scenarios.drill.locate_section import LocateSection
from hpn.scenarios.drill.path_sections import RehashSection, SpraySection
from hpn.scenarios.drill.schema import CaptureSection, SampleSection, TimelineSection, WorkloadSection
from hpn.scenarios.drill.transport_section import TransportSection

SECTIONS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "workload": WorkloadSection,
        "job": JobSection,
        "job.collective": CollectiveSection,
        "job.training": TrainingSection,
        "job.messages": MessagesSection,
        "job.checkpoints": CheckpointsSection,
        "job.port_recovery": PortRecoverySection,
        "job.restart": RestartSection,
        "job.rehash": RehashSection,
        "job.spray": SpraySection,
        "job.transport": TransportSection,
        "sample": SampleSection,
        "capture": CaptureSection,
        "locate": LocateSection,
        "timeline": TimelineSection,
    }
)
"""Models by path of keys from the top of the file, in the order of the manual."""
