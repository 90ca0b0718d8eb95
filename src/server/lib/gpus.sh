#!/bin/sh
# What the vendors' programs tell of a server's GPUs: a part of actions/facts.sh. Their output goes to the laptop as it is, a line each:
#   @remote1 gpu-out NAME |LINE       of one question; NAME says which (see tell_nvidia, tell_amd, tell_intel)
#   @remote1 gpu-end NAME CODE        how that ended; 124: it did not answer in time
#   @remote1 gpu-pid PID USER OWN AGE JOB COMM   of a process that holds memory of a GPU; "-": not known
# docs/protocol.md has them, too. $newline is set before. Only builtins, awk, sed, tr, cut, stat and the vendors' programs are used.

# shellcheck disable=SC2154
# shellcheck source=src/server/lib/login_path.sh
. "$remote_program/lib/login_path.sh"

# find_gpu_programs: where no vendor's program is on the PATH, that of a login shell may have one.
find_gpu_programs() {
  for fg_program in nvidia-smi amd-smi rocm-smi xpu-smi; do
    ! command -v $fg_program >/dev/null 2>&1 || return 0
  done
  add_login_path
}

# gpu_out NAME CODE TEXT
gpu_out() {
  [ -z "$3" ] || printf '%s\n' "$3" | cut -c 1-60000 | sed "s/^/@remote1 gpu-out $1 |/"
  printf '@remote1 gpu-end %s %s\n' "$1" "$2"
}

# gpu_ask NAME PROGRAM WORD…: one question.
gpu_ask() {
  ga_name=$1
  shift
  ga_text=$($gpu_limit "$@" 2>&1 </dev/null)
  gpu_out "$ga_name" $? "$ga_text"
}

# The fields that one query asks for; `name` is last, as it is the only one that is free text.
gpu_fields=index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,clocks.sm,clocks.mem,clocks_event_reasons.active,mig.mode.current,ecc.errors.uncorrected.volatile.total
gpu_more_fields=clocks.max.sm,driver_version,persistence_mode,compute_mode,ecc.mode.current,ecc.errors.uncorrected.aggregate.total,retired_pages.pending

