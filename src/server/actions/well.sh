# well: somebody says that this server, which a launch has left out as sick (lifeline_acts.py), is well.
# shellcheck shell=sh
# shellcheck disable=SC2154

well() {
  if rm -f "$jobs/.sick" 2>/dev/null; then
    echo '@remote1 end'
  else
    echo "@remote1 error cannot remove $jobs/.sick"
  fi
}
