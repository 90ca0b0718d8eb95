#!/bin/sh
# Checks the manual pages with mandoc and man.
. "${0%/*}/support.sh"
"$REMOTE" __manual "$work/pages"
command -v mandoc >/dev/null || skip "no mandoc"
mandoc -Tlint -W warning "$work"/pages/man?/* >"$work/out" 2>&1 || fail "mandoc is not content"
if command -v man >/dev/null && command -v groff >/dev/null; then
  for page in "$work"/pages/man?/*; do
    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>"$work/err" || fail "man ${page##*/}"
    [ ! -s "$work/err" ] || fail "man warns of ${page##*/}"
  done
fi
# The same date gives the same bytes.
SOURCE_DATE_EPOCH=1700000000 "$REMOTE" __manual "$work/one"
SOURCE_DATE_EPOCH=1700000000 "$REMOTE" __manual "$work/two"
diff -r "$work/one" "$work/two" || fail "two manuals of one date differ"
grep -q '^.TH REMOTE 1 2023-11-14 ' "$work/one/man1/remote.1" || fail "the page has not the date that was given"
echo "the manual is well written"
