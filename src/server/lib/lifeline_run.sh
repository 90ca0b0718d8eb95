# Runs a launch's lifeline. Part of start.sh, and of status.sh, which starts one again that has died.
# shellcheck shell=sh

# run_lifeline PYTHON PROGRAM ENDER: in the jobs' folder; stdin is its request. Returns when the process stands by itself.
run_lifeline() {
  # -S and -I: it needs the standard library alone. A Python that is told where that is, has to listen.
  rl_options='-S -I'
  [ -z "${PYTHONHOME-}" ] || rl_options=-S
  # shellcheck disable=SC2086
  exec "$1" $rl_options "$PWD/.bin/$2" "$PWD" "$PWD/.bin/$3"
}
