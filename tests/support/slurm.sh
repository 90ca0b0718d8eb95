# A small Slurm cluster on this machine, for tests that source this file: one slurmctld and two slurmd, without
# systemd, munge or root's own configuration, with their own ports, and with files in the folder $slurm.
# slurm_up FOLDER (an absolute path without blanks, as slurm.conf allows none) starts it and exports SLURM_CONF.
# slurm_down stops it and all of its jobs.
# shellcheck shell=sh

slurm=''
slurm_daemons=''

# Sets $slurm_missing to the reason why this machine cannot run such a cluster; empty if it can.
slurm_is_missing() {
  slurm_missing=''
  for program in slurmctld slurmd sbatch srun squeue scancel; do
    command -v $program >/dev/null || slurm_missing="there is no $program (packages slurmctld, slurmd, slurm-client)"
  done
  [ "$(id -u)" = 0 ] || slurm_missing='slurmd starts jobs as other users, so it needs root'
  [ -n "$slurm_missing" ]
}

# free_ports COUNT: prints ports that are free at this moment
free_ports() {
  python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])' "$1"
}

# slurm_write_conf FOLDER: writes the configuration, with currently free ports
slurm_write_conf() {
  slurm=$1
  mkdir -p "$slurm/state"
  # shellcheck disable=SC2046
  set -- $(free_ports 3)
  slurm_host=$(hostname -s)
  cat >"$slurm/slurm.conf" <<END
ClusterName=practice
SlurmctldHost=$slurm_host(127.0.0.1)
SlurmctldPort=$1
SlurmctldPidFile=$slurm/ctld.pid
SlurmctldLogFile=$slurm/ctld.log
StateSaveLocation=$slurm/state
SlurmdPidFile=$slurm/%n.pid
SlurmdLogFile=$slurm/%n.log
SlurmdSpoolDir=$slurm/%n.spool
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SchedulerType=sched/backfill
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MinJobAge=300
KillWait=1
SlurmdTimeout=10
MessageTimeout=10
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=$slurm_host NodeAddr=127.0.0.1 Port=$2 CPUs=4
NodeName=n2 NodeHostname=$slurm_host NodeAddr=127.0.0.1 Port=$3 CPUs=4
PartitionName=short Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
  SLURM_CONF=$slurm/slurm.conf
  export SLURM_CONF
}

# slurm_start PROGRAM OPTIONS...: starts a daemon in the background; its process id is in $!
slurm_start() {
  "$@" >>"$slurm/daemons.log" 2>&1 &
  slurm_daemons="$slurm_daemons $!"
}

slurm_controller_up() {
  slurm_start slurmctld -D
  # shellcheck disable=SC2034
  slurm_controller=$!
}

slurm_nodes_idle() {
  [ "$(timeout 5 sinfo -h -N -o '%N %T' 2>/dev/null | grep -c ' idle$')" = 2 ]
}

slurm_up() {
  slurm_write_conf "$1"
  slurm_controller_up
  slurm_start slurmd -D -N n1
  slurm_start slurmd -D -N n2
  # shellcheck disable=SC2034
  slurm_n2=$!
  slurm_tries=0
  until slurm_nodes_idle; do
    slurm_tries=$((slurm_tries + 1))
    [ $slurm_tries -lt 300 ] || {
      echo "Slurm did not come up" >&2
      tail -n 5 "$slurm"/*.log >&2
      return 1
    }
    sleep 0.1
  done
}

# slurm_processes: the step daemons, which outlive slurmd; found by the spool folder of their node
slurm_processes() {
  grep -lzF "SLURM_CONF=$slurm/slurm.conf" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ process _; do
    [ "$process" = $$ ] || echo "$process"
  done
}

slurm_down() {
  [ -n "$slurm" ] || return 0
  timeout 5 scancel --user=root 2>/dev/null
  for process in $slurm_daemons; do
    kill "$process" 2>/dev/null
  done
  # a daemon that is still handling the end of a node may take a minute
  slurm_tries=0
  for process in $slurm_daemons; do
    while kill -0 "$process" 2>/dev/null && [ $slurm_tries -lt 30 ]; do
      slurm_tries=$((slurm_tries + 1))
      sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null
    wait "$process" 2>/dev/null
  done
  for process in $(slurm_processes); do
    case $(cat "/proc/$process/comm" 2>/dev/null) in
      slurm*) kill -KILL "$process" 2>/dev/null ;;
    esac
  done
  slurm_daemons=''
}
