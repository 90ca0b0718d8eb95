#!/bin/sh
# What a launch that stands still does on this server: sh .../.jobs/.bin/DIGEST/lib/evidence.sh SECONDS ID... is the action of `remote job-why`
# as a program, which the lifeline runs (lifeline_evidence.py). SECONDS are those between the looks.
# shellcheck disable=SC2034  # what is sourced uses them
jobs=${0%/.bin/*}
project=${jobs%/*}
remote_program=${0%/lib/*}
root='' env='' activate='' shm=/dev/shm
# shellcheck source=src/server/actions/why.sh
. "$remote_program/actions/why.sh"
# shellcheck source=src/server/actions/facts.sh
. "$remote_program/actions/facts.sh"
between=$1
shift
look_for_room
why_server
why_flight "$@"
stacks_begin
why_stacks 0 "$@"
why_look 0 "$@"
why_pause "$between"
why_look 1 "$@"
why_stacks 1 "$@"
say end
