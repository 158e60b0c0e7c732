"""What we hand out for clusters stays good as far as this machine can tell: options exist, files keep to a schema."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import cli

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "cluster"


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional},
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NAMED = _object({"name": TEXT}, labels={"type": "object", "additionalProperties": TEXT})
PORT = _object({"name": TEXT}, protocol={"const": "TCP"}, containerPort={"type": "integer"}, port={"type": "integer"})
PORT["properties"]["targetPort"] = TEXT
CONTAINER = _object(
    {"name": TEXT, "image": TEXT},
    args=TEXTS,
    command=TEXTS,
    ports={"type": "array", "items": PORT},
    readinessProbe={"type": "object"},
    securityContext=_object({"privileged": {"const": True}}),
    resources=_object({}, requests={"type": "object"}, limits={"type": "object"}),
    volumeMounts={"type": "array", "items": _object({"name": TEXT, "mountPath": TEXT})},
)
POD = _object(
    {"containers": {"type": "array", "items": CONTAINER, "minItems": 1}},
    restartPolicy={"const": "Never"},
    volumes={"type": "array", "items": {"type": "object", "required": ["name"]}},
)
SERVICE = _object({"type": {"const": "ClusterIP"}, "selector": {"type": "object"}, "ports": {"items": PORT}})
SPECS = {
    ("kubernetes.dask.org/v1", "DaskCluster"): _object(
        {
            "scheduler": _object({"spec": POD, "service": SERVICE}),
            "worker": _object({"replicas": {"type": "integer", "minimum": 1}, "spec": POD}),
        }
    ),
    ("batch/v1", "Job"): _object({"backoffLimit": {"const": 0}, "template": _object({"metadata": {}, "spec": POD})}),
    ("v1", "PersistentVolumeClaim"): _object({"accessModes": TEXTS, "resources": _object({"requests": {}})}),
    ("networking.k8s.io/v1", "NetworkPolicy"): _object(
        {"podSelector": {"type": "object"}, "policyTypes": {"const": ["Ingress"]}, "ingress": {"type": "array"}}
    ),
}
"""What these files say of what Kubernetes and the operator of dask-kubernetes take: a slip of the pen is an error."""


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def mistakes(document: dict[str, Any]) -> list[str]:
    spec = SPECS[document["apiVersion"], document["kind"]]
    schema = _object({"apiVersion": TEXT, "kind": TEXT, "metadata": NAMED, "spec": spec})
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("document", documents(), ids=lambda document: document["kind"])
def test_a_document_for_kubernetes_has_no_slip(document: dict[str, Any]) -> None:
    assert mistakes(document) == []
    assert mistakes({**document, "spec": {**document["spec"], "slip": 1}})


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


@pytest.mark.parametrize("name", ["slurm-array.sh", "certificates.sh"])
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
