# The last lines that a job wrote to its stderr: last_stderr LINES, of the job with this $folder, answers with "stderr |TEXT" for each. A
# line's end is cut off where it is longer than a terminal has room for.
# shellcheck shell=sh
# shellcheck disable=SC2154

last_stderr() {
  # what a login shell's start files printed may lack its last newline
  echo
  # and so may the job's last line; cut adds it
  tail -c 65536 "$folder/job.err" | tail -n "$1" | cut -b -2000 | LC_ALL=C sed 's/^/@remote1 stderr |/'
  echo '@remote1 end'
}
