#!/bin/sh
# The plain shell line: set up once, run a suite; the exit code says pass (0), fail (1), cannot run (3), inconclusive (4).
# With another suite: examples/ci/smoke.sh ci-out examples/ci/suite.yaml (in virtual time too: make kernel, once)
cd "$(dirname "$0")/../.." && make setup && exec .venv/bin/hpn ci run "${2:-examples/ci/smoke.yaml}" --out "${1:-ci-out}"
