#!/bin/sh
# A cold `remote run` waits no more often for the server than ssh does, and a cold launch hardly more often.
set -eu
: "${REMOTE:?path of the binary}"
: "${REMOTE_SOURCE_DIR:?the source folder}"
# Skips itself (77) where there is no sshd.
exec python3 "$REMOTE_SOURCE_DIR/tests/bench/round_trips"
