#!/bin/sh
# Starts a point of a sweep as a job: sh .../.jobs/.bin/DIGEST/lib/sweep_point.sh ID RETRY DEVICES, with the text of its job.sh on stdin. It is
# start.sh as a program, which sweep_runner.py runs, and answers like it. DEVICES: what is leased, which descriptor 7 holds (lib/lease.sh), or nothing.
# shellcheck disable=SC2034  # the functions are in what is sourced
jobs=${0%/.bin/*}
project=${jobs%/*}
remote_program=${0%/lib/*}
remote_digest=${remote_program##*/}
# shellcheck source=src/server/actions/start.sh
. "$remote_program/actions/start.sh"
job_head='' job_tail=''
point=$(cat; printf .)
exec </dev/null
start_begin
id=$1 retry=$2 devices=$3
set --
[ "$retry" = 0 ] || set -- "$@" retry "$retry
"
[ -z "$devices" ] || set -- "$@" devices "$devices"
start_one "$id" "${point%.}" local "$@"
start_finish
