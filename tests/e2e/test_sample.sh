#!/bin/sh
# sample/run goes the whole way and leaves no process behind.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TMPDIR=$work "$REMOTE_SOURCE_DIR/sample/run" >"$work/log" 2>&1 || { cat "$work/log"; echo "sample/run failed"; exit 1; }
for text in 'test accuracy 9[5-9]' 'all ranks have the same parameters' 'succeeded'; do
  grep -q "$text" "$work/log" || { cat "$work/log"; echo "not in the output: $text"; exit 1; }
done
for environment in /proc/[0-9]*/environ; do
  if tr '\0' '\n' <"$environment" 2>/dev/null | grep -q "^REMOTE_SANDBOX=$work/"; then
    echo "left behind: $environment: $(tr '\0' ' ' <"${environment%environ}cmdline")"
    exit 1
  fi
done
