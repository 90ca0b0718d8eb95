#!/bin/sh
# Runs clang-tidy over src, newest changes first, for a limited time. Fails if it finds a problem; prints how many files
# were not checked in time. Usage: tidy.sh BUILD_DIR SECONDS JOBS
set -eu
build=${1:?build folder}
seconds=${2:?seconds}
jobs=${3:?jobs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export build work

# Recently changed files come first, so that a change is checked even when time is short.
{
  git diff --name-only HEAD 2>/dev/null || true
  git log -30 --format= --name-only 2>/dev/null || true
  find src -name '*.cpp'
} | grep '^src/.*\.cpp$' | awk '!seen[$0]++' | while IFS= read -r file; do
  [ ! -f "$file" ] || printf '%s\n' "$file"
done >"$work/files"

# shellcheck disable=SC2016 # the inner shell expands these
timeout "$seconds" xargs -a "$work/files" -P "$jobs" -n 1 sh -c '
  log=$work/$(printf %s "$1" | tr / _)
  if clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p "$build" "$1" >"$log.out" 2>&1; then
    : >"$log.well"
  else
    grep -v "warnings generated" "$log.out"
    : >"$log.bad"
  fi' sh || true
count() { find "$work" -name "*.$1" | wc -l; }
echo "clang-tidy: $(count well) files are clean, $(count bad) are not, of $(wc -l <"$work/files") in src"
[ "$(count bad)" -eq 0 ] && [ "$(count well)" -gt 0 ]
