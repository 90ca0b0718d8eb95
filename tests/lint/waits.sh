#!/bin/sh
# Tests must wait for conditions. A fixed time needs a comment next to it that says why the time itself is under test.
# Usage: waits.sh SOURCES
set -eu
cd "$1"
found=$(
  find tests -name '*.cpp' -o -name '*.hpp' | sort | while read -r file; do
    # Sleeps, and limits on durations
    awk -v file="$file" '
      function tell() { if (found != "" && !/\/\//) print found; found = "" }
      { tell() }
      /(sleep_for\(|(^|[^_.a-z])u?sleep\([^)]|poll\(nullptr, 0)/ ||
      /(EXPECT|ASSERT)_L[TE]\(.*(now\(\)|clock\(\)|took|whole|seconds\(\)).*, .*([0-9]m?s[^a-z]|seconds\([0-9]|[0-9]\))/ {
        if (!/\/\// && before !~ /\/\//) found = file ":" FNR ":" $0
      }
      { before = $0 }
      END { if (found != "") print found }' "$file"
  done
  # In end-to-end tests, a separate command that is not in a loop
  for file in tests/e2e/*.sh; do
    awk -v file="$file" '
      /(until|while) / { loop = FNR }
      /^ *sleep [0-9]/ && !/#/ && FNR > loop + 5 { print file ":" FNR ":" $0 }' "$file"
  done
)
[ -z "$found" ] || {
  printf '%s\nWait for a condition (eventually, until_true), compare with test::patience, or say beside it why it is a time.\n' "$found"
  exit 1
}
