#!/bin/sh
# Runs a job under Slurm, from its folder, which all nodes share:
#   sh ./slurm_job.sh one                            its command, on one node
#   sh ./slurm_job.sh ranks COUNT PORT GRACE         the same as COUNT ranks on every node, with torch's variables
#   sh ./slurm_job.sh agents COUNT PORT GRACE        a process on every node, which starts COUNT ranks itself
# The batch script calls it on the first node; it calls itself by srun, as `sh ./slurm_job.sh rank KIND COUNT GRACE`, for each process.
# PORT: of the rendezvous on the first node, 0: a free one. GRACE: the seconds between the failure of a rank and the end of the
# others; -: they are left alone. It is the supervisor of the job: `result` is written by it. docs/protocol.md tells of the files.
# Signals are caught with a no-op, so that this survives them while the job gets the defaults.
# shellcheck disable=SC2154
told=''
trap 'told=${told:-15}' TERM
trap 'told=${told:-2}' INT
trap 'told=${told:-1}' HUP
trap : QUIT USR1 USR2 PIPE ALRM
id=${PWD##*/}
[ -z "${SLURM_ARRAY_TASK_ID-}" ] || [ "$1" != one ] || command exec >>job.out 2>>job.err
case $id in
  *[!0-9a-f]* | '') echo 'remote: this is no folder of a job' >&2 && exit 127 ;;
esac
REMOTE_JOB_ID=$id
export REMOTE_JOB_ID

# shellcheck source=src/server/lib/end.sh
. "$remote_program/lib/end.sh"
# shellcheck source=src/server/lib/second.sh
. "$remote_program/lib/second.sh"

# put FILE TEXT: by rename, for the owner only.
put() {
  (
    umask 077
    printf '%s\n' "$2" >"$1.part.$$" && mv -f "$1.part.$$" "$1"
  ) 2>/dev/null
}

# keep_variables FILE: writes what the job is given here and not by job.sh, for the inside of its container, which sees the variables of
# nobody.
keep_variables() (
  umask 077
  for kv_name in $(env | sed -n 's/^\([A-Z][A-Z0-9_]*\)=.*/\1/p'); do
    case $kv_name in
      SLURM_* | SLURMD_* | MASTER_ADDR | MASTER_PORT | RANK | WORLD_SIZE | LOCAL_RANK | LOCAL_WORLD_SIZE | NODE_RANK | GROUP_RANK | \
        GROUP_WORLD_SIZE | ROLE_RANK | ROLE_WORLD_SIZE | *_SOCKET_IFNAME | *_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ZE_AFFINITY_MASK) ;;
      *) continue ;;
    esac
    eval "kv_rest=\${$kv_name-}"
    kv_value=
    while :; do
      case $kv_rest in
        *"'"*) kv_value="$kv_value${kv_rest%%"'"*}'\\''" kv_rest=${kv_rest#*"'"} ;;
        *) break ;;
      esac
    done
    printf "export %s='%s'\n" "$kv_name" "$kv_value$kv_rest"
  done >"$1"
)

# run_job OUT ERR NOTE: the command in the foreground, as a background one would ignore SIGINT. How it ended, into $kind and $code.
run_job() {
  shell='sh'
  command -v bash >/dev/null && shell=bash
  variables=-
  if [ -e container ]; then
    variables=$3.variables
    keep_variables "$variables"
  fi
  exec 9>&2
  command exec 2>"$3" || exec 2>/dev/null # the disk is full: there will be no note
  (
    command exec >>"$1" 2>>"$2" 9>&- || exit 127
    exec $shell job.sh "$1" "$2" "$3" "$variables"
  ) </dev/null
  code=$?
  exec 2>&9 9>&-
  note=
  read -r note 2>/dev/null <"$3"
  rm -f "$3" "$3.variables"
  ended_by "$code" "$note"
}

# ---- a process of the launch, started by srun ------------------------------------------------------------

