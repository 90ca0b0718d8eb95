#!/bin/sh
# Fails when a C++ file is not as clang-format makes it. Usage: format.sh SOURCE_DIR; exit code 77: no clang-format.
set -eu
cd -- "${1:?source folder}"
command -v clang-format >/dev/null 2>&1 || { echo "clang-format is not installed"; exit 77; }
folders=src
for folder in include tests; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done
# shellcheck disable=SC2086 # separate words
find $folders -name '*.[ch]pp' -exec clang-format --dry-run -Werror {} +
echo "format: every C++ file is as clang-format makes it"
