#!/bin/sh
# sample/run completes and leaves no process behind.
. "${0%/*}/support.sh"
TMPDIR=$work "$REMOTE_SOURCE_DIR/sample/run" >"$work/out" 2>&1 || fail "sample/run"
for text in 'test accuracy 9[5-9]' 'all ranks have the same parameters' 'succeeded'; do
  grep -q "$text" "$work/out" || fail "not in the output: $text"
done
for environment in /proc/[0-9]*/environ; do
  if tr "\0" "\n" 2>/dev/null <"$environment" | grep -q "^REMOTE_SANDBOX=$work/"; then
    fail "left behind: $environment: $(tr '\0' ' ' <"${environment%environ}cmdline")"
  fi
done
