#!/bin/sh
# Fails if processors, memory or GPUs are counted anywhere else than in the files below. Usage: counts.sh SOURCE_DIR
# The resources that ranks may use on a server are counted in src/rules/usable.cpp, so that launches, leases and reports
# agree. A separate count would miss quotas, hidden GPUs or a vendor.
set -eu
cd -- "${1:?source folder}"
bad=0
# only WHAT PATTERN FILE...: exactly these files in src and include contain the pattern. Comments do not count.
only() {
  what=$1 pattern=$2
  shift 2
  found=$(grep -rnE --include='*.cpp' --include='*.hpp' --include='*.py' --include='*.sh' -e "$pattern" src include |
    grep -vE '^[^:]*:[0-9]*: *(//|#)' | sed 's/^\([^:]*:[0-9]*:\)\(.*[^ :"]\)  *\/\/ .*/\1\2/' | grep -E -e "$pattern" | cut -d : -f 1 | sort -u)
  for file in $found; do
    case " $* " in
      *" $file "*) ;;
      *) echo "$file: counts $what; use src/rules/usable.hpp, or add it to tests/lint/counts.sh if it does something else"; bad=1 ;;
    esac
  done
  for file in "$@"; do
    case "
$found
" in
      *"
$file
"*) ;;
      *) echo "tests/lint/counts.sh: $file no longer counts $what"; bad=1 ;;
    esac
  done
}
only 'processors' '_SC_NPROCESSORS|sched_getaffinity|CPU_COUNT|hardware_concurrency|get_nprocs|cpu_count\(' \
  src/agent/unused_parts.cpp # replaces a function of the C library
only 'processors and memory of the machine' 'MemTotal|MemAvailable|Cpus_allowed|/proc/cpuinfo|sysinfo\(|_SC_PHYS_PAGES' \
  src/agent/facts/machine.cpp \
  src/server/python/burn.py # the processor name
only 'limits of control groups' 'cpu\.max|cpu\.cfs_quota|memory\.max"|memory\.limit_in_bytes' \
  src/agent/facts/cgroups.cpp \
  src/agent/stacks/launch_sample.cpp # whether a rank is throttled
only 'by the limits of the login' '\.(usable_threads|cpu_limit|memory_limit)\>' \
  src/agent/facts/machine.cpp \
  src/agent/lease/lease_machine.cpp \
  src/cli/show/facts.cpp \
  src/project/check/judge_machine.cpp \
  src/rules/usable.cpp \
  src/servers/facts.cpp
only 'GPUs of one vendor' '[=!]= *(remote::)?GpuVendor::|vendor *[=!]=' \
  src/agent/facts/facts.cpp \
  src/agent/lease/lease_machine.cpp \
  src/project/check/judge_server.cpp \
  src/rules/usable.cpp
only 'visible GPUs' '"(CUDA|HIP|ROCR)_VISIBLE_DEVICES"' \
  src/agent/lease/lease_machine.cpp \
  src/config/server.cpp \
  src/launch/host_filter.cpp \
  src/project/check/judge_launch.cpp \
  src/project/launch_plan.cpp \
  src/rules/usable.cpp \
  src/rules/usable.hpp
[ "$bad" = 0 ] && echo "counts: processors, memory and GPUs are counted in one place"
exit "$bad"
