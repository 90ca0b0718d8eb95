# The backend `local`: which processes are a job's, and how they are signalled.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC3013  # variables are shared between the parts; all shells here know -ef

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

# scan_writers ID…: which of $wr_pids has job.out or job.err of an asked job open for writing (a follower reads), into writes_PID.
scan_writers() {
  if [ -z "$real_jobs" ]; then
    real_jobs=$(cd "$jobs" 2>/dev/null && pwd -P && echo .)
    as_pattern "${real_jobs%??}"
    real_jobs=$pattern
  fi
  wr_ids=$*
  for wr_id; do
    shift
    set -- "$@" "$real_jobs/$wr_id/job.[eo][ru][rt]"
  done
  find_open "$wr_pids" "$@" || compare_open
  # shellcheck disable=SC2086
  set -- $wr_ids
  for wr_word in $opened; do
    wr_left=${wr_word#*:}
    for wr_id; do
      wr_left=$((wr_left - 1))
      [ $wr_left -gt 0 ] || break
    done
    store "writes_${wr_word%%:*}" "$round:$wr_id"
  done
}

# compare_open: the same for $wr_pids and $wr_ids without GNU find, by tests of the shell. Only files on the mount of the jobs are looked at: a test
# of one on a server that does not answer would not come back.
compare_open() {
  { open_file self 9; } 2>/dev/null 9<"$jobs/${wr_ids%% *}/job.out"
  co_mount=$of_mount
  for co_pid in $wr_pids; do
    for co_file in "/proc/$co_pid/fd"/*; do
      open_file "$co_pid" "${co_file##*/}"
      [ "$of_mount" = "$co_mount" ] || continue
      case $of_flags in
        *[12]) ;;
        *) continue ;;
      esac
      co_count=0
      for co_id in $wr_ids; do
        co_count=$((co_count + 1))
        if [ "$co_file" -ef "$jobs/$co_id/job.out" ] || [ "$co_file" -ef "$jobs/$co_id/job.err" ]; then
          opened="$opened $co_pid:$co_count"
        fi
      done
    done
  done
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
    return
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
      recall "own_$1"
      lk_own=$recalled
      if [ "${lk_own%%:*}" != $round ]; then
        lk_id=
        for lk_by in "own_$2" "session_$4" "group_$3"; do
          recall "$lk_by"
          [ "${recalled%%:*}" = $round ] && lk_id=${recalled#*:} && break
        done
        [ -n "$lk_id" ] || continue
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
        continue
      fi
      if [ "$1:$5" != "$lk_sup:$recalled" ]; then
        members="$members $1:$5:$lk_id"
        store "mine_$1" "$5:$lk_id"
      fi
    done
  done
  boxed_members "$lk_how"
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

# visit ID…: makes the rows of those of this user's processes that may be of these jobs, and notes what tells whose they are. Others are looked
# at only where they are on record, or a child of such a one. A call of each tool for all of them.
visit() {
  scan_cookies
  for vi_word in $cookies; do
    store "cookie_${vi_word%%:*}" "$round:${vi_word#*:}"
  done
  find_hidden
  vi_pids='' vi_seeds='' wr_pids='' vi_all="$own_pids $hidden"
  [ -e "/proc/$$/task/$$/children" ] || vi_all="$own_pids $other_pids"
  for vi_pid in $members_local; do
    vi_seeds="$vi_seeds ${vi_pid%%:*}"
  done
  for vi_id; do
    recall "sup_$vi_id"
    vi_seeds="$vi_seeds $recalled"
    recall "main_$vi_id"
    vi_seeds="$vi_seeds $recalled"
  done
  for vi_pid in $vi_seeds; do
    [ -O "/proc/$vi_pid" ] || vi_all="$vi_all $vi_pid"
  done
  for vi_pid in $vi_all; do
    recall "cookie_$vi_pid"
    if [ "${recalled%%:*}" != $round ]; then
      vi_pids="$vi_pids $vi_pid"
      continue
    fi
    case $local_ids in
      *" ${recalled#*:} "*) vi_pids="$vi_pids $vi_pid" vi_seeds="$vi_seeds $vi_pid" ;;
    esac
  done
  take_family
  for vi_pid in $young; do
    recall "cookie_$vi_pid"
    [ "${recalled%%:*}" = $round ] || [ ! -O "/proc/$vi_pid" ] || wr_pids="$wr_pids $vi_pid"
  done
  scan_writers "$@"
  vi_known=" $vi_kin " vi_more=
  for vi_word in $opened; do
    case $vi_known in
      *" ${vi_word%%:*} "*) ;;
      *) vi_more=1 vi_seeds="$vi_seeds ${vi_word%%:*}" ;;
    esac
  done
  [ -z "$vi_more" ] || take_family # with what belongs to these
  vi_part=
  set -f
  IFS=$line_end
  for vi_line in $vi_stats; do
    IFS=$blanks
    if ! stat_line "$vi_part$vi_line"; then
      vi_part="$vi_part$vi_line "
      continue
    fi
    vi_part=
    look_at
  done
  IFS=$blanks
  set +f
}

