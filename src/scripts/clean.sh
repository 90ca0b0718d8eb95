#!/bin/sh
# Removes the folders of ended jobs: clean_begin, clean_one ID for each, clean_finish. What runs, or may start yet,
# is left alone whatever the laptop believes of it.
# shellcheck disable=SC2154

clean_begin() {
  scanned=
}

# left_of ID: a living process of the job other than its supervisor, into $ck_pid.
left_of() {
  if [ -z "$scanned" ]; then
    scan_cookies
    scanned=1
  fi
  cookie_pid "$1" "$f_sup"
}

clean_one() {
  case $1 in
    *[!0-9a-f]* | '') give_up "'$1' is no job" ;;
  esac
  [ ${#1} = 32 ] || give_up "'$1' is no job"
  if [ -L "$jobs/$1" ] || ! facts "$1"; then
    if [ -e "$jobs/$1" ] || [ -L "$jobs/$1" ]; then
      say "clean $1 failed $jobs/$1 is not a folder"
    else
      say "clean $1 none"
    fi
    return
  fi
  # The claim of an id keeps a start that is still on its way from starting: it stays for a minute.
  if [ "$f_end" = never ] && [ $(($(now) - f_ended)) -lt 60 ]; then
    say "clean $1 running it was given up less than a minute ago, and its start may still be on its way"
    return
  fi
  if [ "$f_end" != never ] && { [ -z "$f_boot" ] || [ "$f_boot" = "$boot" ]; }; then
    if [ -z "$f_end" ] && alive "$f_sup" "$f_sup_start"; then
      say "clean $1 running it still runs (pid ${f_pid:-$f_sup})"
      return
    fi
    if [ -z "$f_end" ] && alive "$f_pid" "$f_pid_start"; then
      say "clean $1 running it still runs (pid $f_pid)"
      return
    fi
    if left_of "$1"; then
      # its supervisor's last helper may live for a moment
      sleep 0.3 2>/dev/null || sleep 1
      scanned=
      if left_of "$1"; then
        say "clean $1 running a process of it still lives (pid $ck_pid)"
        return
      fi
    fi
    if [ -z "$f_end" ] && [ -z "$f_sup" ]; then
      # nothing of it lives; from now on nothing can begin, and the next job-clean removes it
      claim "$1"
      say "clean $1 running its start did not get far; try again in a minute"
      return
    fi
  fi
  if cl_why=$(rm -rf -- "${jobs:?}/$1" 2>&1) && ! [ -e "$jobs/$1" ]; then
    say "clean $1 removed"
  else
    say "clean $1 failed $(printf %s "${cl_why:-it is still there}" | head -n 1 | tr '\000-\037\177' '?')"
  fi
}

clean_finish() {
  say end
}
