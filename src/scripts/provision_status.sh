#!/bin/sh
# What is done already, in one round trip. After provision_common.sh. Set by the caller: SETUP_DIGEST,
# PACKAGES_DIGEST, and the listed system packages as arguments.
: "${SETUP_DIGEST:?}" "${PACKAGES_DIGEST:?}" "${PACKAGES_STAMP:?}"
mkdir -p "$PROJECT" || fail "cannot make the project's folder $PROJECT" "choose another remote_path in configs.yaml"
missing=
[ $# -eq 0 ] || missing=$(missing_system_packages "$@")
if [ -z "$missing" ] && setup_is_done "$SETUP_DIGEST"; then
  say have setup
  if stamp_is "$PACKAGES_STAMP" "$PACKAGES_DIGEST"; then
    say have packages
  fi
fi
say have status
