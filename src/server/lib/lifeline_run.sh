# Runs a launch's lifeline. Part of start.sh, and of status.sh, which starts one again that has died.
# shellcheck shell=sh

# run_lifeline PYTHON PROGRAM ENDER: in the jobs' folder; both are files in .bin, and stdin is its request. Returns when the process
# stands by itself.
run_lifeline() {
  # as in any_python()
  rl_options='-B -S -I'
  [ -z "${PYTHONHOME-}" ] || rl_options='-B -S'
  # shellcheck disable=SC2086
  exec "$1" $rl_options "$PWD/.bin/$2" "$PWD" "$PWD/.bin/$3"
}