# take_family: what family prints of $vi_pids and $vi_seeds, into $young, $vi_kin and $vi_stats.
take_family() {
  # shellcheck disable=SC2086
  vi_stats=$(family "$vi_seeds" $vi_pids 2>/dev/null)
  case $vi_stats in
    *"$line_end.") ;;
    *) # there is no awk, or it did not get to its end: all of them
      # shellcheck disable=SC2046,SC2086
      vi_stats=$(printf '%s\n' "$vi_pids" "$vi_pids" && cat $(printf '/proc/%s/stat ' $vi_pids) 2>/dev/null)
      ;;
  esac
  young=${vi_stats%%"$line_end"*}
  vi_stats=${vi_stats#*"$line_end"}
  vi_kin=${vi_stats%%"$line_end"*}
  vi_stats=${vi_stats#*"$line_end"}
}

# family "SEED…" PID…: a line with those of these processes that are seeds or no older than the jobs, as nothing that a job started can be
# older than it; a line with the seeds among them, their descendants, and all that shares a session or a process group with one of these; and
# the texts of /proc/PID/stat of the latter, and a dot. Of a text only what is behind the name counts, which may itself have blanks, parentheses and
# newlines. Reading such a file takes the kernel a while, so it is done once a look.
family() {
  fa_seeds=$1
  shift
  awk -v seeds="$fa_seeds" -v begun="$begun" -v own_pgrp="$own_pgrp" -v own_sid="$own_sid" '
    BEGIN {
      for (i = split(seeds, seed, " "); i > 0; i--) kin[seed[i]] = 1
      for (i = 1; i < ARGC; i++) {
        pid = ARGV[i]
        if (pid in seen) continue
        seen[pid] = 1
        file = "/proc/" pid "/stat"
        text = ""
        while ((getline line < file) > 0) text = text line " "
        close(file)
        rest = text
        sub(/^.*\) /, "", rest)
        if (split(rest, field, " ") < 31 || (field[20] + 0 < begun + 0 && !(pid in kin))) continue
        young = young " " pid
        lines[++count] = text; pids[count] = pid; parent[count] = field[2]; group[count] = field[3]; session[count] = field[4]
      }
      print young
      do {
        more = 0
        for (i = 1; i <= count; i++) {
          if (i in taken || !(pids[i] in kin || parent[i] in kin || group[i] in groups || session[i] in sessions)) continue
          taken[i] = more = kin[pids[i]] = 1
          related = related " " pids[i]
          if (group[i] > 1 && group[i] != own_pgrp) groups[group[i]] = 1
          if (session[i] > 1 && session[i] != own_sid) sessions[session[i]] = 1
        }
      } while (more)
      print related
      for (i = 1; i <= count; i++) if (i in taken) print lines[i]
      print "."
    }' "$@"
}

