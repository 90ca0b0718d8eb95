#!/bin/sh
# Brings a debugger that waits in a job to the terminal that this runs on, behind lib/tty.sh: attach_job ID NAME, of which NAME is that of
# its socket (debugger.py). The exit code is attach.py's. Set before: activate, the sh text that enters the project's Python environment.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"

attach_job() {
  case $2 in
    *[!0-9.]* | '') exit 13 ;;
  esac
  [ -S "$jobs/$1/debug/$2.sock" ] || exit 13
  new_python || {
    eval "$activate" >/dev/null 2>&1
    new_python || {
      echo 'remote: there is no Python 3.6 or newer on this server for attach' >&2
      exit 1
    }
  }
  exec "$python" -B -I "$remote_program/python/attach.py" "$jobs/$1/debug/$2.sock"
}