# The interface that leads to the first node, for gloo and NCCL: where names do not resolve, gloo would take the loopback.
find_interface() {
  fi_way=$(PATH=$PATH:/usr/sbin:/sbin ip route get "$MASTER_ADDR" 2>/dev/null) || return 0
  # shellcheck disable=SC2086
  set -- $fi_way
  while [ $# -ge 2 ]; do
    if [ "$1" = dev ]; then
      # The way to the own address is the loopback, which the others cannot reach.
      if [ "$2" != lo ] || [ "$SLURM_JOB_NUM_NODES" = 1 ] || case $MASTER_ADDR in 127.*) ;; *) false ;; esac then
        : "${GLOO_SOCKET_IFNAME=$2}" "${NCCL_SOCKET_IFNAME=$2}"
        export GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME
      else
        fi_own=$(PATH=$PATH:/usr/sbin:/sbin ip -o addr show 2>/dev/null | sed -n "s/^[0-9]*: *\([^ @]*\).* inet6* $MASTER_ADDR\/.*/\1/p" | head -n 1)
        [ -z "$fi_own" ] || : "${GLOO_SOCKET_IFNAME=$fi_own}" "${NCCL_SOCKET_IFNAME=$fi_own}"
        [ -z "$fi_own" ] || export GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME
      fi
      return 0
    fi
    shift
  done
}

