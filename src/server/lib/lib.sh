#!/bin/sh
# What every script of this folder begins with. POSIX sh: dash, bash and busybox ash alike. Composed in
# src/jobs/protocol.cpp, which sets $project and $jobs before it; docs/protocol.md tells the whole protocol.
# No process is started where a builtin does: on a busy server every fork costs a millisecond.
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts
LC_ALL=C
export LC_ALL
unset REMOTE_JOB_ID
scanned='' own_uid=''

# One line of the answer.
say() {
  printf '@remote1 %s\n' "$*"
}

# Ends the action with an error for the person at the laptop.
give_up() {
  trap - EXIT
  say "error $*"
  exit 1
}

# nap SECONDS: a part of one where sleep knows parts. SECONDS is 0.01 or more, with two digits behind the dot at most.
nap() {
  if [ -n "$no_forks" ]; then
    read_clock
    np_end=${1#0.}
    case $1 in
      *.?) np_end=${np_end}0 ;;
      *.*) ;;
      *) np_end=${1}00 ;;
    esac
    np_end=$((clock + ${np_end#0}))
    while [ "$clock" -lt $np_end ]; do
      read_clock
    done
    return
  fi
  sleep "$1" 2>/dev/null || sleep 1
}

now() {
  date +%s
}

# read_ms: milliseconds since the epoch into $ms, also where no process can be started.
read_ms() {
  if [ -n "$no_forks" ] || ! moment; then
    read_now
    ms=${now}000
  fi
}

# store NAME VALUE, and recall NAME into $recalled: variables whose names are made of a job's id or of a pid. Only here does a name become code,
# after a look at it; a value never does.
store() {
  case $1 in
    '' | [!a-z]* | *[!A-Za-z0-9_]*) return 1 ;;
  esac
  eval "$1=\$2"
}

recall() {
  recalled=
  case $1 in
    '' | [!a-z]* | *[!A-Za-z0-9_]*) return 1 ;;
  esac
  eval "recalled=\${$1-}"
}

# Hundredths of a second since the boot, into $clock: the wall clock may be set at any time.
read_clock() {
  read -r clock _ </proc/uptime
  clock=${clock%.*}${clock#*.}
}

# read_now: seconds since the epoch into $now, and those of the boot into $born.
read_now() {
  if [ -z "$no_forks" ] && now=$(date +%s); then
    return
  fi
  now=0
  while read -r rn_key born; do
    if [ "$rn_key" = btime ]; then
      read_clock
      now=$((born + clock / 100))
      return
    fi
  done 2>/dev/null </proc/stat
}

# What a login shell's start files printed may lack its last newline.
echo

[ -r /proc/self/stat ] || give_up "the server has no /proc: only Linux servers can run jobs"
boot=
read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id || boot=unknown

# stat_of PID: facts of a process from /proc/PID/stat, into st_*. Fails when there is none. The name in
# parentheses may itself hold blanks, parentheses and newlines.
stat_of() {
  st_line=
  {
    while IFS= read -r st_part || [ -n "$st_part" ]; do
      st_line="$st_line$st_part "
    done <"/proc/$1/stat"
  } 2>/dev/null
  stat_line "$st_line"
}

# stat_line TEXT: the same from the text of such a file.
stat_line() {
  case $1 in
    *' ('*') '?' '*) ;;
    *) return 1 ;;
  esac
  st_pid=${1%%' ('*}
  st_comm=${1#*' ('}
  st_comm=${st_comm%') '*}
  # what follows the last ") ", which is the first one but for odd names: ## takes dash a million steps
  st_rest=${1#*') '}
  case $st_rest in
    *') '*) st_rest=${1##*') '} ;;
  esac
  # shellcheck disable=SC2086
  set -- $st_rest
  [ $# -ge 31 ] || return 1
  case $st_pid$2$3$4${20} in
    *[!0-9]*) return 1 ;;
  esac
  st_state=$1 st_ppid=$2 st_pgrp=$3 st_sid=$4 st_start=${20} st_ignored=${31}
}

# alive PID START: whether that very process lives. A zombie does not; nor does a later process of that pid.
alive() {
  [ -n "$1" ] && stat_of "$1" && [ "$st_start" = "$2" ] || return 1
  case $st_state in
    [ZXx]) return 1 ;;
  esac
}

# facts ID: what the job's folder says, into f_*. An empty or half-written file counts as not there. Fails for a folder
# that is not to be seen.
facts() {
  f_dir=$jobs/$1
  f_sup='' f_sup_start='' f_boot='' f_sid='' f_pid='' f_pid_start='' f_end='' f_code='' f_ms='' f_by='' f_backend=local
  [ -d "$f_dir" ] && [ -x "$f_dir" ] || return 1
  [ ! -e "$f_dir/backend" ] || read -r f_backend 2>/dev/null <"$f_dir/backend" || f_backend=local
  read -r f_sup f_sup_start f_boot f_sid 2>/dev/null <"$f_dir/supervisor" || f_sup=''
  # job.pid is the name of labml_remote and of jobs that an older version started.
  read -r f_pid f_pid_start 2>/dev/null <"$f_dir/pid" || read -r f_pid f_pid_start 2>/dev/null <"$f_dir/job.pid" || f_pid=''
  read_end 2>/dev/null <"$f_dir/result" || ! second_file "$1.result" || read_end 2>/dev/null <"$second"
  # labml_remote's folders have neither of these
  if [ -z "$f_sup" ] && [ -n "$f_pid" ] && [ "$f_backend" = local ] && [ ! -e "$f_dir/job.sh" ]; then
    f_backend=labml f_sid=-
  fi
  return 0
}

