#!/bin/sh
# A sweep: sweep_begin LAUNCH starts the process that runs its points here, sweep_ask MODE LAUNCH looks at it, stops it or removes its folder. By
# python/sweep.py, which answers. Set before: activate, which enters the environment, for its Python. On stdin are $remote_data bytes for it.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/keep.sh
. "$remote_program/lib/keep.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
# shellcheck source=src/server/lib/gpus.sh
. "$remote_program/lib/gpus.sh"

sweep_python() {
  any_python "$activate" || give_up "a sweep needs Python 3.6 or newer here"
}

sweep_begin() {
  mask=$(umask)
  [ -d "$project" ] || mkdir -p "$project" 2>/dev/null || give_up "cannot make the folder $project"
  umask 077
  keep_program
  own_folder .sweeps
  sweep_python
  sw_path=$(find_gpu_programs && printf %s "$PATH")
  # shellcheck disable=SC2086
  "$python" $python_options "$kept/python/sweep.py" begin "$jobs" "$1" "$remote_data" "$mask" "$sw_path" || exit
  say end
}

sweep_ask() {
  sweep_python
  umask 077
  # shellcheck disable=SC2086
  "$python" $python_options "$remote_program/python/sweep.py" "$1" "$jobs" "$2" "$remote_data" || exit
  say end
}