# all_ended: whether every process of the launch has ended.
all_ended() {
  set -- ranks/*.end
  [ $# -ge "$SLURM_NTASKS" ]
}

# one_process KIND COUNT GRACE
one_process() {
  number=$SLURM_PROCID
  NODE_RANK=$SLURM_NODEID GROUP_RANK=$SLURM_NODEID
  export NODE_RANK GROUP_RANK
  if [ "$1" = ranks ]; then
    RANK=$number WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=$2
    ROLE_RANK=$RANK ROLE_WORLD_SIZE=$WORLD_SIZE GROUP_WORLD_SIZE=$SLURM_JOB_NUM_NODES
    export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE GROUP_WORLD_SIZE
  fi
  find_interface
  out=ranks/$number.out err=ranks/$number.err
  [ "$1" = ranks ] || out=ranks/agent.$number.out err=ranks/agent.$number.err # torch_agent.py writes those of the ranks
  [ "$number" != 0 ] || out=job.out err=job.err
  [ "$number" = 0 ] || (umask 077 && command : >>"$out" && command : >>"$err")
  run_job "$out" "$err" "ranks/.note.$number"
  moment
  end_record "$kind" "$code" "$ms" "slurm@${SLURMD_NODENAME-}"
  put "ranks/$number.end" "$end"
  [ "$kind $code" != 'exit 0' ] || return 0
  # One that was ended because another had failed has not failed.
  if [ "$1" = ranks ] && { [ -z "$told" ] || [ "$kind $code" != "signal $told" ]; }; then
    put "failures/.rank.$number" "$ms
$(tail -c 65536 "$err" | tail -n 30)" && mv -f "failures/.rank.$number" "failures/rank.$number"
    put "failures/end.$number" "$number $end"
  fi
  exec 2>/dev/null # what the shell says of a nap that is ended is no word of the job
  if [ "$3" != - ]; then
    tries=0
    while [ -z "$told" ] && [ $tries -lt "$(($3 * 5))" ] && ! all_ended; do
      sleep 0.2
      tries=$((tries + 1))
    done
  fi
  [ "$kind" = 'exit' ] || code=$((code + 128))
  exit "$code"
}

if [ "$1" = rank ]; then
  shift
  one_process "$@"
  exit 0
fi

# ---- the batch script ------------------------------------------------------------------------------------

# The one lock between this and a status or kill that says "never": who creates the file (O_EXCL) wins. Slurm may run a job again
# (--requeue): then the file is this job's own, and what the last run has left goes.
own_uid
if ! (umask 077 && set -C && printf 'slurm %s - -\n' "$SLURM_JOB_ID" >supervisor) 2>/dev/null; then
  read -r word _ <supervisor
  if [ "$word" = claimed ] || [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    exit 0
  fi
  rm -rf result slurm.end ranks failures
  printf 'remote: Slurm begins this job anew (restart %s) at %s\n' "$SLURM_RESTART_COUNT" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >&2
  for place in $places; do
    (enter_second "$place/remote-$own_uid" && rm -f "./$id.result")
  done
fi
number=$SLURM_JOB_ID
[ -z "${SLURM_ARRAY_TASK_ID-}" ] || number=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
[ -s slurm ] || put slurm "$number"
put nodes "$SLURM_JOB_NODELIST"
put started "$(date +%s)"

# free_port: one on which nobody listens here, outside of those for outgoing connections where there are such.
free_port() {
  low=0 high=0
  read -r low high 2>/dev/null </proc/sys/net/ipv4/ip_local_port_range
  # random, as another job may look at the same moment
  seed=$(od -An -N3 -tu4 /dev/urandom 2>/dev/null) || seed=$$
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v seed="${seed:-$$}" -v low="${low:-0}" -v high="${high:-0}" '
    $2 ~ /:[0-9A-F][0-9A-F][0-9A-F][0-9A-F]$/ { used[substr($2, length($2) - 3)] = 1 }
    END {
      for (pass = 0; pass < 2; pass++)
        for (i = 0; i < 12768; i++) {
          port = 20000 + (seed + i * 7919) % 12768 # 7919 is a prime: all are tried
          if (pass == 0 && port >= low && port <= high) continue
          if (!(sprintf("%04X", port) in used)) { print port; exit }
        }
    }'
}

# launch KIND COUNT PORT GRACE: all processes by one srun, then the first failure is the end of the job.
launch() {
  kill=1 tasks=$2
  [ "$4" != - ] || kill=0
  [ "$1" = ranks ] || tasks=1
  (umask 077 && mkdir -p ranks failures)
  MASTER_PORT=$3
  [ "$MASTER_PORT" != 0 ] || MASTER_PORT=$(free_port)
  first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  MASTER_ADDR=$(scontrol show node -o "$first" | sed -n 's/.* NodeAddr=\([^ ]*\) .*/\1/p')
  MASTER_ADDR=${MASTER_ADDR:-$first}
  export MASTER_ADDR MASTER_PORT
  srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$((SLURM_JOB_NUM_NODES * tasks))" --ntasks-per-node="$tasks" \
    ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} --mpi=none --kill-on-bad-exit=$kill \
    sh ./slurm_job.sh rank "$1" "$2" "$4" </dev/null
  code=$?
  ended_by "$code" srun
  [ -z "$told" ] || kind=signal code=$told # srun ends the ranks its own way then, and its exit code tells of that
  first=$(cat failures/end.* 2>/dev/null | sort -k 4,4n | head -n 1)
  if [ -n "$first" ]; then
    # shellcheck disable=SC2086
    set -- $first
    kind=$2 code=$3
    cat failures/end.* | sort -k 4,4n >failures/.agent && mv -f failures/.agent failures/agent
  elif [ -z "$told" ] && [ "$code" != 0 ]; then
    # Agents: the first that ended badly. srun tells the highest code, which may be that of one that it killed afterwards.
    first=$(cat ranks/*.end 2>/dev/null | grep -v '^exit 0 ' | sort -k 3,3n | head -n 1)
    # shellcheck disable=SC2086
    set -- $first
    kind=${1:-$kind} code=${2:-$code}
  fi
}

if [ "$1" = one ]; then
  run_job job.out job.err .note
else
  launch "$@"
fi
moment
end_record "$kind" "$code" "$ms" slurm
tries=0
until put result "$end" || { [ -e job.sh ] && write_second "$id.result" "$end"; }; do
  tries=$((tries + 1))
  if ! [ -e job.sh ] || [ $tries -ge 60 ]; then
    break
  fi
  sleep 1
done
[ "$kind" = 'exit' ] || code=$((code + 128))
exit "$code"
