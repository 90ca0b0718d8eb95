#!/bin/sh
# Compares files that came from another server with the digests of those on the laptop, and removes what differs:
# it then comes from the laptop. Set by the caller: PROJECT, and SUMS, which is "SHA256  NAME" lines.
# Answers with "@remote1 differs NAME" lines, then "@remote1 end"; or "@remote1 fail REASON".
: "${PROJECT:?}" "${SUMS?}"
LC_ALL=C
export LC_ALL

if command -v sha256sum >/dev/null 2>&1; then
  compare() { sha256sum -c 2>/dev/null; }
elif command -v shasum >/dev/null 2>&1; then
  compare() { shasum -a 256 -c 2>/dev/null; }
else
  echo "@remote1 fail it has neither sha256sum nor shasum"
  exit 0
fi
cd "$PROJECT" || exit 1
printf '%s' "$SUMS" | compare | while IFS= read -r line; do
  case $line in
    *': FAILED'*)
      name=${line%': FAILED'*}
      rm -f -- "$name"
      printf '@remote1 differs %s\n' "$name"
      ;;
  esac
done
echo "@remote1 end"
