#!/bin/sh
# Fails when an error can be made under src/ that does not say what to try. Usage: errors.sh SOURCE_DIR
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
here=${0%/*}
exec python3 "$here/errors.py" "${1:?source folder}"
