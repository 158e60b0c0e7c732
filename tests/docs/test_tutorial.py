"""The tutorial is followed by ``make tutorial``; here, that whoever follows it sees what goes otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.drill.load import drill_from
from hpn.testbed.files.document import parse
from tests.docs.pages import ROOT
from tests.docs.tutorial import WrongPageError, follow, missing, steps

TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGE = """Say something.

```sh
alias greet='echo hello'
greet 12 times    # exit code 0
test -e mine.yaml    # exit code 1 or 4
```

```text
hello 7 times
```

Save this as `mine.yaml`:

```yaml
a: b
```

```sh
cat mine.yaml
```
"""


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_the_tutorial_is_read_whole() -> None:
    found = list(steps(TUTORIAL))
    typed = [typed for step in found for typed in step.lines]
    assert sum(bool(step.file) for step in found) == 1
    assert sum(typed.line.startswith("hpn ") for typed in typed) >= 15
    assert {typed.codes for typed in typed} == {(0,), (1,), (0, 4)}
    assert TUTORIAL.read_text().count("```text") == sum(bool(step.quoted) for step in found)


def test_its_own_drill_is_one_and_nobody_moves_queue_pairs_in_it() -> None:
    (text,) = (step.text for step in steps(TUTORIAL) if step.file)
    assert not drill_from(parse(text, "mine.yaml"), Path()).topology.path_control.enabled


def test_a_page_that_is_right_is_followed_to_its_end(tmp_path: Path) -> None:
    done = list(follow(_page(tmp_path, PAGE), tmp_path))
    assert [line.split(" s  ")[-1].split("    ")[0] for line in done if line.startswith("exit")] == [
        "alias greet='echo hello'",
        "greet 12 times",
        "test -e mine.yaml",
        "cat mine.yaml",
    ]
    assert "saved mine.yaml" in done


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("# exit code 1 or 4", "", "test -e mine.yaml    : exit code 1"),
        ("hello 7 times", "hello 7 twice", "nothing like this was printed:\n  hello 7 twice"),
        ("cat mine.yaml", "cat yours.yaml", "exit code 1"),
    ],
)
def test_a_page_that_is_wrong_is_told(tmp_path: Path, right: str, wrong: str, told: str) -> None:
    with pytest.raises(WrongPageError) as error:
        list(follow(_page(tmp_path, PAGE.replace(right, wrong)), tmp_path))
    assert told in str(error.value)


def test_quoted_lines_stand_in_the_output_in_order_whatever_the_numbers() -> None:
    output = "PASS  x (Linux 6.12.117)\n  worst   -3.5 ms   of 12\nrun folder: /a/b/runs/x\n"
    assert missing(["PASS x (Linux 6.1)", "worst 0.1 ms of", "run folder: .../runs/x"], output) == []
    assert missing(["run folder", "PASS"], output) == ["PASS"]
    assert missing(["worst ms"], output) == ["worst ms"]
