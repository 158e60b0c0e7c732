"""The files that go with a drill: those that it names, below its folder, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.batch.pool import sent_files
from hpn.scenarios.batch.pool.sent_files import files_of, plugins_here
from hpn.testbed.errors import InputError
from tests.fabric import own_hosts


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "drills"
    (folder / "net").mkdir(parents=True)
    (folder / "net" / "rack.yaml").write_text("preset: tiny\n")
    (folder / "trace.0.json").write_text("{}")
    (folder / "trace.1.json").write_text("{}")
    (folder / "step.py").write_text("print()")
    (folder / "unnamed.txt").write_text("not this")
    (tmp_path / "secret").write_text("nor this")
    return folder


def drill(base: Path, text: str) -> Path:
    (base / "d.yaml").write_text(text)
    return base / "d.yaml"


def test_a_topology_a_trace_of_all_ranks_and_a_program_go_along(base: Path) -> None:
    text = "topology: net/rack.yaml\njob: {trace: trace.0.json}\nclient: {run: [python, step.py --fast, missing.py]}\n"
    found = files_of(drill(base, text))
    assert sorted(found) == ["d.yaml", "net/rack.yaml", "step.py", "trace.0.json", "trace.1.json"]
    assert found["net/rack.yaml"] == b"preset: tiny\n"


def test_what_an_attached_topology_names_goes_along_once(base: Path) -> None:
    (base / "net" / "rack.yaml").write_text("preset: d.yaml\n")
    assert sorted(files_of(drill(base, "topology: net/rack.yaml\n"))) == ["d.yaml", "net/rack.yaml"]


def test_a_program_of_the_machine_is_left_to_the_machine(base: Path) -> None:
    assert sorted(files_of(drill(base, "client: {run: /bin/sh}\n"))) == ["d.yaml"]


def test_a_file_outside_of_the_folder_is_refused(base: Path) -> None:
    with pytest.raises(InputError, match=r"names \.\./secret, which no worker elsewhere has"):
        files_of(drill(base, "topology: ../secret\n"))
    (base / "link").symlink_to("../secret")
    with pytest.raises(InputError, match="names link"):
        files_of(drill(base, "topology: link\n"))


def test_too_much_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_files, "MOST_BYTES", 20)
    with pytest.raises(InputError, match="run it without --scheduler"):
        files_of(drill(base, "topology: net/rack.yaml\n"))


def test_names_that_no_file_has_are_words(base: Path) -> None:
    assert sorted(files_of(drill(base, 'summary: "a\\0b ' + "x" * 5000 + '"\n'))) == ["d.yaml"]


def test_plug_ins_go_with_all_that_lies_beside_them(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plugins_here() == ()
    for name in ("__pycache__/dim.pyc", ".git/config", ".hidden", "data/loss.csv"):
        (base / name).parent.mkdir(exist_ok=True)
        (base / name).write_text(name)
    (base / "up").symlink_to("..")
    monkeypatch.setenv("HPN_PLUGINS", f"{base}:{base / 'net'}")
    first, second = plugins_here()
    assert sorted(first) == ["data/loss.csv", "net/rack.yaml", "step.py", "trace.0.json", "trace.1.json", "unnamed.txt"]
    assert (first["data/loss.csv"], second) == (b"data/loss.csv", {"rack.yaml": b"preset: tiny\n"})


@pytest.mark.parametrize(("name", "most"), [("MOST_FILES", 2), ("MOST_OF_PLUGINS", 20)])
def test_plug_ins_that_are_too_much_are_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(sent_files, name, most)
    monkeypatch.setenv("HPN_PLUGINS", str(base))
    with pytest.raises(InputError, match=f"with {base} plug-ins are more than .* keep them in a folder of their own"):
        plugins_here()


def test_the_folder_of_a_host_s_configuration_goes_along(base: Path) -> None:
    own_hosts.write(base)
    (base / "gpu-c" / "notes.txt").write_text("not this")
    found = sorted(files_of(drill(base, "topology: own-hosts.yaml\n")))
    of_c = [f"gpu-c/{name}" for name in sorted(own_hosts.NETWORKD)]
    assert found == ["d.yaml", "gpu-a/interfaces", *of_c, "own-hosts.yaml"]
