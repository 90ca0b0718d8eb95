#!/bin/sh
# Runs one request, which comes on stdin as data (docs/protocol.md, Requests; src/servers/action.cpp writes it). POSIX sh: dash, bash
# and busybox ash alike. What the client runs here (program_command() in src/server/program.cpp) sources this, with
#   remote_program   the folder of this version of the program
#   remote_digest    its name: the SHA-256 digest of the archive that it came in
#   r_line           the first line of the request, if that was read already
# The lines of a request:
#   =NAME    sets a variable to the value that follows    -TEXT   a value
#   <FILE    sources this file of the program             +TEXT   the next line of the value before it
#   :NAME    calls a function with the words that follow  ~PATH   a value: a path, with ~/ for the home folder
#   .MODE    the end; stdin is then `null` (/dev/null), `open` (as it is), `data N` (the same: N bytes follow), or `guard` (lib/guard.sh);
#            `each`: the steps are done at once, and then once more for each line that comes
# Nothing runs before the last line is there, so a request that is cut off does nothing. No value is ever read as shell text.
# shellcheck disable=SC2034,SC2154

remote_count=0 remote_line='' remote_mode='' remote_data=0
remote_break='
'
while
  remote_line=${r_line-} r_line=
  [ -n "$remote_line" ] || IFS= read -r remote_line
do
  case $remote_line in
    [-=:\<]*) ;;
    '~~'*) remote_line=-$HOME${remote_line#'~~'} ;;
    +*)
      if [ -n "${remote_alone-}" ]; then
        # No process can be started, as was seen already; what needs none has no value of several lines.
        # shellcheck source=src/server/lib/room.sh
        . "$remote_program/lib/room.sh"
        cannot_start
      fi
      eval "remote_$remote_count=\$remote_$remote_count\$remote_break\${remote_line#+}"
      continue
      ;;
    *)
      remote_mode=$remote_line
      break
      ;;
  esac
  remote_count=$((remote_count + 1))
  eval "remote_$remote_count=\$remote_line"
done
case $remote_mode in
  .null) exec </dev/null ;;
  .open) ;;
  # its end may come late: the client keeps the channel's input open
  '.data '*) remote_data=${remote_mode#.data } ;;
  .each)
    # shellcheck source=src/server/lib/gpus.sh
    . "$remote_program/lib/gpus.sh"
    find_gpu_programs # once, and not for each look
    while :; do
      (
        exec </dev/null
        # shellcheck source=src/server/lib/steps.sh
        . "$remote_program/lib/steps.sh"
      )
      IFS= read -r remote_line || exit
    done
    ;;
  .guard)
    # shellcheck source=src/server/lib/guard.sh
    . "$remote_program/lib/guard.sh"
    ;;
  *) exit 1 ;;
esac
# shellcheck source=src/server/lib/steps.sh
. "$remote_program/lib/steps.sh"
