"""``hpn up --metrics``: scraped, broken, scraped again; ended with the lab."""

from __future__ import annotations

import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest

from hpn.testbed.lab.service.metrics.families import FAMILIES, Kind
from tests.product.hpn import Hpn, pids_of, skip_without_sandbox, until
from tests.product.test_watch import LINK, SMALL

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    skip_without_sandbox()
    made = Hpn(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    yield made
    made.run("down", "--all")


def up(hpn: Hpn) -> str:
    """Start a small lab with metrics; where they are."""
    (line,) = (line for line in hpn.run("up", "small.yaml", "--metrics", "0").splitlines() if "metrics: " in line)
    return line.removeprefix("metrics: ")


def scraped(url: str) -> Series:
    """Every series, as prometheus-client's own parser reads them."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        text = answer.read().decode()
    families = list(parser.text_string_to_metric_families(text))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _zero(series: Series, name: str) -> set[str]:
    found = [dict(labels) for (of, labels), value in series.items() if of == name and not value]
    return {f"{labels['node']}:{labels['port']}" for labels in found}


def _sent(series: Series) -> float:
    return sum(value for (name, _), value in series.items() if name == "hpn_port_transmit_bytes_total")


def test_a_lab_is_scraped_while_it_breaks_and_its_counters_never_fall(hpn: Hpn) -> None:
    url = up(hpn)
    assert url.startswith("http://127.0.0.1:")
    (lab,) = hpn.labs()
    assert lab["metrics"] == url
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)):  # says nothing, and holds nobody up
        before = scraped(url)
    others = {name for name in FAMILIES if name.startswith(("hpn_class_", "hpn_pfc_"))}
    assert {name for name, _ in before} == set(FAMILIES) - others - {
        "hpn_bfd_session_up",
        "hpn_port_transmit_marked_packets_total",
    }
    assert _zero(before, "hpn_port_carrier") == set()
    hpn.run("break", LINK)
    until(lambda: _zero(scraped(url), "hpn_lacp_port_distributing") == {"p0.s0.h0:r0p0", "p0.s0.t0.0:h0r0"}, "LACP")
    after = scraped(url)
    assert _zero(after, "hpn_port_carrier") == {"p0.s0.h0:r0p0", "p0.s0.t0.0:h0r0"}
    assert after["hpn_lab_broken_parts", frozenset({("lab", "small")})] == 1
    fault = {"lab": "small", "kind": "fault", "event": "injected", "plane": "0"}
    assert after["hpn_events_total", frozenset(fault.items())] == 1
    hpn.run("mend", LINK)
    until(lambda: _zero(scraped(url), "hpn_lacp_port_distributing") == set(), "LACP again")
    mended = scraped(url)
    counters = {family.name for family in FAMILIES.values() if family.kind is Kind.COUNTER}
    fallen = [key for key, value in before.items() if key[0] in counters and mended[key] < value]
    assert fallen == []
    assert _sent(mended) > _sent(before)
    hpn.run("down")
    with pytest.raises(URLError, match="refused"):
        scraped(url)


def test_a_port_in_use_is_one_line_and_starts_nothing_and_a_topology_behind_it_is_told(hpn: Hpn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        said = hpn.run("up", "small.yaml", "--metrics", port, code=2)
    assert said.count("\n") == 1
    assert f"127.0.0.1:{port} (Address already in use); choose another" in said
    assert hpn.labs() == []
    assert "'small.yaml' is no TCP port; a topology stands first: hpn up small.yaml --metrics" in hpn.run(
        *("up", "--metrics", "small.yaml"), code=2
    )


def test_an_endpoint_that_dies_is_told_and_the_lab_goes_on(hpn: Hpn) -> None:
    url = up(hpn)
    scraped(url)
    (lab,) = hpn.labs()
    first = int(str(lab["first_pid"]))
    (served_by,) = (pid for pid in pids_of(hpn.state, "up") if _parent(pid) == first)
    os.kill(served_by, signal.SIGKILL)
    until(lambda: "the metrics endpoint is gone" in hpn.run("ls"), "a line in hpn ls")
    with pytest.raises(URLError, match="refused"):
        scraped(url)
    assert "1 received" in hpn.run("exec", "p0.s0.h0", "--", "ping", "-c", "1", "-W", "5", "10.0.1.1")


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
