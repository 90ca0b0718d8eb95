# The backend `slurm`: a job is one job of Slurm, submitted on a login node; its processes run on other machines, which share the
# project's folder with this one. docs/protocol.md tells what a backend is, and docs/launchers/slurm.md what it means to a user.
# What squeue and sbatch print is checked word by word: a site's wrapper may print anything.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts
# shellcheck source=src/server/lib/backend_slurm_state.sh
. "$remote_program/lib/backend_slurm_state.sh"
# shellcheck source=src/server/lib/login_path.sh
. "$remote_program/lib/login_path.sh"
slurm_rows='' slurm_asked='' slurm_trouble='' slurm_blanks=$IFS slurm_line_end='
'

# slurm_tools: Slurm's programs are often only on the PATH of a login shell.
slurm_tools() {
  command -v squeue >/dev/null 2>&1 && return
  for st_file in /etc/profile.d/*slurm*.sh; do
    # shellcheck disable=SC1090
    [ ! -r "$st_file" ] || . "$st_file" >/dev/null 2>&1 </dev/null
  done
  PATH=$PATH:/opt/slurm/bin:/usr/local/slurm/bin:/usr/slurm/bin:/usr/local/bin:/cm/shared/apps/slurm/current/bin
  command -v squeue >/dev/null 2>&1 || add_login_path
  command -v squeue >/dev/null 2>&1
}

# slurm_call SECONDS COMMAND…: a controller that is away lets its clients wait for a long time.
slurm_call() {
  if command -v timeout >/dev/null 2>&1; then
    timeout "$@"
  else
    shift
    "$@"
  fi
}

# slurm_last_line TEXT: the last line that says anything, for a person, into $slurm_line.
slurm_last_line() {
  slurm_line=
  set -f
  IFS=$slurm_line_end
  for sl_line in $1; do
    case $sl_line in
      '' | *'Try "s'*'--help" for more information') ;; # behind a wrong option, which the line before it names
      *) slurm_line=$sl_line ;;
    esac
  done
  IFS=$slurm_blanks
  set +f
  plain "$slurm_line"
  slurm_line=$plain
}

# slurm_ask AGE: how the login's jobs are, into $slurm_rows, unless that is known and at most AGE hundredths of a second old.
# What went wrong, into $slurm_trouble.
slurm_ask() {
  read_clock
  if [ -n "$slurm_asked" ] && [ $((clock - slurm_asked)) -le "$1" ]; then
    return
  fi
  slurm_trouble=
  if [ -n "$no_forks" ]; then
    slurm_trouble=$no_forks
    return
  fi
  if ! slurm_tools; then
    slurm_trouble='there is no squeue on this server: is it the login node of a Slurm cluster?'
    return
  fi
  [ -n "$own_uid" ] || own_uid
  if slurm_rows=$(slurm_call 2 squeue -h -r -t all -u "$own_uid" -o '%F|%K|%T|%N|%e|%S|%r|%j' 2>&1); then
    read_clock
    slurm_asked=$clock
  else
    slurm_last_line "$slurm_rows"
    slurm_rows='' slurm_asked=''
    slurm_trouble="Slurm does not answer${slurm_line:+: $slurm_line}"
  fi
}

# slurm_id ID: the number of its job of Slurm, as far as it is on record: into $slurm_number, NUMBER or NUMBER_INDEX.
slurm_id() {
  slurm_number=
  read -r slurm_number _ 2>/dev/null <"$jobs/$1/slurm"
  case $slurm_number in
    *[!0-9_]* | _* | *_ | *_*_*) slurm_number= ;;
  esac
}

# slurm_row ID: what Slurm says of the job, into $slurm_state, $slurm_nodes, $slurm_until, $slurm_begin and $slurm_why; fails when it does not know
# it. Its name finds it when its number could not be written down.
slurm_row() {
  slurm_id "$1"
  slurm_state='' slurm_nodes='' slurm_until='' slurm_begin='' slurm_why=''
  set -f
  IFS=$slurm_line_end
  for sr_line in $slurm_rows; do
    case $sr_line in
      "${slurm_number%_*}|"* | *"|remote-$1") ;;
      *) continue ;;
    esac
    sr_name=${sr_line##*|}
    sr_line=${sr_line%|*}
    IFS='|'
    # shellcheck disable=SC2086
    set -- "$1" $sr_line
    IFS=$slurm_line_end
    [ $# -ge 7 ] || continue
    case $2:$4 in
      *[!0-9]*:* | :* | *:*[!A-Z_]* | *:) continue ;;
    esac
    sr_number=$2
    case $3 in
      '' | *[!0-9]*) ;;
      *) sr_number=$2_$3 ;;
    esac
    [ "$sr_number" = "$slurm_number" ] || { [ -z "$slurm_number" ] && [ "$sr_name" = "remote-$1" ]; } || continue
    slurm_number=$sr_number slurm_state=$4 slurm_nodes=$5 slurm_until=$6 slurm_begin=$7 slurm_why=${8-}
    case $slurm_nodes in
      *[!A-Za-z0-9_.,\[\]-]*) slurm_nodes= ;;
    esac
    case $slurm_why in
      None | '(null)') slurm_why= ;;
    esac
  done
  IFS=$slurm_blanks
  set +f
  [ -n "$slurm_state" ]
}

# slurm_kind STATE: `queued`, `running` or `final`, into $slurm_kind.
slurm_kind() {
  case $1 in
    PENDING | CONFIGURING | REQUEUED | REQUEUE_HOLD | REQUEUE_FED | SPECIAL_EXIT | RESV_DEL_HOLD) slurm_kind=queued ;;
    BOOT_FAIL | CANCELLED | COMPLETED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED | TIMEOUT) slurm_kind=final ;;
    *) slurm_kind=running ;; # COMPLETING too: processes of it may live
  esac
}

# slurm_note ID NAME TEXT: keeps what Slurm says of its end, in its folder as slurm.NAME.
slurm_note() {
  (
    umask 077
    printf '%s\n' "$3" >"$jobs/$1/.slurm.$2.$$" && mv -f "$jobs/$1/.slurm.$2.$$" "$jobs/$1/slurm.$2"
  ) 2>/dev/null
}

# slurm_start ID…
slurm_start() {
  trap - EXIT # from here on it is not true that nothing was started
  for sa_id; do
    [ ! -e "$jobs/$sa_id/batch.sh" ] || slurm_submit "$sa_id"
  done
}

# slurm_tasks ID: the jobs that its batch script is for: "  NUMBER) cd ID ;;" is a line for each task of an array. Into $slurm_tasks,
# NUMBER:ID; `-:ID` for a job that is no array.
slurm_tasks() {
  slurm_tasks=
  while read -r sk_number sk_word sk_id sk_end; do
    case $sk_number:$sk_word:$sk_end in
      [0-9]*'):cd:;;') slurm_tasks="$slurm_tasks ${sk_number%)}:$sk_id" ;;
    esac
  done <"$jobs/$1/batch.sh"
  slurm_tasks=${slurm_tasks:- -:$1}
}

# slurm_none ID REASON: nothing of what was to be submitted starts.
slurm_none() {
  slurm_tasks "$1"
  for sx_task in $slurm_tasks; do
    not_started "${sx_task#*:}" "$2"
  done
}

# slurm_submit ID: in the job's folder, so that the paths of its output need no quoting. The umask is the user's: Slurm gives the job
# that of sbatch.
slurm_submit() {
  if ! slurm_tools; then
    slurm_none "$1" 'there is no sbatch on this server: is it the login node of a Slurm cluster?'
    return
  fi
  slurm_after "$1" || {
    slurm_none "$1" "$slurm_why"
    return
  }
  slurm_tasks "$1"
  su_dir=$jobs/$1 su_batch=batch.sh
  case $slurm_tasks in
    ' -:'*) ;;
    *) su_dir=$jobs su_batch=$1/batch.sh ;;
  esac
  # shellcheck disable=SC2086
  su_out=$(cd "$su_dir" && umask "$mask" && slurm_call 40 sbatch --parsable --job-name="remote-$1" $slurm_after "$su_batch" 2>&1)
  su_code=$?
  slurm_last_line "$su_out"
  su_number=${slurm_line%%;*}
  case $su_code:$su_number in
    0: | 0:*[!0-9]* | [1-9]*)
      # It may have been taken all the same, and the answer was lost.
      su_why=${slurm_line#sbatch: }
      slurm_ask 0
      if ! slurm_row "$1"; then
        slurm_none "$1" "sbatch: ${su_why:-it gave no number}"
        return
      fi
      su_number=${slurm_number%_*}
      ;;
  esac
  for su_task in $slurm_tasks; do
    su_id=${su_task#*:} su_index=${su_task%%:*}
    [ "$su_index" = - ] && su_index= || su_index=_$su_index
    (
      umask 077
      printf '%s\n' "$su_number$su_index" >"$jobs/$su_id/.slurm.$$" && mv -f "$jobs/$su_id/.slurm.$$" "$jobs/$su_id/slurm"
    ) 2>/dev/null
    queued "$su_id" "Slurm job $su_number$su_index"
  done
}

# slurm_after ID: sbatch's option for the jobs that are named in its file `after`, into $slurm_after; fails, with $slurm_why, where
# it could never start. Of one that has succeeded nothing is asked: Slurm may have forgotten it.
slurm_after() {
  slurm_after='' slurm_why=''
  while read -r sf_id; do
    if ! facts "$sf_id"; then
      slurm_why="the job that it is to come after is not there any more ($sf_id)"
      return 1
    fi
    case $f_end:$f_code in
      exit:0) continue ;;
      ?*:*)
        slurm_why="the job that it is to come after has not succeeded ($f_end $f_code)"
        return 1
        ;;
    esac
    slurm_id "$sf_id"
    if [ "$f_backend" != slurm ] || [ -z "$slurm_number" ]; then
      slurm_why='the job that it is to come after is no job of Slurm'
      return 1
    fi
    slurm_after="$slurm_after:$slurm_number"
  done 2>/dev/null <"$jobs/$1/after"
  [ -z "$slurm_after" ] || slurm_after="--dependency=afterok$slurm_after --kill-on-invalid-dep=yes"
}

# slurm_members HOW ID…: the jobs that Slurm still has. Where it does not answer, none is gone.
slurm_members() {
  sm_how=$1
  shift
  case $sm_how in
    closing | suspects) return ;;
    new) slurm_ask 30 ;;
    *) slurm_ask 0 ;;
  esac
  after_kill=2500 # a node looks only now and then whether what it has killed is gone
  for sm_id; do
    if [ -n "$slurm_trouble" ]; then
      slurm_id "$sm_id"
      members="$members slurm:${slurm_number:-unknown}:$sm_id"
    elif slurm_row "$sm_id"; then
      slurm_kind "$slurm_state"
      store "slurm_was_$sm_id" "$slurm_kind"
      [ $slurm_kind = final ] || members="$members slurm:$slurm_number:$sm_id"
    fi
  done
}

# slurm_signal SIGNAL MEMBER…: the batch script and all steps get the signal; what has not begun is taken out of the queue. KILL ends the
# job for Slurm as well, so that it does not run once more.
slurm_signal() {
  sg_signal=$1
  shift
  for sg_member; do
    sg_id=${sg_member##*:}
    sg_number=${sg_member#slurm:}
    sg_number=${sg_number%:*}
    [ "$sg_number" != unknown ] || continue
    recall "slurm_was_$sg_id"
    sg_was=$recalled
    recall "sent_$sg_id"
    sg_had=$recalled
    if [ "$sg_had" = "$sg_signal:$sg_was" ]; then
      continue
    fi
    store "sent_$sg_id" "$sg_signal:$sg_was"
    if [ "$sg_was" = queued ]; then
      slurm_call 5 scancel "$sg_number" >/dev/null 2>&1
    elif [ "$sg_signal" = 9 ]; then
      slurm_call 5 scancel --full --signal=9 "$sg_number" >/dev/null 2>&1
      slurm_call 5 scancel "$sg_number" >/dev/null 2>&1
    else
      slurm_call 5 scancel --full --signal="$sg_signal" "$sg_number" >/dev/null 2>&1
    fi
    [ -n "$sg_had" ] || signalled "$sg_id"
  done
}
