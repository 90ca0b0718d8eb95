#!/bin/sh
# How many processes the kernel's out-of-memory killer has ended, into $oom: in this cgroup if it says so, else on the
# whole machine; empty if nothing tells. Part of start.sh (the count before) and of supervisor.sh (the count after).
# shellcheck disable=SC2034

# oom_source: the file that counts, into $oom_file.
oom_source() {
  oom_file=/proc/vmstat
  while read -r oom_line; do
    case $oom_line in
      0::*)
        if [ -r "/sys/fs/cgroup${oom_line#0::}/memory.events" ]; then
          oom_file=/sys/fs/cgroup${oom_line#0::}/memory.events
        fi
        ;;
    esac
  done 2>/dev/null </proc/self/cgroup
}

oom_kills() {
  oom=$(grep '^oom_kill ' "$oom_file" 2>/dev/null)
  oom=${oom#oom_kill }
}
