# The backend `local`: which processes are a job's.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts

# A process belongs to a job when one of these says so, and never when it carries another job's cookie:
# its cookie; the recorded pid and start time; job.out or job.err open for writing; its parent, session or process
# group belonging to the job; having belonged to it a moment ago. What is looked at in a round is valid in that
# round only: values are kept as ROUND:VALUE, so that nothing has to be cleared.
round=0
line_end='
'

# remember ID…: the killer's own group and session, the processes that are on record, unless of before a restart, and when the first of
# the jobs began, into $begun: 0 where a supervisor does not live to prove that its start was measured by this same clock.
remember() {
  stat_of self
  own_pgrp=$st_pgrp own_sid=$st_sid
  real_jobs='' boxed='' hidden='' young='' begun=
  for rm_id; do
    ! box_of "$rm_id" || boxed="$boxed $rm_id"
    recall "boot_$rm_id"
    if [ -n "$recalled" ] && [ "$recalled" != "$boot" ]; then
      store "sup_$rm_id" ''
      begun=0
      continue
    fi
    recall "sup_$rm_id"
    rm_sup=$recalled
    rm_begun=0
    if [ -n "$rm_sup" ]; then
      cgroup_of "$rm_sup"
      store "cgroup_$rm_id" "$cgroup"
      recall "sup_start_$rm_id"
      store "mine_$rm_sup" "$recalled:$rm_id"
      ! alive "$rm_sup" "$recalled" || rm_begun=$recalled
    fi
    [ "${begun:-$rm_begun}" -lt "$rm_begun" ] || begun=$rm_begun
    recall "main_$rm_id"
    rm_main=$recalled
    recall "main_start_$rm_id"
    [ -z "$rm_main" ] || store "mine_$rm_main" "$recalled:$rm_id"
  done
}

# own PID ID PGRP SID: notes that a process belongs to the job, and with it its session and group. A job without
# a session of its own shares them with strangers: there only those count that its own processes lead.
own() {
  store "own_$1" "$round:$2"
  recall "sid_$2"
  lone=$recalled
  if [ "$4" -gt 1 ] && [ "$4" != "$own_sid" ] && { [ "$lone" != - ] || [ "$4" = "$1" ]; }; then
    store "session_$4" "$round:$2"
  fi
  if [ "$3" -gt 1 ] && [ "$3" != "$own_pgrp" ] && { [ "$lone" != - ] || [ "$3" = "$1" ]; }; then
    store "group_$3" "$round:$2"
  fi
}

# local_members HOW ID…: without the supervisors, which end by themselves.
local_members() {
  lk_how=$1
  shift
  case $lk_how in
    closing)
      supervisors "$@"
      closing_boxes
      return
      ;;
    suspects)
      local_suspects "$@"
      return
      ;;
  esac
  [ $round -gt 0 ] || remember "$@"
  local_ids=" $* "
  if [ "$lk_how" = new ] && same_family; then
    boxed_members new
    return 0
  fi
  round=$((round + 1))
  rows=
  if [ -n "$no_forks" ]; then
    for lk_dir in /proc/[0-9]*; do
      ! stat_of "${lk_dir#/proc/}" || look_at
    done
  else
    visit "$@"
  fi
  lk_more=1
  while [ -n "$lk_more" ]; do
    lk_more=
    members=
    lk_rows=$rows
    for lk_row in $lk_rows; do
      IFS=:
      # shellcheck disable=SC2086
      set -- $lk_row
      IFS=$blanks
      take_row "$@"
    done
  done
  boxed_members "$lk_how"
}

# take_row PID PPID PGRP SID START: into $members, if it is a job's; sets lk_more where more may be found by it.
take_row() {
  recall "own_$1"
  lk_own=$recalled
  if [ "${lk_own%%:*}" != $round ]; then
    lk_id=
    for lk_by in "own_$2" "session_$4" "group_$3"; do
      recall "$lk_by"
      [ "${recalled%%:*}" = $round ] && lk_id=${recalled#*:} && break
    done
    [ -n "$lk_id" ] || return 0
    own "$1" "$lk_id" "$3" "$4"
    lk_own=$round:$lk_id
    lk_more=1
  fi
  # Once a look: one that starts children all the time would keep it going for ever.
  recall "asked_$1"
  if [ "$recalled" != $round ]; then
    store "asked_$1" $round
    add_children "$1"
  fi
  lk_id=${lk_own#*:}
  recall "sup_$lk_id"
  lk_sup=$recalled
  recall "main_$lk_id"
  lk_main=$recalled
  recall "sup_start_$lk_id"
  # The supervisor has one child that is the job's; another is its own helper and goes with it.
  if [ "$2" = "$lk_sup" ] && [ -n "$lk_main" ] && [ "$1" != "$lk_main" ]; then
    return 0
  fi
  if [ "$1:$5" != "$lk_sup:$recalled" ]; then
    members="$members $1:$5:$lk_id"
    store "mine_$1" "$5:$lk_id"
  fi
}

# same_family: whether nothing has changed since the last look but that members have ended: no process that lives has a child that is none of
# them. The members into $members. Costs nothing, so it can be done often; what has left its family is found by the last look.
same_family() {
  members=
  [ -e "/proc/$$/task/$$/children" ] || return 1
  for sf_member in $members_local; do
    case $sf_member in
      container:*) continue ;;
    esac
    sf_start=${sf_member#*:}
    alive "${sf_member%%:*}" "${sf_start%%:*}" || continue
    members="$members $sf_member"
    children_of "${sf_member%%:*}"
    for sf_child in $children; do
      case "$members_local " in
        *" $sf_child:"*) ;;
        *) return 1 ;;
      esac
    done
  done
}

