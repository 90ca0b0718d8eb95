# Tells whom $request names (docs/protocol.md) that this is a test: notify_test answers "notify sent TEXT" or "notify failed TEXT", where TEXT is
# what came back, or why nobody was told. $activate is sh text that enters the Python environment.
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"

notify_test() {
  # what a login shell's start files printed may lack its last newline
  echo
  if new_python || python=$(
    eval "$activate" >/dev/null 2>&1
    new_python && command -v "$python"
  ); then
    # secrets are in no argument
    printf '%s' "$request" | "$python" -B -S -I "$remote_program/python/lifeline_news.py" 2>/dev/null ||
      echo '@remote1 notify failed its program did not run'
  else
    echo '@remote1 notify failed there is no Python of 3.6 or later'
  fi
  echo '@remote1 end'
}
