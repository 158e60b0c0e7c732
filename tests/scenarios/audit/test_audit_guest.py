"""An audit finds a planted single point, goes on where it was stopped, repeats to the byte, and tells what is worse."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hpn.results.audit.model import load_answer
from tests.product.hpn import Hpn, skip_without_virtual_time

FABRIC = "{name: one-tor, architecture: single-tor, segments: 2, hosts: 2, rails: 1, aggs: 2}\n"
_PATIENCE_S = 500
AUDIT = ("audit", "fabric.yaml", "--kinds", "switch", "--out", "out")


def _git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)


def _finished(hpn: Hpn, *arguments: str) -> str:
    """Run an audit that finds something; its output. A dozen runs take more than the usual deadline when it is busy."""
    process = hpn.start(*arguments)
    try:
        out, err = process.communicate(timeout=_PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1, f"exit {process.returncode}\n{out}\n{err}"
    return out + err


@pytest.mark.guest
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_fabric_with_one_tor_a_rack_has_single_points(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    (tmp_path / "fabric.yaml").write_text(FABRIC)
    listed = hpn.run(*AUDIT, "--list")
    assert "tor-crash of p0.s0.t0.0" in listed
    assert not (tmp_path / "out").exists()
    said = _finished(hpn, *AUDIT, "--junit", "junit.xml", "--sarif", "audit.sarif")
    assert "4 failures tried: 2 pass, 2 fail" in said
    assert "single points: 2; " in said
    out = tmp_path / "out"
    answer = load_answer(out / "audit.json")
    cut = {row.targets[0]: row.cut_off for row in answer.rows}
    assert cut == {
        "p0.s0.t0.0": ("p0.s0.h0", "p0.s0.h1"),
        "p0.s1.t0.0": ("p0.s1.h0", "p0.s1.h1"),
        "p0.a0.0": (),
        "p0.a0.1": (),
    }
    assert all(row.crossed for row in answer.rows), "each was used as it failed"
    found = json.loads((tmp_path / "audit.sarif").read_text())["runs"][0]["results"]
    assert sum(each["ruleId"] == "single-point" for each in found) == 2
    whole, page = (out / "audit.json").read_bytes(), (out / "report.html").read_bytes()
    shutil.rmtree(out / "runs" / "switch-p0-a0-0")  # as if it had been stopped before
    again = _finished(hpn, *AUDIT)
    assert "has 3 of 4 failures already" in again
    assert again.count("starting ") == 1
    assert ((out / "audit.json").read_bytes(), (out / "report.html").read_bytes()) == (whole, page)


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(600)
def test_a_fabric_that_lost_its_second_tor_is_worse_than_its_base(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    file = tmp_path / "fabric.yaml"
    file.write_text(FABRIC.replace("single-tor", "hpn").replace("one-tor", "net"))
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "fabric.yaml")
    _git(tmp_path, "commit", "-q", "-m", "two ToRs")
    file.write_text(FABRIC.replace("one-tor", "net"))
    (tmp_path / "promises.yaml").write_text("promises: [{worst_outage: {at_most: 500 ms, edge: failure}}]\n")
    asked = ("audit", "fabric.yaml", "--kinds", "switch", "--promises", "promises.yaml", "--out", "out")
    said = _finished(hpn, *asked, "--base", "HEAD")
    assert "against the base: 2 worse, 0 new, 0 better, 4 gone, 2 same" in said, said
    assert "pass -> fail" in said
