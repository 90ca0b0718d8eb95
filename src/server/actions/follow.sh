#!/bin/sh
# Follows one job: follow_job ID OUT ERR LINES FOLLOW [RANK]. job.out to stdout and job.err to stderr, from byte offsets
# (or, if LINES is not empty, the last LINES lines; @SECONDS: those of the last so many seconds), until the job has ended and all is read,
# or the channel's stdin comes to its end, because nobody follows any more: then nothing of this stays behind. FOLLOW is 1, 0 (stop at the end of what is there), or
# wait (send nothing, only end with the job). With RANK, it is the output of this rank of a launch under Slurm, which has files of its own.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"

# tail_offset FILE LINES: the offset at which the last lines begin, into $offset. Only the end of the file is read:
# in windows that grow until the lines fit.
tail_offset() {
  to_size=$(($(wc -c <"$1")))
  for to_window in 65536 4194304 268435456 "$to_size"; do
    [ "$to_window" -lt "$to_size" ] || to_window=$to_size
    to_bytes=$(($(tail -c "+$((to_size - to_window + 1))" "$1" | head -c "$to_window" | tail -n "$2" | wc -c)))
    [ "$to_bytes" -lt "$to_window" ] && break
    [ "$to_window" -lt "$to_size" ] || break
  done
  offset=$((to_size - to_bytes))
}

# since_offset FILE OFFSET TIME: into $offset where that begins which was written from TIME on (in seconds since the epoch): the begin of the
# line at OFFSET, or the file's end where it is older.
since_offset() {
  so_size=$(($(wc -c <"$1"))) offset=$2
  if [ "$(stat -c %Y "$1")" -lt "$3" ] || [ "$offset" -gt "$so_size" ]; then
    offset=$so_size
  elif [ "$offset" -gt 0 ] && [ -n "$(tail -c "+$offset" "$1" | head -c 1)" ]; then
    so_window=65536
    [ "$so_window" -lt "$offset" ] || so_window=$offset
    offset=$((offset - $(tail -c "+$((offset - so_window + 1))" "$1" | head -c "$so_window" | tail -n 1 | wc -c)))
  fi
}

# since_marks SECONDS: the newest lengths of the outputs that the lifeline noted (lifeline_job.py) before that, into $out and $err. Without such
# a note all of an output counts: rather too much than too little.
since_marks() {
  so_time=$(($(date +%s) - $1)) out=0 err=0
  # A line a 10 seconds at most, and some that a lifeline wrote which was started again.
  so_marks=$(tail -n "$(($1 / 10 + 10))" "$f_dir/marks" 2>/dev/null)
  while read -r so_ms so_out so_err; do
    case $so_ms$so_out${so_err:-none} in
      *[!0-9]*) continue ;;
    esac
    [ "$so_ms" -le "${so_time}000" ] || break
    out=$so_out err=$so_err
  done <<EOF
$so_marks
EOF
  since_offset "$out_file" "$out" "$so_time"
  out=$offset
  since_offset "$err_file" "$err" "$so_time"
  err=$offset
}

# Waits for the job's end. The supervisor holds a FIFO open for writing as long as it lives, so reading it costs
# nothing and ends with it. Where there is none, or the supervisor is dead and the job lives on: by looking.
wait_for_end() {
  if [ -p "$f_dir/.alive" ] && [ -n "$f_sup" ]; then
    if open_alive "$f_dir/.alive"; then
      while read -r _ <&5; do :; done
      exec 5<&-
    fi
  fi
  while facts "$id" && [ -z "$f_end" ]; do
    [ "$f_sup" != claimed ] || break
    state_of "$id" brief
    case $phase in
      gone | rebooted | ended) break ;;
    esac
    sleep 0.2 2>/dev/null || sleep 1
  done
}

# what_is_there FILE OFFSET: up to the end as it is now, into $there. A file may grow faster than it is read. Fails where there is nothing.
what_is_there() {
  there=$(($(wc -c <"$1")))
  if [ "$there" -le "$2" ]; then
    there=$2
    return 1
  fi
  tail -c "+$(($2 + 1))" "$1" | head -c "$((there - $2))"
}

# in_order: what is there of both outputs from $out and $err on, which go on behind it then. The one that was written last comes last: a traceback
# after the lines before it.
in_order() {
  # shellcheck disable=SC3013  # all shells here know -nt
  if [ "$out_file" -nt "$err_file" ]; then
    ! what_is_there "$err_file" "$err" >&2 || nap 0.05 # sshd reads the two pipes in turn
    err=$there
    what_is_there "$out_file" "$out"
    out=$there
  else
    ! what_is_there "$out_file" "$out" || nap 0.05
    out=$there
    what_is_there "$err_file" "$err" >&2
    err=$there
  fi
}

