#!/bin/sh
# Removes what interrupted transfers left of files: after a transfer that came to its end, they are of no use. After
# provision_common.sh.
find "$PROJECT" -name .rsync-partial -type d -prune -exec rm -rf {} +
