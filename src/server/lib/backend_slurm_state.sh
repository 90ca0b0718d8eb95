# Part of the backend `slurm` (backend_slurm.sh): how a job is, by its own result and by what Slurm says, also when Slurm has
# forgotten it or does not answer.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts

# slurm_says_end ID: what the end means that Slurm tells, where the job's own result is missing: into f_end, f_code and f_ms.
slurm_says_end() {
  f_ms=$(date -d "$slurm_until" +%s000 2>/dev/null) || f_ms=
  f_end=signal f_code=15 f_by=slurm
  case $slurm_state in
    COMPLETED) f_end='exit' f_code=0 ;;
    OUT_OF_MEMORY) f_code=9 ;;
    FAILED)
      # a wait status
      se_raw=$(slurm_call 2 squeue -h -t all -j "$slurm_number" -O exit_code:.20 2>/dev/null | head -n 1)
      se_raw=${se_raw##* }
      f_end='exit' f_code=1
      case $slurm_why:$se_raw in
        BadConstraints*) ;; # it has not run, and its status is 1 all the same: as of a SIGHUP
        *: | *:*[!0-9]* | *:??????*) ;;
        *)
          f_code=$((se_raw / 256 % 256))
          [ $((se_raw % 128)) = 0 ] || f_end=signal f_code=$((se_raw % 128))
          ;;
      esac
      ;;
    NODE_FAIL | BOOT_FAIL) f_end='' f_code='' ;;
  esac
}

# slurm_keep_end ID: puts on record what Slurm calls its end, which it will have forgotten in some minutes, and who ended it where that was nobody of ours.
slurm_keep_end() {
  slurm_note "$1" end "$slurm_state $slurm_why"
  if [ "$slurm_state" = CANCELLED ] && [ "$slurm_why" != DependencyNeverSatisfied ] && [ ! -e "$f_dir/stop" ] && ! slurm_oom; then
    (
      umask 077
      set -C
      read_ms
      printf '%s\n' "15 user:scancel $ms" >"$f_dir/stop"
    ) 2>/dev/null
  fi
}

# slurm_oom: whether Slurm ended it for want of memory, by its state or by what slurmstepd wrote to its stderr; that is noted.
slurm_oom() {
  [ ! -e "$f_dir/oom" ] || return 0
  [ -z "$no_forks" ] && [ "$f_end $f_code" != 'exit 0' ] || return 1
  so_state=
  read -r so_state _ 2>/dev/null <"$f_dir/slurm.end"
  [ "$so_state" = OUT_OF_MEMORY ] ||
    tail -c 16384 "$f_dir/job.err" 2>/dev/null | LC_ALL=C grep -q -e 'slurmstepd: error:.*xceeded .*memory limit' \
      -e 'slurmstepd: error:.*oom.kill' || return
  (umask 077 && command : >"$f_dir/oom") 2>/dev/null
}

# slurm_reason: why it ended, where its exit code does not say that; from `slurm.end`, into $reason.
slurm_reason() {
  ! slurm_oom || return 0
  sn_state='' sn_why=''
  read -r sn_state sn_why 2>/dev/null <"$f_dir/slurm.end"
  case $sn_state in
    '' | COMPLETED) ;;
    CANCELLED) [ "$sn_why" != DependencyNeverSatisfied ] || reason='the job that it was to come after has failed' ;;
    FAILED)
      case $sn_why in
        '' | NonZeroExitCode | JobLaunchFailure) ;;
        *) reason="FAILED, $sn_why" ;;
      esac
      [ "$sn_why" != JobLaunchFailure ] || reason='Slurm could not run its batch script to the end (JobLaunchFailure)'
      ;;
    *) reason=$sn_state ;;
  esac
}

