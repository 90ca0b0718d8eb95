#!/bin/sh
# Fails if a C++ file is not formatted by clang-format 14; other versions format differently.
# Usage: format.sh SOURCE_DIR; exit code 77: clang-format 14 is missing.
set -eu
cd -- "${1:?source folder}"
program=clang-format-14
command -v "$program" >/dev/null 2>&1 || program=clang-format
case $("$program" --version 2>/dev/null) in
  *' version 14.'*) ;;
  *) echo "clang-format 14 is not installed"; exit 77 ;;
esac
folders=src
for folder in include tests; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done
# shellcheck disable=SC2086 # separate words
find $folders -name '*.[ch]pp' -exec "$program" --dry-run -Werror {} +
echo "format: every C++ file is as clang-format makes it"
