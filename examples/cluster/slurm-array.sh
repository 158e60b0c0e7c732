#!/usr/bin/env bash
# One Slurm job array that brings its own scheduler, without dask-jobqueue: task 0 is the scheduler and runs hpn, all others
# are workers.
#
#   sbatch --array=0-20 examples/cluster/slurm-array.sh ci run nightly.yaml --out ci-out
#
# HPN: the environment's bin folder, the same on every node. SHARED: a folder that all nodes see, for the scheduler file (runs
# need none: they come home through dask). TLS: a folder of ca.pem, cert.pem, key.pem, as certificates.sh makes it. INTERFACE:
# the network that nodes reach each other by, such as ib0; without it dask names one itself, and listens on all.
#
# Tasks may begin in any order, be cancelled and be requeued: a worker waits for task 0 as long as Slurm knows of it, and
# serves the next scheduler when task 0 was requeued. When hpn has ended, all of them end.
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=02:00:00
set -euo pipefail
bin=${HPN:-$PWD/.venv/bin}
array=${SLURM_ARRAY_JOB_ID:?start this with sbatch --array}
file=${SHARED:-$PWD}/scheduler-$array.json
common=(--no-dashboard --dashboard-address 127.0.0.1:0 ${INTERFACE:+--interface "$INTERFACE"} --scheduler-file "$file")
if [ -n "${TLS:-}" ]; then
  common+=(--protocol tls --tls-ca-file "$TLS/ca.pem" --tls-cert "$TLS/cert.pem" --tls-key "$TLS/key.pem")
  export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true DASK_DISTRIBUTED__COMM__TLS__CA_FILE=$TLS/ca.pem
  export DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=$TLS/cert.pem DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=$TLS/key.pem
fi

# Whether task 0 is at work or may still be. A Slurm that does not answer has said nothing.
leads() {
  local told
  told=$(squeue --noheader --jobs "${array}_0" --format %T 2>&1) || true
  [[ -n $told && $told != *"Invalid job id"* ]]
}

if [ "${SLURM_ARRAY_TASK_ID:?}" != 0 ]; then
  while leads; do
    if [ -s "$file" ]; then
      "$bin/dask" worker "${common[@]}" --nthreads 1 --local-directory "${TMPDIR:-/tmp}" --death-timeout 60 || true
    fi
    sleep 5
  done
  exit 0
fi

rm -f "$file"  # of a scheduler that was killed, when this is requeued
"$bin/dask" scheduler "${common[@]}" --port 0 &
scheduler=$!
trap 'kill $scheduler || true; wait $scheduler || true; rm -f "$file"' EXIT
until [ -s "$file" ]; do
  kill -0 $scheduler || exit 3
  sleep 1
done
"$bin/python" - "$file" <<'END'   # until the first worker is there
import sys
from distributed import Client
with Client(scheduler_file=sys.argv[1]) as client:
    client.wait_for_workers(1)
END
"$bin/hpn" "$@" --scheduler "$file"
