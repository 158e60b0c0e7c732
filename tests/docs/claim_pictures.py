"""Pictures of docs/reproduction.md from what ``hpn reproduce`` has found: ``make claim-pictures``.

    python -m tests.docs.claim_pictures runs/reproduce/reproduction.json docs/pictures

The loss of a job over its exposed communication, and the flap patterns that halt a job.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpn.scenarios.paper.judges import HALT_MS
from hpn.scenarios.paper.share_claims import PAPER, SHARES, share_of

WIDTH, HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 20, 45
_MOST_LOSS = 0.55
_BLUE, _RED, _GREY = "#1b6ca8", "#c0392b", "#888"

Points = Sequence[Mapping[str, float]]


def curve_svg(points: Points) -> str:
    """The loss of iterations over the share of exposed communication, with the paper's figure on it."""
    curve = sorted((each["share"], each["loss"]) for each in points)
    places = " ".join(f"{_x(share)},{_y(loss)}" for share, loss in curve)
    rule = " ".join(f"{_x(share / 50)},{_y(share / 50 / (1 + share / 50))}" for share in range(51))
    body = [
        _band(*SHARES),
        *_grid(),
        f'<polyline points="{rule}" fill="none" stroke="{_GREY}" stroke-dasharray="4 4"/>',
        _text(_x(0.8), _y(0.8 / 1.8) - 10, "s / (1 + s)", _GREY, "end"),
        f'<polyline points="{places}" fill="none" stroke="{_BLUE}" stroke-width="1.8"/>',
        *(_dot(share, loss, _BLUE, f"{share:.1%} exposed: -{loss:.1%}") for share, loss in curve),
        *_papers(share_of(PAPER, curve)),
    ]
    return _svg(WIDTH, HEIGHT, body)


def _x(share: float) -> float:
    return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)


def _y(loss: float) -> float:
    return round(HEIGHT - _BOTTOM - loss / _MOST_LOSS * (HEIGHT - _TOP - _BOTTOM), 1)


def _grid() -> Iterator[str]:
    for loss in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        yield f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(loss)}" y2="{_y(loss)}" stroke="#ddd"/>'
        yield _text(_LEFT - 6, _y(loss) + 4, f"{-loss:.0%}" if loss else "0", "#333", "end")
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        yield _text(_x(share), HEIGHT - _BOTTOM + 16, f"{share:.0%}", "#333", "middle")
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    yield _text(
        middle, HEIGHT - 8, "exposed communication, share of an iteration (loss of iterations above)", "#333", "middle"
    )


def _band(low: float, high: float) -> str:
    height = HEIGHT - _BOTTOM - _TOP
    return (
        f'<rect x="{_x(low)}" y="{_TOP}" width="{_x(high) - _x(low):.1f}" height="{height}" fill="#f3e6c4">'
        f"<title>LLaMa-7B on 256 GPUs, computed: {low:.1%} to {high:.1%}</title></rect>"
        + _text(_x(high) + 6, _TOP + 12, "LLaMa-7B on 256 GPUs, computed", "#8a6d1a", "start")
    )


def _papers(share: float | None) -> Iterator[str]:
    yield f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(PAPER)}" y2="{_y(PAPER)}" stroke="{_RED}"/>'
    yield _text(WIDTH - _RIGHT, _y(PAPER) - 6, f"the paper: {-PAPER:.2%}", _RED, "end")
    if share is not None:
        yield _dot(share, PAPER, _RED, f"{-PAPER:.2%} at {share:.1%}", 5)
        yield _text(_x(share) + 10, _y(PAPER) + 16, f"at {share:.1%} exposed", _RED, "start")


def _dot(share: float, loss: float, colour: str, title: str, radius: int = 3) -> str:
    return f'<circle cx="{_x(share)}" cy="{_y(loss)}" r="{radius}" fill="{colour}"><title>{title}</title></circle>'


_CELL_WIDTH, _CELL_HEIGHT, _HEAD, _SIDE = 92, 44, 58, 70


def region_svg(points: Points) -> str:
    """The halt of a job by flap pattern: a panel for each time down, in each cell single-ToR above HPN."""
    downs, periods, counts = (sorted({each[key] for each in points}) for key in ("down_ms", "period_ms", "count"))
    panel = _SIDE + _CELL_WIDTH * len(periods) + 24
    body: list[str] = []
    for at, down in enumerate(downs):
        left = _SIDE + at * panel
        body.append(_text(left, 18, f"down for {down:g} ms, once every", "#333", "start"))
        body += [
            _text(left + _CELL_WIDTH * (column + 0.5), 42, f"{period / 1000:g} s", "#333", "middle")
            for column, period in enumerate(periods)
        ]
        body += [
            _text(left - 8, _HEAD + _CELL_HEIGHT * (row + 0.6), f"{count:g} x", "#333", "end")
            for row, count in enumerate(counts)
        ]
        for each in (each for each in points if each["down_ms"] == down):
            column, row = periods.index(each["period_ms"]), counts.index(each["count"])
            span = len(periods) if each["count"] == 1 else 1  # once has no period
            body += _cell(left + _CELL_WIDTH * column, _HEAD + _CELL_HEIGHT * row, _CELL_WIDTH * span, each)
    height = _HEAD + _CELL_HEIGHT * len(counts) + 30
    words = f"halt of a job: single-ToR (framed: longer than {HALT_MS / 1000:g} s), HPN below it"
    body.append(_text(_SIDE, height - 8, words, "#333", "start"))
    return _svg(panel * len(downs), height, body)


def _cell(x: float, y: float, width: float, point: Mapping[str, float]) -> Iterator[str]:
    longer = point.get("single_ms", float("inf")) > HALT_MS
    frame = f'stroke="{_RED}" stroke-width="2"' if longer else 'stroke="#ccc"'
    fill = "#f7d9d5" if longer else "#f4f4f4"
    yield f'<rect x="{x + 3}" y="{y + 3}" width="{width - 6}" height="{_CELL_HEIGHT - 6}" fill="{fill}" {frame}/>'
    yield _text(x + width / 2, y + 19, _halted(point, "single_ms"), _RED if longer else "#333", "middle")
    yield _text(x + width / 2, y + 34, f"HPN {_halted(point, 'hpn_ms')}", _BLUE, "middle")


def _halted(point: Mapping[str, float], of: str) -> str:
    return f"{point[of] / 1000:.1f} s" if of in point else "dead"


def _text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def _svg(width: float, height: float, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif"'
    return f'{head} font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"


PICTURES = {
    "dual-tor-link-down-job": ("exposed-communication.svg", curve_svg),
    "single-tor-flap-job": ("flap-patterns.svg", region_svg),
}


def main(found: str, folder: str) -> int:
    """Draw each picture whose claim was judged; exit code 3 for none."""
    points = {each["key"]: each["points"] for each in json.loads(Path(found).read_text())["claims"]}
    drawn = [key for key in PICTURES if points.get(key)]
    for key in drawn:
        name, svg = PICTURES[key]
        (Path(folder) / name).write_text(svg(points[key]))
        print(Path(folder) / name)
    return 0 if drawn else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
