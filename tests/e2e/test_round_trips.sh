#!/bin/sh
# A cold `remote run` needs no more round trips than ssh, and a cold launch only a few more.
set -eu
: "${REMOTE:?path of the binary}"
: "${REMOTE_SOURCE_DIR:?the source folder}"
# Skips itself (77) without sshd.
exec python3 "$REMOTE_SOURCE_DIR/tests/bench/round_trips"
