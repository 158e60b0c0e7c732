#!/bin/sh
# The plain shell line: set up once, run a suite; the exit code says pass (0), fail (1), cannot run (3), inconclusive (4).
cd "$(dirname "$0")/../.." && make setup && exec .venv/bin/hpn ci run examples/ci/suite.yaml --out "${1:-ci-out}"
