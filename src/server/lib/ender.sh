#!/bin/sh
# Ends jobs, and fails where something of them is left: sh .../.jobs/.bin/DIGEST/lib/ender.sh SIGNAL GRACE_S BY ID... It is kill.sh as a program.
# Without words they come on stdin, a line each and an empty one at their end: the lifeline starts it before it is needed, because on slow
# storage its files take long to open.
# shellcheck disable=SC2034  # the functions are in what is sourced
jobs=${0%/.bin/*}
project=${jobs%/*}
remote_program=${0%/lib/*}
# shellcheck source=src/server/actions/kill.sh
. "$remote_program/actions/kill.sh"
if [ $# = 0 ]; then
  while :; do
    IFS= read -r word || exit 1
    [ -n "$word" ] || break
    set -- "$@" "$word"
  done
  exec </dev/null
fi
kill_begin "$1" "$2" "$3"
shift 3
for asked; do
  kill_one "$asked" 0
done
kill_finish
[ -z "$kill_left" ]
