#!/bin/sh
# Removes the folders of ended jobs: clean_one ID for each, which decides, and clean_finish, which removes all of them by one rm. It leaves alone
# what runs or may yet start, whatever the laptop believes.
# shellcheck disable=SC2034,SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/tree.sh
. "$remote_program/lib/tree.sh"
cleaned=

# clean_unseen ID: of one whose folder is not there, or cannot be read.
clean_unseen() {
  if carries_cookie "$1"; then
    say "clean $1 running it still runs (pid $ck_pid), but its folder is not there or cannot be seen"
  elif unseen "$1"; then
    say "clean $1 failed $reason"
  elif [ -e "$jobs/$1" ] || [ -L "$jobs/$1" ]; then
    say "clean $1 failed $jobs/$1 is not a folder"
  else
    say "clean $1 none"
  fi
}

clean_one() {
  case $1 in
    *[!0-9a-f]* | '') give_up "'$1' is no job" ;;
  esac
  [ ${#1} = 32 ] || give_up "'$1' is no job"
  if [ -L "$jobs/$1" ] || ! facts "$1"; then
    clean_unseen "$1"
    return
  fi
  # The claim of an id keeps a start that is still on its way from starting: it stays for a minute.
  if [ "$f_end" = never ] && [ $(($(now) - ${f_ms:-0} / 1000)) -lt 60 ]; then
    say "clean $1 running it was given up less than a minute ago, and its start may still be on its way"
    return
  fi
  if [ "$f_end" != never ]; then
    state_of "$1" all
    if [ "$phase" = running ] && [ -n "$f_end" ]; then
      # its supervisor's last helper may live for a moment
      nap 0.3
      scanned=
      facts "$1" && state_of "$1" all
    fi
    case $phase in
      starting | queued | running)
        if [ "$phase$f_sup$pid" = starting ]; then
          # nothing of it lives; from now on nothing can begin, and the next job-clean removes it
          claim "$1"
          say "clean $1 running its start did not get far; try again in a minute"
          return
        fi
        cl_why='it still runs'
        [ -z "$f_end" ] || cl_why='a process of it still lives'
        say "clean $1 running $cl_why${pid:+ (pid $pid)}"
        return
        ;;
      unknown)
        say "clean $1 running $reason"
        return
        ;;
    esac
  fi
  leave_init_file "$jobs/$1"
  if box_of "$1"; then # what a restart of the server has left
    remove_box "$1"
    list_boxes "$1"
    case $boxes in
      *" $1:"*)
        say "clean $1 failed its container remote-$1 cannot be removed: does the engine answer?"
        return
        ;;
    esac
  fi
  cleaned="$cleaned $1"
}

clean_finish() {
  # shellcheck disable=SC2086  # ids, which clean_one has checked
  [ -z "$cleaned" ] || (cd -- "$jobs" && rm -rf -- $cleaned) 2>/dev/null
  for cl_id in $cleaned; do
    if ! [ -e "$jobs/$cl_id" ] || { cl_why=$(rm -rf -- "${jobs:?}/$cl_id" 2>&1) && ! [ -e "$jobs/$cl_id" ]; }; then
      drop_second "$cl_id"
      say "clean $cl_id removed"
    else
      say "clean $cl_id failed $(printf %s "${cl_why:-it is still there}" | head -n 1 | tr '\000-\037\177' '?')"
    fi
  done
  tree_program "$jobs" drop
  say end
}
