"""Judge of ``hpn ci bmwg --json``: each formula again from the run folders, by code that shares none with hpn.

    python -m tests.product.bmwg_judge FOLDER REPORT.json

Only ``json`` and ``numpy`` read the folders, as docs/run-folder.md describes them. Prints what it compared; exits with
1 where a figure differs by more than a billionth.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_FACTOR = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
_READING = np.dtype([(name, "<u8") for name in ("at", "backlog", "drops", "sent", "packets", "rate", "marked")])


class Folder:
    """One run folder, raw."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.drill, self.metrics, self.fabric = (self.json(name) for name in ("drill", "metrics", "fabric"))

    def json(self, name: str) -> Any:
        """Return the content of a JSON file."""
        return json.loads((self.path / f"{name}.json").read_text())

    def lines(self, name: str) -> list[Any]:
        """Return the documents of a file of JSON lines."""
        return [json.loads(line) for line in (self.path / f"{name}.jsonl").read_text().splitlines()]

    @property
    def seconds(self) -> float:
        """Length of the traffic."""
        return float(self.drill["end_ns"]) / 1e9

    @property
    def failures(self) -> list[int]:
        """Times of the edges that are failures."""
        return [each["edge"]["inject_before_ns"] for each in self.metrics["edges"] if each["edge"]["kind"] == "failure"]

    def steady(self) -> dict[int, float]:
        """Return the seconds of each iteration after the first that ended before any fault."""
        first = min((each["edge"]["inject_before_ns"] for each in self.metrics["edges"]), default=math.inf)
        return {
            each["number"]: (each["end_ns"] - each["begin_ns"]) / 1e9
            for each in self.lines("iterations")[1:]
            if each["end_ns"] <= first
        }

    def series(self) -> Mapping[str, Any]:
        """Return the readings of each sampled port."""
        about = self.json("series")["ports"]
        with np.load(self.path / "series.npz") as arrays:
            rows = np.ascontiguousarray(arrays["ports"].T).reshape(-1).view(_READING)
        ends = np.cumsum(about["readings"])[:-1]
        return dict(zip((each["port"] for each in about["watched"]), np.split(rows, ends), strict=True))


def _rank(values: Any, percent: int) -> float:
    ordered = sorted(float(value) for value in values)
    return next(value for at, value in enumerate(ordered, 1) if 100 * at >= percent * len(ordered))


def _work(folder: Folder) -> tuple[str, float, int, float, float]:
    """Return kind, S, n, C and B_acc of a job's collective."""
    asked = folder.drill["asks"]["job"]["work"]["CollectiveWork"]
    ranks = folder.metrics["job"]["ranks"] // asked.get("ways", 1)
    nic = folder.fabric["nics"][0]["links"]
    rate = {link["name"]: link["rate_bps"] for link in folder.fabric["links"]}
    per_acc = sum(rate[link if isinstance(link, str) else link["name"]] for link in nic)
    return asked["kind"], asked["size_bytes"], ranks, asked.get("pause_ns", 0) / 1e9, per_acc


def _factor(kind: str, ranks: int) -> float:
    return _FACTOR[kind] * (ranks - 1) / ranks


def _bandwidths(folder: Folder) -> list[float]:
    kind, size, ranks, _, _ = _work(folder)
    longest: dict[int, int] = defaultdict(int)
    for span in folder.lines("spans"):
        if span["kind"] == kind and span["iteration"] in folder.steady():
            longest[span["iteration"]] = max(longest[span["iteration"]], span["end_ns"] - span["begin_ns"])
    return [8 * size * _factor(kind, ranks) / (ns / 1e9) for ns in longest.values()]


def _collectives(folder: Folder) -> Iterator[Mapping[str, float]]:
    kind, size, ranks, _, rate = _work(folder)
    found = _bandwidths(folder)
    average = sum(found) / len(found)
    times = folder.steady().values()
    yield {
        "N": ranks,
        "algo_factor": _factor(kind, ranks),
        "S_fabric (bytes)": size * _factor(kind, ranks),
        "iterations": len(found),
        "BusBW avg (bit/s)": average,
        **{f"P{percent}": _rank(found, percent) for percent in (50, 95, 99)},
        "BusBW / line rate": average / rate,
        "JCT mean (s)": sum(times) / len(times),
        "ECN marked (%)": _marked(folder),
    }


def _marked(folder: Folder) -> float:
    ports = [each for each in folder.json("ports")["ports"] if each["marked"] is not None]
    return float(100 * sum(each["marked"] for each in ports) / sum(each["sent_packets"] for each in ports))


def _jct(folder: Folder) -> Iterator[Mapping[str, float]]:
    kind, size, ranks, compute, rate = _work(folder)
    times = folder.steady().values()
    roofline = len(times) * (compute + 8 * size * _factor(kind, ranks) / rate)
    yield {"JCT (s)": sum(times), "Roofline_seq (s)": roofline, "JCT Ratio": sum(times) / roofline}


def _scale(folder: Folder) -> Iterator[Mapping[str, float]]:
    found = _bandwidths(folder)
    yield {"JCT Ratio": next(_jct(folder))["JCT Ratio"], "BusBW avg (bit/s)": sum(found) / len(found)}


def _balance(folder: Folder) -> Iterator[Mapping[str, float]]:
    loads: dict[str, list[int]] = defaultdict(list)
    for port in folder.json("ports")["ports"]:
        if port["tier"] == "tor up":
            loads[port["port"].split(":")[0]].append(port["sent_bytes"])
    busiest = max(sum(each) for each in loads.values())
    found = np.array([load for each in loads.values() if sum(each) >= busiest / 100 for load in each], dtype=float)
    yield {
        "uplinks": len(found),
        "MMR (bytes)": found.max() / found.mean(),
        "JFI (bytes)": found.sum() ** 2 / (len(found) * (found**2).sum()),
        "retransmitted (packets/s)": folder.metrics["job"]["packets_again"] / folder.seconds,
    }


