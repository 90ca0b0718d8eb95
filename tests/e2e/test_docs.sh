#!/bin/sh
# Runs the console blocks of the docs, except those that say why not.
. "${0%/*}/support.sh"
runner="$REMOTE_SOURCE_DIR/tests/e2e/docs.py"
# So that the blocks find the program by its name, and Python's jobs the right one.
mkdir "$work/bin" "$work/pages"
ln -s "$REMOTE" "$work/bin/remote"
PATH="$work/bin:$PATH"
COLUMNS=200
export PATH COLUMNS
clean_up() {
  for folder in "$work/pages"/*/; do
    [ ! -d "$folder/.remote/sandbox" ] || "$REMOTE" --quiet --project "$folder" sandbox down
  done
}
find "$REMOTE_SOURCE_DIR/docs" "$REMOTE_SOURCE_DIR/README.md" "$REMOTE_SOURCE_DIR/CONTRIBUTING.md" "$REMOTE_SOURCE_DIR/python/README.md" \
  "$REMOTE_SOURCE_DIR/sample/README.md" -name '*.md' | sort >"$work/list"
tr '\n' '\0' <"$work/list" | xargs -0 python3 "$runner" --check || fail "blocks without a reason why they are not run"
run=0
while read -r page; do
  python3 "$runner" --runs "$page" || continue
  run=$((run + 1))
  folder="$work/pages/my page $run"
  mkdir "$folder"
  cp "$REMOTE_SOURCE_DIR/sample/tiny/train.py" "$folder/"
  (cd "$folder" && python3 "$runner" "$page") >"$work/out" 2>"$work/err" || fail "$page"
  cat "$work/out"
done <"$work/list"
[ "$run" -ge 6 ] || fail "only $run pages have commands that are run"

# The pictures show the output of commands: each can be made again.
if python3 -c 'import pyte' 2>/dev/null; then
  mkdir "$work/pictures"
  python3 "$REMOTE_SOURCE_DIR/docs/pictures/make" "$REMOTE" "$work/pictures" >"$work/out" 2>"$work/err" || fail "docs/pictures/make"
  for picture in "$REMOTE_SOURCE_DIR"/docs/pictures/*.svg; do
    made="$work/pictures/${picture##*/}"
    python3 -c 'import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])' "$made" || fail "${picture##*/} is not made, or no XML"
    # The command lines are the same as in the picture of the docs.
    grep -o '>remote [a-z][^<]*' "$made" | sed 's/ [0-9-]* [0-9]*:[0-9]*:[0-9]* [^ ]*/ TIME/' >"$work/made" || true
    grep -o '>remote [a-z][^<]*' "$picture" | sed 's/ [0-9-]* [0-9]*:[0-9]*:[0-9]* [^ ]*/ TIME/' >"$work/shown" || true
    cmp -s "$work/made" "$work/shown" || fail "${picture##*/} is older than docs/pictures/make"
  done
fi
