"""What we hand out for clusters stays good as far as this machine can tell: options exist, files keep to a schema."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hpn import cli

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "cluster"


KUBERNETES = "1.37"
"""Whose schemas judge; the newest that kubernetes-validate 1.37 has."""
CRD = "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def of_kubernetes(document: dict[str, Any]) -> list[str]:
    """What Kubernetes itself would refuse: also a field that it does not know, as kubectl apply has it do."""
    kubernetes = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: make extras")
    try:
        kubernetes.validate(document, KUBERNETES, strict=True)
    except kubernetes.ValidationError as error:
        return [error.message]
    return []


def of_dask(document: dict[str, Any]) -> list[str]:
    """The same for what the operator of dask-kubernetes adds, by the schema that its chart installs."""
    schema = _closed(_dask_schema()["properties"]["spec"])
    return [error.message for error in Draft202012Validator(schema).iter_errors(document["spec"])]


@cache
def _dask_schema() -> Any:
    try:
        files = metadata.files("dask-kubernetes") or []
    except metadata.PackageNotFoundError:
        pytest.skip("needs the schema in dask-kubernetes: make extras")
    (file,) = [each for each in files if str(each) == CRD]
    (version,) = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def _closed(schema: Any) -> Any:
    """No other fields than a custom resource's schema has are known."""
    match schema:
        case {"x-kubernetes-preserve-unknown-fields": True} | {"additionalProperties": _}:
            return schema
        case {"properties": dict() as known}:
            inside = {name: _closed(each) for name, each in known.items()}
            return {**schema, "properties": inside, "additionalProperties": False}
        case {"items": items}:
            return {**schema, "items": _closed(items)}
    return schema


JUDGES = {"DaskCluster": of_dask}


def _nodes(node: object) -> Iterator[dict[str, Any]]:
    match node:
        case dict():
            yield node
            for value in node.values():
                yield from _nodes(value)
        case list():
            for value in node:
                yield from _nodes(value)


FREE = ("labels", "matchLabels", "selector", "requests", "limits")
"""Sections with any names in them."""


@pytest.mark.parametrize("document", documents(), ids=lambda document: document["kind"])
def test_kubernetes_takes_each_document_and_would_see_a_slip_in_any_section(document: dict[str, Any]) -> None:
    mistakes = JUDGES.get(document["kind"], of_kubernetes)
    assert mistakes(document) == []
    free = [id(node[name]) for node in _nodes(document) for name in FREE if name in node]
    for section in _nodes(document["spec"]):
        if id(section) in free and "matchLabels" not in section:
            continue
        section["slip"] = 1
        assert mistakes(document), f"no slip is seen in {section}"
        del section["slip"]


@pytest.mark.parametrize("part", ["scheduler", "worker"])
def test_kubernetes_takes_the_pods_that_the_operator_makes_of_it(part: str) -> None:
    (cluster,) = [each for each in documents() if each["kind"] == "DaskCluster"]
    spec = cluster["spec"][part]["spec"]
    assert of_kubernetes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": spec}) == []


def _containers(node: object) -> list[dict[str, Any]]:
    match node:
        case {"containers": list() as found}:
            return found
        case dict():
            return [each for value in node.values() for each in _containers(value)]
    return []


def test_the_job_calls_a_command_that_there_is_on_the_cluster_s_own_scheduler() -> None:
    by_kind = {document["kind"]: document for document in documents()}
    (job,) = _containers(by_kind["Job"])
    hpn, *arguments = job["command"]
    assert hpn == "hpn"
    with cli.command_line.make_context("hpn", list(arguments)) as context:
        _, command, rest = cli.command_line.resolve_command(context, list(arguments))
        assert command is not None
        group = command.make_context("ci", rest, parent=context)
        _, ci_run, rest = command.resolve_command(group, list(rest))  # type: ignore[attr-defined]  # it is a group
        found = ci_run.make_context("run", rest, parent=group).params
    name, port = by_kind["DaskCluster"]["metadata"]["name"], by_kind["DaskCluster"]["spec"]["scheduler"]["service"]
    assert found["scheduler"] == f"tcp://{name}-scheduler:{port['ports'][0]['port']}"
    assert (ROOT / Path(found["suite"]).relative_to("/hpn")).is_file()


def test_the_policy_lets_in_the_cluster_and_the_job_and_nobody_else() -> None:
    by_kind = {document["kind"]: document for document in documents()}
    policy, cluster = by_kind["NetworkPolicy"]["spec"], by_kind["DaskCluster"]["metadata"]["name"]
    own = {"matchLabels": {"dask.org/cluster-name": cluster}}
    assert policy["podSelector"] == own
    ((rule,),) = [[rule["from"] for rule in policy["ingress"]]]
    of_job = by_kind["Job"]["spec"]["template"]["metadata"]["labels"]
    assert rule == [{"podSelector": own}, {"podSelector": {"matchLabels": of_job}}]


def _options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def test_dask_takes_the_options_that_the_examples_give_it() -> None:
    scheduler = pytest.importorskip("distributed.cli.dask_scheduler").main
    worker = pytest.importorskip("distributed.cli.dask_worker").main
    known = {
        name: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for name, command in (("scheduler", scheduler), ("worker", worker))
    }
    seen = set()
    for container in [each for document in documents() for each in _containers(document)]:
        if container.get("args", [""])[0] == "dask":
            seen.add(container["args"][1])
            assert _options(container["args"]) <= known[container["args"][1]]
    text = (EXAMPLES / "slurm-array.sh").read_text().replace("\\\n", " ")
    certificates = _options(re.findall(r"--tls-[a-z-]+", text))
    for name, line in re.findall(r'"\$bin/dask" (\w+) (.*)', text):
        seen.add(name)
        assert _options(line.split()) | certificates <= known[name]
    assert seen == {"scheduler", "worker"}


@pytest.mark.parametrize("name", ["slurm-array.sh", "one-node-slurm.sh", "certificates.sh"])
def test_a_script_is_a_script(name: str) -> None:
    assert (EXAMPLES / name).stat().st_mode & 0o111
    done = subprocess.run(["bash", "-n", str(EXAMPLES / name)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_slurm_array_without_slurm_says_how_it_is_called() -> None:
    done = subprocess.run(
        ["bash", str(EXAMPLES / "slurm-array.sh")], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert (done.returncode, "start this with sbatch --array" in done.stderr) == (1, True)


def test_dask_jobqueue_makes_the_job_script_of_a_worker() -> None:
    pytest.importorskip("dask_jobqueue")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "slurm.py"), "--partition", "gpu", "--walltime", "01:00:00", "--print"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {"#SBATCH -p gpu", "#SBATCH -t 01:00:00", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=4G"} <= set(lines)
    (worker,) = [line for line in lines if "dask_worker" in line]
    assert "--nthreads 1" in worker
    assert "tcp://127.0.0.1:" in worker, "the scheduler listens on loopback unless another interface is asked for"


def test_the_readme_names_every_file() -> None:
    text = (EXAMPLES / "README.md").read_text()
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in files if f"`{name}`" in text} == files