# slurm_ended ID HOW: it has a result. Slurm is asked what else it knows, once; and after a kill or before a clean, whether all of it is
# gone.
slurm_ended() {
  phase=ended
  [ "$2" != brief ] || return
  if [ "$2" = all ] || [ -e "$f_dir/stop" ]; then
    slurm_ask 20
    if slurm_row "$1"; then
      slurm_kind "$slurm_state"
      if [ "$slurm_kind" != final ]; then
        phase=running reason="Slurm still has its job $slurm_number: $slurm_state"
        return
      fi
    fi
  elif [ "$f_end $f_code" != 'exit 0' ] && [ ! -e "$f_dir/slurm.end" ]; then
    # Its batch script ends just now, and then Slurm tells.
    so_tries=0
    while slurm_ask 5 && slurm_row "$1"; do
      slurm_kind "$slurm_state"
      if [ "$slurm_kind" = final ]; then
        slurm_keep_end "$1"
        break
      fi
      so_tries=$((so_tries + 1))
      [ $so_tries -lt 15 ] || break
      nap 0.1
    done
  fi
  slurm_reason
}

# slurm_live ID: how it is while Slurm has it in its queue or runs it; else it fails.
slurm_live() {
  slurm_row "$1" || return
  slurm_kind "$slurm_state"
  case $slurm_kind in
    queued)
      phase=queued
      reason="Slurm job $slurm_number, $slurm_state${slurm_why:+ ($slurm_why)}"
      [ "$slurm_state" != PENDING ] || reason="Slurm job $slurm_number${slurm_why:+, $slurm_why}"
      # By the node's clock, without its seconds.
      case $slurm_begin in
        [0-9]*-*T*:*:[0-9][0-9]) reason="$reason, expected to start ${slurm_begin%:*}" ;;
      esac
      ;;
    running)
      phase=running
      reason="Slurm job $slurm_number${slurm_nodes:+ on $slurm_nodes}"
      [ "$slurm_state" = RUNNING ] || reason="$reason, $slurm_state"
      ;;
    *) return 1 ;;
  esac
}

# slurm_state ID [HOW]: with `brief`, Slurm is asked every two seconds only.
slurm_state() {
  if [ -n "$f_end" ] && [ ! -e "$f_dir/requeue" ]; then
    slurm_ended "$1" "${2-}"
    return
  fi
  if [ "${2-}" = brief ]; then
    slurm_ask 200
  else
    slurm_ask 50
  fi
  if [ -n "$slurm_trouble" ]; then
    # A result is no proof here: Slurm may be about to run the job again.
    phase=unknown reason=$slurm_trouble
    return
  fi
  ! slurm_live "$1" || return 0
  # It is over. The result is written before Slurm is told, but a shared file system may show it late: listing the folder asks for news.
  ls -a "$f_dir" >/dev/null 2>&1
  facts "$1" || return
  if [ -n "$f_end" ]; then
    [ -z "$slurm_state" ] || slurm_keep_end "$1"
    phase=ended
    slurm_reason
    return
  fi
  if [ -n "$slurm_state" ]; then
    slurm_keep_end "$1"
    slurm_says_end "$1"
  elif [ -s "$f_dir/slurm.end" ]; then
    f_end=
  elif [ -z "$slurm_number" ] && [ -z "$f_sup" ]; then
    phase=starting
    return
  else
    slurm_accounts "$1"
  fi
  slurm_reason
  phase=gone
  if [ -n "$f_end" ]; then
    phase=ended
    put_result "$1" "$f_end" "$f_code" slurm "$f_ms"
    f_ms=$ms
  fi
}

# slurm_accounts ID: Slurm's accounting, where there is one, remembers what the controller has forgotten.
slurm_accounts() {
  sc_row=$(slurm_call 2 sacct -n -X -P -j "$slurm_number" -o State,ExitCode,End 2>/dev/null | tail -n 1)
  sc_code=${sc_row#*|}
  slurm_until=${sc_code##*|} sc_code=${sc_code%%|*}
  slurm_state=${sc_row%%[!A-Z_]*} slurm_why=
  slurm_kind "$slurm_state"
  [ "$slurm_kind" = final ] || return
  slurm_keep_end "$1"
  [ "$slurm_state" != FAILED ] || slurm_state=failed # squeue does not know its code
  slurm_says_end "$1"
  case $slurm_state:$sc_code in
    failed:*[!0-9:]* | failed: | failed:*:*:*) f_end='exit' f_code=1 ;;
    failed:*:0) f_end='exit' f_code=${sc_code%:0} ;;
    failed:*:*) f_end=signal f_code=${sc_code#*:} ;;
  esac
}

