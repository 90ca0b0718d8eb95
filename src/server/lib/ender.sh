#!/bin/sh
# Ends jobs: sh .../.jobs/.bin/ender-DIGEST.sh SIGNAL GRACE_S BY ID... It is kill.sh as a program, which the lifeline runs.
# shellcheck disable=SC2034  # the functions are in what is included
jobs=${0%/.bin/*}
project=${jobs%/*}
#include lib.sh
#include room.sh
#include processes.sh
#include second.sh
#include init_file.sh
#include container.sh
#include backends
#include kill.sh
kill_begin "$1" "$2" "$3"
shift 3
for asked; do
  kill_one "$asked" 0
done
kill_finish
