#!/bin/sh
# Behind the prologue (activate.sh), in the scripts that prepare a server. After provision_common.sh.
[ -z "${__failed-}" ] || fail "the prologue in configs.yaml failed (exit code $__failed)" \
  "where it needs files of the project, send the project first"