# add_children PID: adds to the rows what is not there: children that are another user's by now (sudo).
add_children() {
  [ -z "$no_forks" ] || return 0
  children_of "$1"
  for ac_child in $children; do
    case "$rows" in
      *" $ac_child:"*) continue ;;
    esac
    recall "cookie_$ac_child"
    if [ "${recalled%%:*}" != $round ] && stat_of "$ac_child"; then
      ac_rows=$rows
      look_at
      [ "$rows" = "$ac_rows" ] || lk_more=1
    fi
  done
}

# boxed_members HOW: adds the containers that run. Between two looks at everything the engines are asked only about a job of which
# no process is to be seen, as that takes them a while.
boxed_members() {
  [ -n "$boxed" ] && [ -z "$no_forks" ] || return 0
  bm_ask=$1
  for bm_id in $boxed; do
    case "$members " in
      *":$bm_id "*) ;;
      *) bm_ask=all ;;
    esac
  done
  [ "$bm_ask" != new ] || return 0
  # shellcheck disable=SC2086
  list_boxes $boxed
  for bm_id in $boxed; do
    case $boxes in
      *" $bm_id:up "*) members="$members container:remote-$bm_id:$bm_id" ;;
    esac
  done
}

# look_at: takes the process of st_* into $rows, unless it is none of a job that was asked about; notes whose it is, where
# that is certain.
look_at() {
  if [ "$st_pid" -le 1 ] || [ "$st_pgrp" = "$own_pgrp" ] || [ "$st_sid" = "$own_sid" ]; then
    return 0
  fi
  case $st_state in
    [ZXx]) return ;;
  esac
  lk_id=
  recall "cookie_$st_pid"
  lk_cookie=$recalled
  recall "mine_$st_pid"
  lk_mine=$recalled
  recall "writes_$st_pid"
  if [ "${lk_cookie%%:*}" = $round ]; then
    lk_id=${lk_cookie#*:}
    case $local_ids in
      *" $lk_id "*) ;;
      *) return ;; # another job's: not ours, whatever else says so
    esac
  elif [ "${lk_mine%%:*}" = "$st_start" ]; then
    lk_id=${lk_mine#*:}
  elif [ "${recalled%%:*}" = $round ]; then
    lk_id=${recalled#*:}
  fi
  rows="$rows $st_pid:$st_ppid:$st_pgrp:$st_sid:$st_start"
  [ -z "$lk_id" ] || own "$st_pid" "$lk_id" "$st_pgrp" "$st_sid"
}

# cgroup_of PID: its control groups, into $cgroup.
cgroup_of() {
  cgroup=
  while read -r co_line; do
    cgroup="$cgroup$co_line "
  done 2>/dev/null <"/proc/$1/cgroup"
}

# local_suspects ID…: processes that may be of these jobs, though nothing proves it, because their environment and their
# files may not be read (ssh-agent, a setuid program): this user's, without a parent but the init process, begun while the job ran, and in its
# control group as far as that is known. Into $suspects, PID:START:ID:WHY. What the last look has seen is looked at.
local_suspects() {
  su_now=$now
  read_now # for $born
  now=$su_now
  for su_pid in $young; do
    recall "own_$su_pid"
    if [ "${recalled%%:*}" = $round ] || { true; } 2>/dev/null <"/proc/$su_pid/environ" || ! stat_of "$su_pid"; then
      continue
    fi
    su_start=$st_start
    [ "$st_state" != Z ] || continue
    if [ "$st_ppid" != 1 ] && ! { stat_of "$st_ppid" && [ "$st_comm" = systemd ]; }; then
      continue
    fi
    cgroup_of "$su_pid"
    for su_id in $local_ids; do
      recall "sup_$su_id"
      [ -n "$recalled" ] || continue
      recall "sup_start_$su_id"
      [ "$su_start" -ge "$recalled" ] || continue
      recall "ended_$su_id"
      # the kernel tells hundredths of a second since the boot
      [ -z "$recalled" ] || [ "$su_start" -le $(((recalled - born + 1) * 100)) ] || continue
      recall "cgroup_$su_id"
      [ -z "$recalled" ] || [ "$recalled" = "$cgroup" ] || continue
      suspects="$suspects $su_pid:$su_start:$su_id"
    done
  done
}