# slurm_sums: of rows of sacct, "NUMBER CPUS CPU% MEMORY REQUESTED" for each job that is over, as seff has them; memory in MiB, 0 where it is not
# known. Before 21.08, ReqMem is of a node or of a CPU, and ends with n or c.
slurm_sums() {
  awk -F '|' '
    function mebi(text) { return text ~ /^[0-9.]+K[nc]?$/ ? text / 1024 : 0 }
    NF != 9 || $1 !~ /^[0-9]+(_[0-9]+)?([.][a-z0-9]+)?$/ { next }
    { number = $1; sub(/[.].*/, "", number) }
    number != $1 {
      used = mebi($8) * ($9 > 1 ? $9 : 1)
      if (used > memory[number]) memory[number] = used
      next
    }
    $2 ~ /^(BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|TIMEOUT)/ && $5 + 0 > 0 && $3 + 0 > 0 &&
        $4 ~ /^([0-9]+-)?[0-9:.]+$/ {
      count = split($4, part, /[:-]/)
      seconds = 0
      for (i = 1; i <= count; i++) seconds = seconds * (i == 2 && $4 ~ /-/ ? 24 : 60) + part[i]
      cpus[number] = $5
      share[number] = 100 * seconds / $3 / $5
      requested[number] = mebi($7) * ($7 ~ /n$/ ? $6 : $7 ~ /c$/ ? $5 : 1)
    }
    END {
      for (number in cpus) {
        if (share[number] > 0 || memory[number] > 0)
          printf "%s %.0f %.0f %.0f %.0f\n", number, cpus[number], share[number], memory[number], requested[number]
      }
    }'
}

# slurm_usage ID:ENDED…: says what these ended jobs used of what they had, by the accounting. That is asked once for all of them. It lags behind
# their ends: what it does not know yet is asked for again in the first two minutes.
slurm_usage() {
  ug_numbers='' ug_code=127
  for ug_job; do
    slurm_id "${ug_job%:*}"
    [ -s "$jobs/${ug_job%:*}/slurm.used" ] || [ -z "$slurm_number" ] || ug_numbers=$ug_numbers,$slurm_number
  done
  if [ -n "$ug_numbers" ] && slurm_tools && command -v sacct >/dev/null 2>&1; then
    ug_rows=$(slurm_call 2 sacct -n -P --units=K -j "${ug_numbers#,}" \
      -o JobID,State,ElapsedRaw,TotalCPU,AllocCPUS,NNodes,ReqMem,MaxRSS,NTasks 2>/dev/null)
    ug_code=$?
    set -f
    IFS=$slurm_line_end
    for ug_row in $(printf '%s\n' "$ug_rows" | slurm_sums); do
      store "used_${ug_row%% *}" "${ug_row#* }"
    done
    IFS=$slurm_blanks
    set +f
  fi
  read_now
  for ug_job; do
    ug_id=${ug_job%:*} ug_ended=${ug_job##*:} ug_used=
    if ! read -r ug_used 2>/dev/null <"$jobs/$ug_id/slurm.used"; then
      slurm_id "$ug_id"
      recall "used_$slurm_number"
      ug_used=$recalled
      if [ -z "$ug_used" ]; then
        case $ug_code in
          0 | 124) [ $((now - ${ug_ended:-0})) -gt 120 ] || continue ;; # it had no answer yet, or was too slow
        esac
        ug_used=-
      fi
      slurm_note "$ug_id" used "$ug_used"
    fi
    [ "$ug_used" != - ] || ug_used=
    say "used $ug_id${ug_used:+ $ug_used}"
  done
}
