#!/bin/sh
# The tree of a frozen launch: tree_make DIGEST makes it from the project's folder, by python/tree.py, which answers. Set before:
# activate, which enters the environment, for its Python. On stdin are $remote_data bytes: the list of the files, or an empty line: that which was kept.
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/keep.sh
. "$remote_program/lib/keep.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"

tree_make() {
  [ -d "$project" ] || {
    say "tree unknown"
    say end
    return 0
  }
  umask 077
  own_folder .trees
  python=$(
    exec 2>/dev/null
    new_python || {
      eval "$activate" >/dev/null
      new_python
    } && command -v "$python"
  ) || give_up "a frozen launch needs Python 3.6 or newer here"
  "$python" -B -I -S "$remote_program/python/tree.py" make "$jobs" "$1" "$python" "$remote_data" ||
    give_up "the program that makes the tree failed"
  say end
}
