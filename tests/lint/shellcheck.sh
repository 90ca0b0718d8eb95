#!/bin/sh
# Every sh script of the repository under shellcheck. Usage: shellcheck.sh SOURCE_DIR. 77: there is no shellcheck.
set -eu
cd "${1:?source folder}"
command -v shellcheck >/dev/null 2>&1 || {
  echo "shellcheck is not installed"
  exit 77
}
set --
for file in src/scripts/*.sh tests/*.sh tests/*/*.sh tests/run tests/fuzz/run sample/run sample/*.sh .ci/run .ci/*.sh; do
  if [ -f "$file" ] && head -n 1 "$file" | grep -q '^#!.*sh'; then
    set -- "$@" "$file"
  fi
done
shellcheck -x -P SCRIPTDIR "$@"
echo "shellcheck: $# scripts are clean"
