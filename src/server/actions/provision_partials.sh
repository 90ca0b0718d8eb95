#!/bin/sh
# Removes what interrupted transfers left of files: after a transfer that came to its end, they are of no use.
# shellcheck disable=SC2154

# shellcheck source=src/server/lib/provision.sh
. "$remote_program/lib/provision.sh"
find "$PROJECT" -name .rsync-partial -type d -prune -exec rm -rf {} +
