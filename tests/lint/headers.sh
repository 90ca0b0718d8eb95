#!/bin/sh
# Fails unless each public header compiles alone and includes only the standard library and other public headers.
# Usage: headers.sh SOURCE_DIR
set -eu
cd -- "${1:?source folder}"
bad=0
for header in include/remote/*.hpp; do
  foreign=$(grep -nE '^ *#include' "$header" | grep -vE '#include <(remote/[a-z_]+\.hpp|[a-z_]+)>' || true)
  if [ -n "$foreign" ]; then
    printf '%s\n  %s: only the standard library and <remote/...> may be included\n' "$foreign" "$header"
    bad=1
  fi
  "${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Iinclude -include "$header" -x c++ /dev/null || bad=1
done
[ "$bad" = 1 ] || echo "headers: each public header compiles alone"
exit "$bad"
