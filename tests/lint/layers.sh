#!/bin/sh
# Fails if an include under src/ points upwards. Usage: layers.sh SOURCE_DIR
# Every layer may include itself and the layers and single headers listed here (see docs/architecture.md).
set -eu
cd -- "${1:?source folder}/src"
bad=0
check() { # check LAYER ALLOWED...
  layer=$1
  shift
  allowed=" $layer $* "
  # shellcheck disable=SC2044 # names in src have no blanks
  for file in $(find "$layer" -name '*.[ch]pp'); do
    # shellcheck disable=SC2013  # splitting is intended: names have no blanks
    for target in $(sed -n 's/^#include "\([a-z_]*\/[^"]*\)".*/\1/p' "$file"); do
      case $allowed in
        *" ${target%%/*} "* | *" $target "*) ;;
        *) echo "$file: layer '$layer' must not include '$target'"; bad=1 ;;
      esac
    done
  done
}
check base
check wire base
check rules wire base
check server base/shell_quote.hpp
check agent rules wire base
check config base
check ui base
check ssh base config server
check servers ssh config wire base server
check sandbox servers config wire base server
check jobs servers ssh config rules wire base server
check launch base
check project launch jobs servers ssh config rules wire base server
check cli project sandbox jobs/job_json.hpp config ui base
[ "$bad" = 0 ] && echo "layers: every include points downwards"
exit "$bad"
