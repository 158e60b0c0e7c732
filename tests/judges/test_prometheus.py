"""Debian's Prometheus scrapes a lab and answers every query of the dashboard; promtool is content with the metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.dashboard import Query, queries
from tests.product.hpn import DEADLINE_S, Hpn, skip_without_sandbox
from tests.product.test_metrics import up
from tests.product.test_watch import SMALL

_WINDOW = "60s"


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[str]:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}; apt-get install prometheus")
    skip_without_sandbox()
    hpn = Hpn(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    yield up(hpn)
    hpn.run("down", "--all")


@pytest.fixture
def prometheus(metrics: str, tmp_path: Path) -> Iterator[str]:
    """Its address; it is ready, and scrapes the lab every 2 s."""
    address = metrics.removeprefix("http://").removesuffix("/metrics")
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 2s, scrape_timeout: 2s}\n"
        f"scrape_configs: [{{job_name: hpn, static_configs: [{{targets: ['{address}']}}]}}]\n"
    )
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb"]
    process = subprocess.Popen(
        [*command, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r'msg="Listening on" address=(127\.0\.0\.1:[1-9]\d*)', line):
            break
    else:
        pytest.fail(f"prometheus ended:\n{said}")
    _until_ready(found[1])
    yield found[1]
    process.terminate()
    process.communicate(timeout=DEADLINE_S)


def _until_ready(address: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/-/ready", timeout=30):
                return
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > end:
                raise
        time.sleep(0.2)


def test_promtool_finds_nothing_to_say_of_the_metrics(metrics: str) -> None:
    with urllib.request.urlopen(metrics, timeout=30) as answer:
        text = answer.read()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_every_query_of_the_dashboard_returns_a_series(prometheus: str) -> None:
    todo, end = queries(annotations=False), time.monotonic() + DEADLINE_S
    while todo:
        assert time.monotonic() < end, f"nothing for: {[query.where for query in todo]}"
        todo = [query for query in todo if not _asked(prometheus, query)]
        time.sleep(0.2)
    for query in queries():
        _asked(prometheus, query)


def _asked(prometheus: str, query: Query) -> list[object]:
    """What Prometheus finds; it refuses what is no PromQL."""
    asked = urllib.parse.urlencode({"query": query.filled_in("small", _WINDOW)})
    with urllib.request.urlopen(f"http://{prometheus}/api/v1/query?{asked}", timeout=30) as answer:
        told = json.load(answer)
    assert told["status"] == "success"
    found = told["data"]["result"]
    assert isinstance(found, list)
    return found
