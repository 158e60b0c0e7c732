#!/usr/bin/env bash
# A Slurm of one node for as long as a command runs, to try the other scripts: nothing of it listens but on loopback,
# nothing starts by itself, and at the end all of it is gone. Debian 12: apt-get install --no-install-recommends slurm-wlm munge
#
#   examples/cluster/one-node-slurm.sh /tmp/slurm sbatch --wait --array=0-2 examples/cluster/slurm-array.sh ci run suite.yaml
#   examples/cluster/one-node-slurm.sh /tmp/slurm          # a shell in which sbatch, squeue, scancel find it
#
# FOLDER is a new one, with all of its state and logs. CPUS: as many as the node says it has (8), whatever the machine has.
# Any user can do it. No cgroups: Slurm does not hold a job to its cores and memory here, and knows its processes by descent.
set -euo pipefail
folder=${1:?folder of a new Slurm, then a command} && shift
umask 077
mkdir "$folder" "$folder/state" "$folder/spool"
folder=$(cd "$folder" && pwd)
user=$(id -un)
PATH=$PATH:/usr/sbin
# Two ports that are free now.
read -r ctld nodes < <(python3 -c 'import socket
both = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(each.getsockname()[1] for each in both))')

cat > "$folder/slurm.conf" <<CONF
ClusterName=one-node
SlurmctldHost=localhost(127.0.0.1)
NodeName=localhost NodeAddr=127.0.0.1 CPUs=${CPUS:-8} RealMemory=100000 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$ctld
SlurmdPort=$nodes
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldParameters=no_quick_restart
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=10
CONF
export SLURM_CONF=$folder/slurm.conf
head -c 1024 /dev/urandom > "$folder/munge.key"

started=()
# The newest first; a daemon that does not end is killed.
end() {
  local at
  for ((at = ${#started[@]} - 1; at >= 0; at--)); do
    kill "${started[at]}" 2>/dev/null || continue
    timeout 20 tail --pid="${started[at]}" -f /dev/null || kill -KILL "${started[at]}" 2>/dev/null || true
  done
}
trap end EXIT
start() { # NAME COMMAND...: a daemon that stays our child
  local name=$1 && shift
  "$@" > "$folder/$name.out" 2>&1 &
  started+=($!)
}
await() { # WHAT COMMAND...: 30 s at most
  local what=$1 && shift
  for ((tries = 0; tries < 300; tries++)); do
    "$@" > /dev/null 2>&1 && return
    sleep 0.1
  done
  echo "no $what within 30 s; look at the logs in $folder" >&2
  exit 1
}

start munged munged --foreground --force --num-threads 2 --socket "$folder/munge.socket" --key-file "$folder/munge.key" \
  --pid-file "$folder/munged.pid" --log-file "$folder/munged.log" --seed-file "$folder/munge.seed"
await "munge" munge --no-input --socket "$folder/munge.socket"
start slurmctld slurmctld -D -f "$SLURM_CONF"
await "slurmctld" scontrol ping
start slurmd slurmd -D -N localhost -f "$SLURM_CONF"
idle() { [ "$(sinfo --noheader --format %T)" = idle ]; }
await "idle node" idle

if [ $# = 0 ]; then set -- "${SHELL:-bash}"; fi
code=0
"$@" || code=$?
exit $code
