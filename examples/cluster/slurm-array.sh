#!/usr/bin/env bash
# One Slurm job array that brings its own scheduler, without dask-jobqueue: task 0 is the scheduler and runs hpn, all others
# are workers.
#
#   sbatch --array=0-20 examples/cluster/slurm-array.sh ci run nightly.yaml --out ci-out
#
# HPN: the environment's bin folder, the same on every node. SHARED: a folder that all nodes see, for the scheduler file (runs
# need none: they come home through dask). TLS: a folder of ca.pem, cert.pem, key.pem, as certificates.sh makes it.
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=02:00:00
set -euo pipefail
bin=${HPN:-$PWD/.venv/bin}
file=${SHARED:-$PWD}/scheduler-${SLURM_ARRAY_JOB_ID:?start this with sbatch --array}.json
protocol=tcp certificates=()
if [ -n "${TLS:-}" ]; then
  protocol=tls
  certificates=(--tls-ca-file "$TLS/ca.pem" --tls-cert "$TLS/cert.pem" --tls-key "$TLS/key.pem")
  export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true DASK_DISTRIBUTED__COMM__TLS__CA_FILE=$TLS/ca.pem
  export DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=$TLS/cert.pem DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=$TLS/key.pem
fi

if [ "${SLURM_ARRAY_TASK_ID:?}" != 0 ]; then
  until [ -s "$file" ]; do sleep 1; done
  exec "$bin/dask" worker --scheduler-file "$file" --protocol "$protocol" --nthreads 1 --no-dashboard \
    --local-directory "${TMPDIR:-/tmp}" --death-timeout 60 "${certificates[@]}"
fi

"$bin/dask" scheduler --scheduler-file "$file" --protocol "$protocol" --port 0 --no-dashboard "${certificates[@]}" &
scheduler=$!
trap 'kill $scheduler; wait $scheduler || true; rm -f "$file"' EXIT
until [ -s "$file" ]; do sleep 1; done
"$bin/python" - "$file" <<'END'   # until the first worker is there
import sys
from distributed import Client
with Client(scheduler_file=sys.argv[1]) as client:
    client.wait_for_workers(1)
END
"$bin/hpn" "$@" --scheduler "$file"