# second_file NAME: whether there is such a file in the second place (second.sh), into $second.
second_file() {
  [ -n "$own_uid" ] || own_uid
  for sf_place in $places; do
    second=$sf_place/remote-$own_uid/$1
    if [ -f "$second" ] && ! [ -L "$second" ] && [ -O "$second" ] && ! [ -L "${second%/*}" ] && [ -O "${second%/*}" ]; then
      return 0
    fi
  done
  return 1
}

# drop_second ID: removes what the job has there.
drop_second() {
  for ds_name in result stop; do
    if second_file "$1.$ds_name"; then
      rm -f "$second"
      rmdir "${second%/*}" 2>/dev/null
    fi
  done
}

# state_of ID [HOW]: the phase of the job that facts has read, as its backend tells (docs/protocol.md), and with it pid,
# supervised, left, leftovers and reason. HOW is `brief` (starts no process, may overlook one) or `all` (a process of an ended job counts
# too). What takes long to find out is kept while $scanned is set.
state_of() {
  phase=unknown pid='' supervised=1 left='' leftovers='' reason=''
  if has_backend "$f_backend"; then
    "${f_backend}_state" "$@"
  else
    reason="this version of remote does not know its backend $f_backend"
  fi
}

# has_backend NAME: sources the backend when the first job needs it.
has_backend() {
  case $1 in
    '' | *[!a-z]*) return 1 ;;
  esac
  command -v "$1_state" >/dev/null && return
  [ -r "$remote_program/lib/backend_$1.sh" ] || return
  # shellcheck source=/dev/null
  . "$remote_program/lib/backend_$1.sh"
}

# unseen ID: whether it cannot be told that the job has no folder, because the project's is not there (moved, not mounted) or
# there is no right to look; why, into $reason.
unseen() {
  reason=
  if ! [ -d "$project" ]; then
    reason="cannot see the folder of the project, $project"
  else
    for un_dir in "$project" "$jobs" "$jobs/$1"; do
      [ -x "$un_dir" ] || ! [ -d "$un_dir" ] || reason="no right to look into $un_dir"
    done
  fi
  [ -n "$reason" ]
}

# plain TEXT: the text with a '?' for each control character, into $plain.
plain() {
  pl_rest=$1 plain=
  while [ -n "$pl_rest" ]; do
    pl_next=${pl_rest#?}
    pl_char=${pl_rest%"$pl_next"}
    case $pl_char in
      [[:cntrl:]]) plain="$plain?" ;;
      *) plain=$plain$pl_char ;;
    esac
    pl_rest=$pl_next
  done
}

# for_backend NAME ID: notes that the job is this backend's: in $ids_NAME, and its name in $used.
for_backend() {
  case " $used " in
    *" $1 "*) ;;
    *)
      has_backend "$1"
      used="$used $1"
      store "ids_$1" ''
      ;;
  esac
  recall "ids_$1"
  store "ids_$1" "$recalled $2"
}

# open_alive FILE: the job's FIFO as fd 5. The supervisor holds it open for writing as long as it lives. Fails where it is gone.
open_alive() {
  # opened for both first, or the open would wait when the supervisor is dead already
  { command exec 4<>"$1" && command exec 5<"$1" 4>&-; } 2>/dev/null
}

# claim ID: makes sure that the job never starts, unless its supervisor has already begun. The supervisor file
# is the lock: whoever creates it wins (the shell's noclobber is open(2) with O_EXCL).
claim() {
  if [ -n "$no_forks" ]; then
    create "$jobs/$1/supervisor" claimed || return 1
  else
    (
      umask 077
      mkdir -p "$jobs/$1"
      set -C
      printf 'claimed\n' >"$jobs/$1/supervisor"
    ) 2>/dev/null || return 1
  fi
  put_result "$1" never 0 claim
}

# create FILE TEXT: writes a file that is not there yet, without starting a process. From then on files are the owner's.
create() {
  umask 077
  set -C
  { printf '%s\n' "$2" >"$1"; } 2>/dev/null
  cr_status=$?
  set +C
  return $cr_status
}

# put_result ID KIND CODE BY [MS]: by rename, so that nobody reads half of it; in the second place, where the folder takes none.
put_result() {
  ms=${5-}
  [ -n "$ms" ] || read_ms
  end_record "$2" "$3" "$ms" "$4"
  if [ -n "$no_forks" ]; then
    create "$jobs/$1/result" "$end"
    return
  fi
  (
    umask 077
    printf '%s\n' "$end" >"$jobs/$1/.result.$$" && mv -f "$jobs/$1/.result.$$" "$jobs/$1/result"
  ) 2>/dev/null && return
  [ "$2" != never ] || return # a claim must be in the folder
  own_uid
  [ -e "$jobs/$1/job.sh" ] && write_second "$1.result" "$end"
}

