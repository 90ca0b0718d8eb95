#!/bin/sh
# Fails if an error under src/ has no hint. Usage: errors.sh SOURCE_DIR
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
here=${0%/*}
exec python3 "$here/errors.py" "${1:?source folder}"
