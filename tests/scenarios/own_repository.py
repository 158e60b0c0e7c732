"""The CI files of examples/own-repository, taken apart: what each installs and what it runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own-repository"
GITHUB, GITLAB = ".github/workflows/hpn.yml", ".gitlab-ci.yml"
_INSTALLS = ("apt-get", ".venv")


def loaded(name: str) -> Mapping[str, object]:
    """The YAML of a CI file. GitHub's 'on' is a word there, and true in YAML 1.1."""
    text = (EXAMPLE / name).read_text()
    found = yaml.load(text, Loader=yaml.BaseLoader)  # all scalars are text
    assert isinstance(found, dict)
    return found


def scripts(name: str) -> list[str]:
    """All that a CI file has bash run, in order."""
    if name == GITHUB:
        return [step["run"] for step in job(name)["steps"] if "run" in step]
    return ["\n".join(job(name)["before_script"]), "\n".join(job(name)["script"])]


def baseline_script() -> str:
    """The manual job of GitLab."""
    found = loaded(GITLAB)["baseline"]
    assert isinstance(found, dict)
    assert (found["extends"], found["when"]) == ("failover", "manual")
    return "\n".join(found["script"])


def job(name: str) -> dict[str, list]:  # type: ignore[type-arg]  # plain YAML
    """The job that gates."""
    found = loaded(name)
    jobs = found["jobs"] if name == GITHUB else {key: each for key, each in found.items() if key == "failover"}
    assert isinstance(jobs, dict)
    (only,) = jobs.values()
    assert isinstance(only, dict)
    return only


def runs(name: str) -> list[str]:
    """The scripts that install nothing: where they are run, hpn is already."""
    return [script for script in scripts(name) if "apt-get" not in script and "pip install" not in script]


def packages(name: str) -> set[str]:
    """The Debian packages that a CI file installs."""
    return {word for words in _commands(name) if words[:2] == ["apt-get", "install"] for word in _arguments(words[2:])}


def _commands(name: str) -> Iterator[list[str]]:
    for script in scripts(name):
        yield from (shlex.split(line, comments=True) for line in script.replace("\\\n", " ").splitlines())


def _arguments(words: list[str]) -> Iterator[str]:
    return (word for word in words if not word.startswith("-"))