# gpu_pids SECONDS: the processes that hold GPU memory, where there is a GPU to ask, into $gpu_pids.
gpu_pids() {
  gpu_pids=
  [ -z "$no_forks" ] || return 0
  command -v nvidia-smi >/dev/null 2>&1 || return 0
  gp_limit=
  command -v timeout >/dev/null 2>&1 && gp_limit="timeout $1"
  for gp_pid in $($gp_limit nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null); do
    case $gp_pid in
      *[!0-9]*) ;;
      *) gpu_pids="$gpu_pids $gp_pid" ;;
    esac
  done
}

# drop_raised: takes processes of other users out of $cookies, if this is root: a setuid program that they run is root's by its owner.
drop_raised() {
  [ "$cookies" != ' ' ] || return 0
  [ -n "$own_uid" ] || own_uid
  [ "$own_uid" = 0 ] || return 0
  dr_all=$cookies cookies=' '
  dr_files=
  for dr_word in $dr_all; do
    dr_files="$dr_files /proc/${dr_word%%:*}/status"
  done
  dr_own=' '
  # shellcheck disable=SC2013,SC2086
  for dr_file in $(grep -ls '^Uid:[[:space:]]*0[[:space:]]' $dr_files 2>/dev/null); do
    dr_own="$dr_own$dr_file "
  done
  for dr_word in $dr_all; do
    case $dr_own in
      *" /proc/${dr_word%%:*}/status "*) cookies="$cookies$dr_word " ;;
    esac
  done
}

# scan_cookies: " PID:ID PID:ID …" of this login's processes that carry a job's cookie, into $cookies. Another user's process
# may carry any variable, so it is nobody's. Only a whole variable counts, not one that mentions the cookie in its
# name or value. grep -z ends its lines with NUL bytes, which the shell drops. The lines from grep's stdin prove that this grep
# and this shell do so, and that it takes no line within a value for a variable; other servers have a slower way.
scan_cookies() {
  cookies=' '
  [ -z "$no_forks" ] || return # no builtin tells where a variable begins
  sc_cookie='REMOTE_JOB_ID=[0-9a-f]\{32\}'
  sc_proof=REMOTE_JOB_ID=00000000000000000000000000000000
  own_processes
  # shellcheck disable=SC2046,SC2086
  {
    sc_found=$(
      printf 'x\000%s\000y\n%s\nz\000%s\000' $sc_proof $sc_proof $sc_proof |
        grep -zaxsH "$sc_cookie" - $(printf '/proc/%s/environ ' $own_pids)
    )
  } 2>/dev/null
  sc_proof="(standard input):$sc_proof"
  sc_rest=${sc_found#"$sc_proof$sc_proof"}
  case "$sc_found:$sc_rest" in
    "$sc_proof$sc_proof$sc_rest:" | "$sc_proof$sc_proof$sc_rest:/proc/"*)
      sc_blanks=$IFS
      IFS=/
      for sc_word in $sc_rest; do
        case $sc_word in
          environ:*) cookies="$cookies$sc_pid:${sc_word##*=} " ;;
          *) sc_pid=$sc_word ;;
        esac
      done
      IFS=$sc_blanks
      ;;
    *)
      for sc_pid in $own_pids; do
        sc_file=/proc/$sc_pid/environ
        sc_text=
        {
          # read drops NUL bytes
          while IFS= read -r sc_part || [ -n "$sc_part" ]; do
            sc_text="$sc_text$sc_part "
          done <"$sc_file"
        } 2>/dev/null
        case $sc_text in
          *REMOTE_JOB_ID=*)
            sc_text=$(tr '\n\000' '?\n' 2>/dev/null <"$sc_file" | sed -n "/^$sc_cookie\$/{p;q;}")
            [ -z "$sc_text" ] || cookies="$cookies$sc_pid:${sc_text#*=} "
            ;;
        esac
      done
      ;;
  esac
  drop_raised
}

# carries_cookie ID [BESIDE]: whether a process of the job lives by its cookie, other than BESIDE and its children; into
# $ck_pid, and how many do, into $ck_count. The processes are looked at once, unless $scanned is cleared.
carries_cookie() {
  if [ -z "$scanned" ]; then
    scan_cookies
    scanned=1
  fi
  ck_count=0
  for ck_word in $cookies; do
    if [ "${ck_word#*:}" = "$1" ]; then
      ck_word=${ck_word%%:*}
      if [ "$ck_word" != $$ ] && [ "$ck_word" != "${2-}" ] && stat_of "$ck_word" && [ "$st_ppid" != "${2:--}" ]; then
        case $st_state in
          [ZXx]) ;;
          *) ck_pid=$ck_word ck_count=$((ck_count + 1)) ;;
        esac
      fi
    fi
  done
  [ $ck_count -gt 0 ]
}
