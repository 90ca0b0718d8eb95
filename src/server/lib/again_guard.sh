#!/bin/sh
# Holds a job to its lease (docs/resilience.md): sh .../.jobs/.bin/DIGEST/lib/again_guard.sh ID LEASE_S HUB. Ranks whose lease is over are ended
# here, also when the lifeline of this server is dead. Where that stays dead, the job is over.
# shellcheck disable=SC2034,SC2154
jobs=${0%/.bin/*}
project=${jobs%/*}
remote_program=${0%/lib/*}
no_forks=
# shellcheck source=src/server/lib/lib.sh
. "$remote_program/lib/lib.sh"
exec 2>/dev/null
trap : HUP INT TERM
cd "$jobs/$1" || exit
read_clock
until=$((clock + $2 * 100))
last=
while [ ! -e result ] && [ -e job.sh ]; do
  sleep 1
  lease=
  read -r lease <./lease
  case $lease in
    '' | *[!0-9]*) ;;
    *) until=$lease ;;
  esac
  read_clock
  [ "$clock" -gt "$until" ] || continue
  number=1 ended=
  read -r _ number <./attempt
  read -r ended _ <./ended
  [ -e attempt ] || [ ! -e spare ] || ended=1 # it has no ranks yet
  if [ "$number" != "$ended" ] && [ $((clock - ${last:-0})) -gt 500 ]; then
    sh "$remote_program/lib/ender.sh" 15 5 again "$1"
    read_clock
    last=$clock
  fi
  pid=
  read -r pid start _ <lifeline.pid
  if [ "$clock" -gt $((until + $2 * 200)) ] && { [ -z "$pid" ] || ! alive "$pid" "$start"; }; then
    sh "$remote_program/lib/ender.sh" 15 5 "lost:$3" "$1"
    exit
  fi
done
