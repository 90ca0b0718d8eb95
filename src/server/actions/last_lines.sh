# The last lines that a job wrote: last_lines COUNT FILE..., of files in the job's $folder, answers with "line |TEXT" for each. Of a progress bar
# its last state counts. A line's end is cut off where it is longer than a terminal has room for. What earlier attempts wrote does not count
# (docs/resilience.md).
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/attempts.sh
. "$remote_program/lib/attempts.sh"

last_lines() {
  # what a login shell's start files printed may lack its last newline
  echo
  ll_count=$1
  ll_cr=$(printf '\r')
  shift
  for ll_file; do
    [ -f "$folder/$ll_file" ] || continue
    # and so may the job's last line; cut adds it
    tail -c 65536 "$folder/$ll_file" | tail -n "$ll_count" |
      of_last_attempt | LC_ALL=C sed "s/.*$ll_cr\\(.\\)/\\1/" | cut -b -2000 |
      LC_ALL=C sed 's/^/@remote1 line |/'
  done
  echo '@remote1 end'
}
