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
import yaml

from hpn.testbed.lab.service.metrics.families import FAMILIES
from tests.lab.dashboard import Query, queries
from tests.product.hpn import DEADLINE_S, ROOT, Hpn, skip_without_sandbox
from tests.product.test_metrics import up
from tests.product.test_watch import SMALL

_WINDOW = "60s"


_ALERTS = ROOT / "examples/grafana/alerts.yml"
_TOR = "p0.s0.t0.0"


def _skip_without_prometheus() -> None:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}; apt-get install prometheus")


@pytest.fixture
def hpn(tmp_path: Path) -> Iterator[Hpn]:
    _skip_without_prometheus()
    skip_without_sandbox()
    found = Hpn(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    yield found
    found.run("down", "--all")


@pytest.fixture
def metrics(hpn: Hpn) -> str:
    return up(hpn)


@pytest.fixture
def prometheus(metrics: str, tmp_path: Path) -> Iterator[str]:
    """Its address; it is ready, and scrapes the lab every 2 s, with our alerts."""
    address = metrics.removeprefix("http://").removesuffix("/metrics")
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}\n"
        f"rule_files: ['{_ALERTS}']\n"
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


def test_promtool_finds_the_alerts_right_and_their_cases_met() -> None:
    _skip_without_prometheus()
    for asked in (("check", "rules", "--lint-fatal", str(_ALERTS)), ("test", "rules", "alerts.test.yml")):
        done = subprocess.run(["promtool", *asked], cwd=_ALERTS.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    rules = yaml.safe_load(_ALERTS.read_text())["groups"][0]["rules"]
    cases = yaml.safe_load((_ALERTS.parent / "alerts.test.yml").read_text())["tests"]
    met = {each["alertname"] for case in cases for each in case["alert_rule_test"] if each["exp_alerts"]}
    assert met == {rule["alert"] for rule in rules}
    assert set(re.findall(r"\bhpn_\w+", _ALERTS.read_text())) <= set(FAMILIES)


def test_a_dead_tor_is_one_alert_of_a_switch_and_none_of_its_ports(hpn: Hpn, prometheus: str) -> None:
    _until_scraped(prometheus)
    assert _alerts(prometheus) == set()
    hpn.run("break", _TOR)
    end = time.monotonic() + DEADLINE_S
    while ("SwitchDead", _TOR) not in (found := _alerts(prometheus)):
        assert time.monotonic() < end, f"never told: {found}"
        time.sleep(0.2)
    assert ("PortWithoutCarrier", _TOR) not in found
    assert {name for name, _ in found} <= {"SwitchDead", "PortWithoutCarrier"}


def _until_scraped(prometheus: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not _asked(prometheus, next(iter(queries(annotations=False)))):
        assert time.monotonic() < end
        time.sleep(0.2)


def _alerts(prometheus: str) -> set[tuple[str, str]]:
    """The alerts that fire, with their nodes."""
    with urllib.request.urlopen(f"http://{prometheus}/api/v1/alerts", timeout=30) as answer:
        told = json.load(answer)["data"]["alerts"]
    return {(each["labels"]["alertname"], each["labels"].get("node", "")) for each in told if each["state"] == "firing"}


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