# copy_loop: two shared file offsets: cat goes on where the last cat stopped.
copy_loop() {
  while :; do
    last=$ended
    cat <&6 || break
    cat <&7 >&8 || break
    [ -z "$last" ] || break
    [ -n "$ended" ] || sleep 0.1 || [ -n "$ended" ] || sleep 1
  done
}

# watch_input PID…: ends these when the client closes the channel's stdin, or is gone.
watch_input() {
  while read -r _ <&3; do :; done
  kill "$@"
}

# rank_output RANK: the files of this rank, into $out_file and $err_file. One that has not begun yet will append to them.
rank_output() {
  # The agents of torchrun divide their output with the help of a program that the job may have been started without.
  if grep -q '^exec sh ./slurm_job.sh agents ' "$f_dir/batch.sh" && ! grep -q -e remote_torch_agent.py -e 'enable_stacks [^ ]* agent$' "$f_dir/job.sh"; then
    give_up "the output of job $id is not divided by ranks, as it was started without remote's startup file for Python"
  fi 2>/dev/null
  out_file=$f_dir/ranks/$1.out err_file=$f_dir/ranks/$1.err
  for ro_file in "$out_file" "$err_file"; do
    if [ -L "$ro_file" ] || { [ -e "$ro_file" ] && ! [ -f "$ro_file" ]; }; then
      give_up "$ro_file is no plain file"
    elif ! [ -e "$ro_file" ]; then
      [ -z "$f_end" ] || give_up "rank $1 of job $id has never begun"
      (umask 077 && mkdir -p "$f_dir/ranks" && command : >>"$ro_file") 2>/dev/null || give_up "cannot write in $f_dir: is the disk full?"
    fi
  done
}

# only_wait: ends with the job, and says nothing.
only_wait() {
  exec 2>/dev/null
  wait_for_end 3<&- >/dev/null &
  ender=$!
  watch_input $ender >/dev/null &
  watcher=$!
  trap 'kill $watcher' EXIT
  wait $ender
  exit 0
}

# copy_by_tail: tail goes on for as long as the process that waits for the end lives, and then reads to the end once more.
copy_by_tail() {
  wait_for_end 3<&- 8>&- >/dev/null &
  ender=$!
  tail -c "+$((out + 1))" -f --pid=$ender -s 0.02 "$out_file" 3<&- 8>&- &
  out_tail=$!
  tail -c "+$((err + 1))" -f --pid=$ender -s 0.02 "$err_file" >&8 3<&- 8>&- &
  err_tail=$!
  watch_input $ender $out_tail $err_tail 8>&- >/dev/null &
  watcher=$!
  exec 8>&-
  wait $out_tail $err_tail
}

# copy_by_cat: where tail cannot be told to stop with a process (busybox).
copy_by_cat() {
  command exec 6<"$out_file" 7<"$err_file" || exit 1
  dd bs=1 skip="$out" count=0 <&6
  dd bs=1 skip="$err" count=0 <&7
  {
    wait_for_end
    kill -s USR1 $$
  } 3<&- 6<&- 7<&- 8>&- >/dev/null &
  ender=$!
  watch_input $ender $$ 6<&- 7<&- 8>&- >/dev/null &
  watcher=$!
  copy_loop
}

follow_job() {
  exec 3<&0 </dev/null
  id=$1 out=$2 err=$3
  facts "$id" || give_up "the server has no job $id"
  if [ "$f_end" = never ] || ! [ -r "$f_dir/job.out" ] || ! [ -r "$f_dir/job.err" ]; then
    give_up "job $id was never started"
  fi
  out_file=$f_dir/job.out err_file=$f_dir/job.err
  [ -z "${6-}" ] || rank_output "$6"
  if [ "${4#@}" != "$4" ]; then
    since_marks "${4#@}"
  elif [ -n "$4" ]; then
    tail_offset "$out_file" "$4"
    out=$offset
    tail_offset "$err_file" "$4"
    err=$offset
  fi
  # On both streams: what comes before it on either is the login shell's.
  say "follow $out $err"
  { # what start files printed to stderr may lack its last newline too
    echo
    say "follow $out $err"
  } >&2
  [ "$5" != wait ] || only_wait
  in_order
  if [ "$5" = 0 ] || [ -n "$f_end" ]; then
    exit 0
  fi
  # From here on only the job's bytes may reach stderr, and no word of the shell or of tail.
  exec 8>&2 2>/dev/null
  ender='' out_tail='' err_tail='' ended=''
  trap 'kill $ender $out_tail $err_tail $watcher' EXIT
  trap 'exit 1' HUP TERM PIPE
  trap 'ended=1' USR1
  if tail --pid=$$ -s 0.02 -c 0 /dev/null >/dev/null; then
    copy_by_tail
  else
    copy_by_cat
  fi
  exit 0
}
