#!/bin/sh
# Fails if shellcheck finds a problem in a shell script. Usage: shell.sh SOURCE_DIR; exit code 77: shellcheck is
# missing.
set -eu
cd -- "${1:?source folder}"
command -v shellcheck >/dev/null 2>&1 || { echo "shellcheck is not installed"; exit 77; }
count=0
bad=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT
find .ci sample scripts src tests -type f ! -name '*.[ch]pp' >"$list"
while IFS= read -r file; do
  first=$(head -n 1 "$file" | tr -d '\0')
  case $file:$first in
    *:'#!'*/sh | *:'#!'*bash) dialect= ;;
    *.bash:*) dialect=-sbash ;; # completion, which bash sources
    *.sh:*) dialect=-ssh ;; # scripts for servers are sent over stdin and have no shebang line
    *) continue ;;
  esac
  count=$((count + 1))
  shellcheck -x -P SCRIPTDIR -P . ${dialect:+"$dialect"} "$file" || bad=1
done <"$list"
[ "$count" -gt 0 ] || { echo "shell: no scripts found"; exit 1; }
[ "$bad" = 1 ] || echo "shell: $count scripts are clean"
exit "$bad"
