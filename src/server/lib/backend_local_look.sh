# The backend `local`: one look at the processes that may be of its jobs.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC3013  # variables are shared between the parts; all shells here know -ef

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
    if [ "${recalled%%:*}" != "$round" ]; then
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
    [ "${recalled%%:*}" = "$round" ] || [ ! -O "/proc/$vi_pid" ] || wr_pids="$wr_pids $vi_pid"
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
