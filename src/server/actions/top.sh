#!/bin/sh
# A server at a moment, for `remote top` and `remote servers`. Set before this text: project, its folder. Lines:
#   @remote1 load CPUS LOAD BUSY TOTAL      processors, load of the last minute, ticks since the start: busy, all
#   @remote1 memory TOTAL AVAILABLE         KiB
#   @remote1 disk TOTAL FREE                KiB of the file system with the project's folder
#   @remote1 last ID |LINE                  what a job wrote last
# No process is started where a builtin does: this runs every second or two.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/gpus.sh
. "$remote_program/lib/gpus.sh"

top_host() {
  LC_ALL=C
  export LC_ALL
  # What a login shell's start files printed may lack its last newline.
  echo
  th_load=0 th_cpus=0 th_busy=0 th_total=0
  read -r th_load _ 2>/dev/null </proc/loadavg
  while read -r th_key th_user th_nice th_system th_idle th_wait th_irq th_soft th_steal _; do
    case $th_key in
      cpu)
        th_busy=$((th_user + th_nice + th_system + ${th_irq:-0} + ${th_soft:-0} + ${th_steal:-0}))
        th_total=$((th_busy + th_idle + ${th_wait:-0}))
        ;;
      cpu[0-9]*) th_cpus=$((th_cpus + 1)) ;;
      *) break ;;
    esac
  done 2>/dev/null </proc/stat
  [ $th_cpus -gt 0 ] || th_cpus=1
  printf '@remote1 load %s %s %s %s\n' $th_cpus "${th_load:-0}" $th_busy $th_total
  th_memory='' th_available=''
  while read -r th_key th_value _; do
    case $th_key in
      MemTotal:) th_memory=$th_value ;;
      MemAvailable:) th_available=$th_value && break ;;
    esac
  done 2>/dev/null </proc/meminfo
  [ -z "$th_available" ] || printf '@remote1 memory %s %s\n' "$th_memory" "$th_available"
  th_place=$project
  [ -d "$th_place" ] || th_place=$HOME
  # "Filesystem 1024-blocks Used Available …"; a device's name may hold blanks, so it is read from the end
  th_disk=$(df -P -k "$th_place" 2>/dev/null) || return 0
  th_disk=${th_disk##*
}
  th_disk=${th_disk%%%*}
  set -f
  # shellcheck disable=SC2086
  set -- $th_disk
  set +f
  while [ $# -gt 4 ]; do
    shift
  done
  # now: blocks, used, available, percent
  case "$#${1-}${3-}" in
    4*[!0-9]*) ;;
    4*) printf '@remote1 disk %s %s\n' "$1" "$3" ;;
  esac
}

# top_lines ID…: what these jobs wrote last.
top_lines() {
  for tl_id; do
    tl_file=$jobs/$tl_id/job.out
    # shellcheck disable=SC3013  # dash, bash and busybox have it
    [ "$jobs/$tl_id/job.err" -nt "$tl_file" ] && [ -s "$jobs/$tl_id/job.err" ] && tl_file=$jobs/$tl_id/job.err
    [ -s "$tl_file" ] || continue
    # progress bars end their lines with a carriage return
    tl_text=$(tail -c 400 "$tl_file" 2>/dev/null | tr '\r\000' '\n ' | sed -n -e '/[^[:space:]]/h' -e '${' -e x -e p -e '}')
    [ -z "$tl_text" ] || printf '@remote1 last %s |%s\n' "$tl_id" "$tl_text"
  done
}

top_end() {
  printf '@remote1 end\n'
}