# The whole query fails for a field that this driver does not know, and names it: then it is asked without that. What an older
# driver calls otherwise is asked by its older name first.
query_nvidia() {
  qn_fields=$gpu_fields
  [ "$1" = brief ] || qn_fields=$qn_fields,$gpu_more_fields
  qn_fields=$qn_fields,name
  qn_tries=24
  while :; do
    qn_text=$($gpu_limit nvidia-smi "--query-gpu=$qn_fields" --format=csv,noheader,nounits 2>&1 </dev/null)
    qn_code=$?
    case $qn_text in
      *'Field "'*'" is not a valid field'*) ;;
      *) break ;;
    esac
    qn_bad=${qn_text#*'Field "'}
    qn_bad=${qn_bad%%'"'*}
    qn_tries=$((qn_tries - 1))
    case ,$qn_fields, in
      *",$qn_bad,"*) [ $qn_tries -gt 0 ] || break ;;
      *) break ;;
    esac
    qn_other=
    [ "$qn_bad" != clocks_event_reasons.active ] || qn_other=clocks_throttle_reasons.active,
    qn_rest=,$qn_fields,
    qn_rest=${qn_rest%%",$qn_bad,"*},$qn_other${qn_rest#*",$qn_bad,"}
    qn_rest=${qn_rest#,}
    qn_fields=${qn_rest%,}
  done
  gpu_out nvidia-fields 0 "$qn_fields"
  gpu_out nvidia-query "$qn_code" "$qn_text"
}

# tell_gpu_pids PID…: who these processes are.
tell_gpu_pids() {
  tp_now=
  read -r tp_now _ 2>/dev/null </proc/uptime
  tp_tick=$(getconf CLK_TCK 2>/dev/null) || tp_tick=100
  tp_self=$(id -u)
  for tp_pid; do
    tp_owner=$(stat -c '%u %U' "/proc/$tp_pid" 2>/dev/null) || continue
    tp_user=${tp_owner#* }
    case $tp_user in
      '' | UNKNOWN | *[!A-Za-z0-9._-]*) tp_user=${tp_owner%% *} ;;
    esac
    tp_own=0 tp_job=-
    if [ "${tp_owner%% *}" = "$tp_self" ]; then
      tp_own=1
      gpu_job "$tp_pid"
    fi
    tp_comm=
    read -r tp_comm 2>/dev/null <"/proc/$tp_pid/comm"
    case $tp_comm in
      '' | *[[:cntrl:]]*) tp_comm=- ;;
    esac
    # the name in parentheses may hold anything, also newlines
    tp_stat=$(tr '\n' ' ' 2>/dev/null <"/proc/$tp_pid/stat")
    set -f
    # shellcheck disable=SC2086
    set -- ${tp_stat##*') '}
    set +f
    tp_age=-
    if [ $# -ge 20 ] && [ -n "$tp_now" ]; then
      tp_age=$((${tp_now%.*} - ${20} / tp_tick))
      [ "$tp_age" -ge 0 ] || tp_age=0
    fi
    printf '@remote1 gpu-pid %s %s %s %s %s %s\n' "$tp_pid" "$tp_user" $tp_own "$tp_age" "$tp_job" "$tp_comm"
  done
}

# gpu_job PID: the job of ours whose cookie the process or one of its parents carries, into $tp_job. Only the login's own
# processes are believed: another user may give a process any variable.
gpu_job() {
  gj_pid=$1 gj_steps=16
  while [ $gj_steps -gt 0 ] && [ "$gj_pid" -gt 1 ] && [ -O "/proc/$gj_pid/environ" ]; do
    gj_id=$(tr '\n\000' '?\n' 2>/dev/null <"/proc/$gj_pid/environ" | sed -n '/^REMOTE_JOB_ID=[0-9a-f]\{32\}$/{s/^[^=]*=//;p;q;}')
    if [ -n "$gj_id" ]; then
      tp_job=$gj_id
      return
    fi
    gj_pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$gj_pid/status" 2>/dev/null)
    gj_pid=${gj_pid:-0}
    gj_steps=$((gj_steps - 1))
  done
}

# The processes are asked for beside the GPUs: each call takes a driver up to a second.
tell_nvidia() {
  command -v nvidia-smi >/dev/null 2>&1 || return 0
  {
    # the name last: it may hold commas
    $gpu_limit nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits 2>&1 </dev/null
    printf '.code %s' $?
  } | tell_nvidia_gpus "$1"
}

# The same, with the processes on stdin.
tell_nvidia_gpus() {
  query_nvidia "$1"
  tn_text=$(cat)
  # 15: a GPU has fallen off the bus; the others have processes nevertheless
  [ "$qn_code" = 0 ] || [ "$qn_code" = 15 ] || return 0
  tn_code=${tn_text##*.code }
  tn_text=${tn_text%.code *}
  tn_text=${tn_text%"$newline"}
  gpu_out nvidia-apps "$tn_code" "$tn_text"
  tn_pids=$(printf '%s\n' "$tn_text" | sed -n 's/^[^,]*, *\([0-9][0-9]*\),.*/\1/p' | sort -un)
  # shellcheck disable=SC2086
  [ -z "$tn_pids" ] || tell_gpu_pids $tn_pids
  [ "$1" = full ] || return 0
  # What the queries lack. Only lines that are read on the laptop are sent: all of it is 20 KB a GPU.
  tn_text=$($gpu_limit nvidia-smi -q -x 2>&1 </dev/null)
  tn_code=$?
  tn_text=$(printf '%s\n' "$tn_text" | sed -n -e 's/^[[:space:]]*//' -e '/^<gpu id=/p' -e '/^<uuid>/p' -e '/^<driver_version>/p' \
    -e '/^<cuda_version>/p' -e '/^<remapped_row_pending>/p' -e '/^<remapped_row_failure>/p')
  gpu_out nvidia-xml $tn_code "$tn_text"
  gpu_ask nvidia-topo nvidia-smi topo -m
  tell_xids
}

# What the driver has written to the kernel's log, where this user may read that.
tell_xids() {
  tx_text=$($gpu_limit dmesg 2>/dev/null </dev/null)
  tx_code=$?
  if [ $tx_code != 0 ] && command -v journalctl >/dev/null 2>&1; then
    # Without the right to it, journalctl shows nothing and says so on stderr only: the kernel's first line is always there.
    tx_text=$($gpu_limit journalctl -k -b -q --no-pager -o cat 2>/dev/null </dev/null)
    tx_code=$?
    [ -n "$tx_text" ] || tx_code=1
  fi
  gpu_out nvidia-xid $tx_code "$(printf '%s\n' "$tx_text" | grep 'NVRM: Xid' | tail -n 50)"
}

# amd-smi is the newer program; rocm-smi is asked where that is not there.
tell_amd() {
  if command -v amd-smi >/dev/null 2>&1; then
    gpu_ask amd-static amd-smi static --json
    gpu_ask amd-metric amd-smi metric --json
  elif command -v rocm-smi >/dev/null 2>&1; then
    gpu_ask rocm rocm-smi --showuniqueid --showbus --showproductname --showmeminfo vram --showuse --showtemp --showpower --showmaxpower --showdriverversion --json
  fi
}

tell_intel() {
  command -v xpu-smi >/dev/null 2>&1 || return 0
  gpu_ask intel-list xpu-smi discovery -j
  # 0: use, 1: power, 2: clock, 3: temperature of the core, 18: memory used
  gpu_ask intel-dump xpu-smi dump -d -1 -m 0,1,2,3,18 -n 1
}

# tell_gpus HOW: brief or full. A PATH of the login shell is for this alone: a job does not have it.
tell_gpus() {
  tg_path=$PATH
  find_gpu_programs
  # A driver that hangs must not hold up the rest: with `full`, a person waits for the answer.
  gpu_limit=
  tg_limit=10
  [ "$1" != full ] || tg_limit=7
  ! command -v timeout >/dev/null 2>&1 || gpu_limit="timeout $tg_limit"
  tell_nvidia "$1"
  tell_amd
  tell_intel
  ! command -v nvidia-smi >/dev/null 2>&1 || printf '@remote1 facts has nvidia-smi\n'
  PATH=$tg_path
}
