#!/bin/sh
# Ends jobs, and fails where something of them is left: sh .../.jobs/.bin/DIGEST/lib/ender.sh SIGNAL GRACE_S BY ID... It is kill.sh as a program, which the lifeline runs.
# shellcheck disable=SC2034  # the functions are in what is sourced
jobs=${0%/.bin/*}
project=${jobs%/*}
remote_program=${0%/lib/*}
# shellcheck source=src/server/actions/kill.sh
. "$remote_program/actions/kill.sh"
kill_begin "$1" "$2" "$3"
shift 3
for asked; do
  kill_one "$asked" 0
done
kill_finish
[ -z "$kill_left" ]
