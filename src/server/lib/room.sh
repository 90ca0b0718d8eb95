# Whether processes can be started. Part of every script about jobs, and of facts.sh. With `trap cannot_start EXIT`, a
# shell that ends because it could not start one says so.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables are shared between the parts
no_forks=

# look_for_room: whether this login can start processes, into $no_forks: empty where it can. A shell that cannot start one ends
# at once, or (bash) tries for 15 seconds, so it is found out beforehand: by the login's limit of processes and by that of
# the control group. Some room is needed, as a few run side by side.
look_for_room() {
  no_forks=
  lr_limit=
  while read -r lr_what lr_kind lr_limit _; do
    [ "$lr_what $lr_kind" != 'Max processes' ] || break
  done 2>/dev/null </proc/self/limits
  case $lr_limit in
    '' | *[!0-9]*) ;;
    *)
      # a quick look: no more threads than this are on the whole machine
      read -r _ _ _ lr_count _ 2>/dev/null </proc/loadavg
      lr_count=${lr_count#*/}
      if [ "${lr_count:-$lr_limit}" -ge $((lr_limit - 8)) ]; then
        lr_count=8
        for lr_dir in /proc/[0-9]*; do
          [ -O "$lr_dir" ] || continue
          for lr_task in "$lr_dir"/task/[0-9]*; do
            [ ! -O "$lr_task" ] || lr_count=$((lr_count + 1))
          done
        done
        [ $lr_count -lt "$lr_limit" ] || no_forks="the login's limit of $lr_limit processes (ulimit -u) is reached"
      fi
      ;;
  esac
  while IFS=: read -r _ lr_kind lr_path; do
    case ",$lr_kind," in
      ,,) lr_path=/sys/fs/cgroup$lr_path ;;
      *,pids,*) lr_path=/sys/fs/cgroup/pids$lr_path ;;
      *) continue ;;
    esac
    if read -r lr_limit <"$lr_path/pids.max" && read -r lr_count <"$lr_path/pids.current" &&
      [ "$lr_limit" != max ] && [ $((lr_count + 8)) -ge "$lr_limit" ]; then
      no_forks="the limit of $lr_limit processes of its control group is reached"
    fi
  done 2>/dev/null </proc/self/cgroup
}

cannot_start() {
  trap - EXIT
  [ -n "$no_forks" ] || look_for_room
  printf '@remote1 error it cannot start a process there: %s\n' "${no_forks:-no process can be started}"
  exit 1
}