def _pauses(folder: Folder) -> Iterator[Mapping[str, float]]:
    role = {node["name"]: node["role"] for node in folder.fabric["nodes"]}
    rows = folder.json("buffers")
    for tier in dict.fromkeys(role[row["node"]] for row in rows):
        of = [row for row in rows if role[row["node"]] == tier]
        yield {
            "PAUSE frames (1/s)": sum(row["xoff_sent"] for row in of) / folder.seconds,
            "longest pause of a port (us)": max(row["paused_ns"] for row in of) / 1e3,
            "received (bit/s)": 8 * folder.metrics["job"]["messages"]["size_bytes"] / folder.seconds,
        }


def _storms(folder: Folder) -> Iterator[Mapping[str, float]]:
    rows = folder.json("buffers")
    yield {"watchdog fired": sum(row["storms"] for row in rows), "traffic (s)": folder.seconds}


def _marking(folder: Folder) -> Iterator[Mapping[str, float]]:
    spec = folder.fabric["spec"]
    switch = spec.get("switch")
    ecn = next(each["ecn"] for each in switch["classes"] if switch["rdma_dscp"] in each["dscp"]) if switch else None
    kmin, kmax = (ecn["kmin"], ecn["kmax"]) if ecn else (spec["ecn"]["kmin_bytes"], spec["ecn"]["kmax_bytes"])
    for rows in folder.series().values():
        depth = rows["backlog"].astype(float)
        marked, packets = (np.diff(rows[name].astype(float)) for name in ("marked", "packets"))
        below = np.maximum(depth[:-1], depth[1:]) < kmin
        above = (np.minimum(depth[:-1], depth[1:]) > kmax) & ~below
        between = ~below & ~above
        if marked[between].sum() or marked[above].sum():
            parts = {"marked below Kmin (%)": below, "between (%)": between, "above Kmax (%)": above}
            yield {name: 100 * marked[at].sum() / packets[at].sum() for name, at in parts.items() if packets[at].sum()}


def _failure(folder: Folder) -> Iterator[Mapping[str, float]]:
    times = list(folder.steady().values())
    struck = [
        (each["end_ns"] - each["begin_ns"]) / 1e9
        for each in folder.lines("iterations")
        if any(each["begin_ns"] <= ns < each["end_ns"] for ns in folder.failures)
    ]
    yield {
        "steady JCT (s)": sum(times) / len(times),
        "P99 (s)": _rank(times, 99),
        "failure JCT (s)": max(struck),
        "JCT overhead (s)": max(struck) - sum(times) / len(times),
    }


def _losses(folder: Folder) -> Iterator[Mapping[str, float]]:
    lost: dict[str, int] = defaultdict(int)
    for flow in folder.lines("flows"):
        lost[flow["edge"]] += flow["lost"]
    for each in folder.metrics["edges"]:
        edge = each["edge"]
        if edge["kind"] == "failure":
            names = "+".join([edge["fault"], *edge["together_with"]])
            yield {"packets lost": lost[f"{names} failure {edge['index']}"]}


def _soak(folder: Folder) -> Iterator[Mapping[str, float]]:
    kind, size, ranks, compute, rate = _work(folder)
    roofline = compute + 8 * size * _factor(kind, ranks) / rate
    ratios = np.array(list(folder.steady().values())) / roofline
    yield {
        "JCT Ratio mean": ratios.mean(),
        "standard deviation": ratios.std(),
        "CV": ratios.std() / ratios.mean(),
        "last third": ratios[-max(len(ratios) // 3, 1) :].mean(),
    }


def _queues(folder: Folder) -> Iterator[Mapping[str, float]]:
    depths = {port: rows["backlog"] for port, rows in folder.series().items() if len(rows)}
    yield {
        "P95 (bytes)": max(_rank(rows, 95) for rows in depths.values()),
        "max of any port (bytes)": max(int(rows.max()) for rows in depths.values()),
    }


JUDGES = {
    "4.2": _queues,
    "7.1": _marking,
    "7.2": _pauses,
    "7.4": _storms,
    "8": _balance,
    "9.1": _collectives,
    "9.2": _collectives,
    "9.3": _collectives,
    "10.1": _jct,
    "11.1": _scale,
    "11.2": _failure,
    "11.2 streams": _losses,
    "12.1": _soak,
}


def differences(root: Path, report: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return how many figures were compared, and a line for each that differs."""
    compared, wrong = 0, []
    for test in report["tests"]:
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in test["rows"]:
            rows[row[0]].append(dict(zip(test["columns"], row, strict=True)))
        for name, told in rows.items():
            ours = list(JUDGES[test["section"]](Folder(root / name)))
            if len(ours) != len(told):
                wrong.append(f"{test['section']} {name}: {len(told)} rows, not {len(ours)}")
            for mine, theirs in zip(ours, told, strict=False):
                for column, value in mine.items():
                    compared += 1
                    if not math.isclose(float(theirs[column]), value, rel_tol=1e-9, abs_tol=1e-12):
                        wrong.append(f"{test['section']} {name}: {column} is {value!r}, not {theirs[column]!r}")
    return compared, wrong


def main() -> int:
    """Compare a report with its runs."""
    root, report = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    compared, wrong = differences(root, report)
    print(*wrong, f"{compared} figures compared, {len(wrong)} differ", sep="\n")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