# find_hidden: this user's processes that have another user's rights (setuid), so that /proc says they are that one's: into $hidden.
find_hidden() {
  hidden=
  [ -n "$own_uid" ] || own_uid
  [ "$own_uid" != 0 ] && [ -n "$other_pids" ] || return 0
  # shellcheck disable=SC2013,SC2046,SC2086
  for hi_file in $(grep -ls "^Uid:[[:space:]]*${own_uid}[[:space:]]" $(printf '/proc/%s/status ' $other_pids) 2>/dev/null); do
    hi_file=${hi_file#/proc/}
    hidden="$hidden ${hi_file%/status}"
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

# closing_boxes: containers whose processes are gone, into $closing: their engine removes them. One that is still there after a second
# is removed here.
closing_boxes() {
  [ -n "$boxed" ] && [ -z "$no_forks" ] || return 0
  # shellcheck disable=SC2086
  [ -n "$members_local" ] || list_boxes $boxed
  for cb_id in $boxed; do
    case "$members_local " in
      *" container:remote-$cb_id:"*) continue ;;
    esac
    case $boxes in
      *" $cb_id:"*) closing="$closing container:remote-$cb_id:$cb_id" ;;
      *) continue ;;
    esac
    case "$members_local " in
      *":$cb_id "*) continue ;;
    esac
    recall "box_since_$cb_id"
    if [ -z "$recalled" ]; then
      store "box_since_$cb_id" "$clock"
    elif [ $((clock - recalled)) -ge 100 ]; then
      remove_box "$cb_id"
    fi
  done
}

# look_at: takes the process of st_* into $rows, unless it is none of a job that was asked about; notes whose it is, where
# that is certain.
look_at() {
  if [ "$st_pid" -le 1 ] || [ "$st_pgrp" = "$own_pgrp" ] || [ "$st_sid" = "$own_sid" ]; then
    return
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

# local_signal SIGNAL MEMBER…: to those that have not had it, then CONT, without which a stopped process never sees it.
# A last look at pid and start time keeps the time in which a pid could be reused to microseconds. Jobs' main processes come
# first: one that waits for a child would end by itself when that is gone, as if it had not been killed.
local_signal() {
  sd_signal=$1
  shift
  sd_members=''
  for sd_member; do
    recall "main_${sd_member##*:}"
    if [ "${sd_member%%:*}" = "$recalled" ]; then
      sd_members="$sd_member $sd_members"
    else
      sd_members="$sd_members $sd_member"
    fi
  done
  # shellcheck disable=SC2086
  set -- $sd_members
  for sd_member; do
    case $sd_member in
      container:*)
        # shellcheck disable=SC2086
        signal_box "$sd_signal" "${sd_member##*:}" $sd_members
        continue
        ;;
    esac
    IFS=:
    # shellcheck disable=SC2086
    set -- $sd_member
    IFS=$blanks
    recall "sent_$1"
    sd_had=$recalled
    if [ "$sd_signal" != 9 ] && [ "$sd_had" = "$2:$sd_signal" ]; then
      continue
    fi
    if alive "$1" "$2" && kill "-$sd_signal" "$1" 2>/dev/null; then
      [ "$sd_signal" = 9 ] || kill -s CONT "$1" 2>/dev/null
      [ "${sd_had%%:*}" = "$2" ] || signalled "$3"
      store "sent_$1" "$2:$sd_signal"
    fi
  done
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

# supervisors ID…: looks after those whose job is gone, into $closing. They end by themselves within milliseconds; one
# that has not after two seconds (it was stopped, or its disk is full) is ended too.
supervisors() {
  for sp_id; do
    recall "sup_$sp_id"
    sp_pid=$recalled
    recall "sup_start_$sp_id"
    sp_start=$recalled
    alive "$sp_pid" "$sp_start" || continue
    closing="$closing $sp_pid:$sp_start:$sp_id"
    case "$members_local " in
      *":$sp_id "*) continue ;;
    esac
    kill -s CONT "$sp_pid" 2>/dev/null
    recall "quiet_$sp_id"
    if [ -z "$recalled" ]; then
      store "quiet_$sp_id" "$clock"
    elif [ $((clock - recalled)) -ge 150 ]; then
      kill -s KILL "$sp_pid" 2>/dev/null
    fi
  done
}
