#!/bin/sh
# What is done already, in one round trip. Set by the client: SETUP_DIGEST,
# PACKAGES_DIGEST, SHARE_TOKEN (of this call; empty where nobody may share the folder), SERVER (this one's name), AGAIN (1: another
# server has just prepared this folder), and the listed system packages as arguments.
# shellcheck disable=SC2154

# shellcheck source=src/server/lib/provision.sh
. "$remote_program/lib/provision.sh"

: "${SETUP_DIGEST:?}" "${PACKAGES_DIGEST:?}" "${PACKAGES_STAMP:?}" "${SHARE_TOKEN?}" "${SERVER:?}" "${AGAIN?}"
mkdir -p "$PROJECT" || fail "cannot make the project's folder $PROJECT" "choose another remote_path in configs.yaml"
# Which of the call's servers was the first to look into this folder. A link is made with its content or not at all, also over
# NFS, so of several machines one makes it, and all others see whose it is.
if [ -n "$SHARE_TOKEN" ]; then
  token=$SCRIPTS/shared.$SHARE_TOKEN
  mkdir -p "$SCRIPTS" 2>/dev/null && ln -s "$SERVER" "$token" 2>/dev/null
  first=$(readlink "$token" 2>/dev/null) && [ -n "$first" ] && say first "$first"
  # of earlier calls; one of this hour may be of a call that still runs
  find "$SCRIPTS" -maxdepth 1 -name 'shared.*' ! -name "shared.$SHARE_TOKEN" -mmin +60 -exec rm -f {} + 2>/dev/null
fi
[ -z "$AGAIN" ] || look_anew
missing=
[ $# -eq 0 ] || missing=$(missing_system_packages "$@")
if [ -z "$missing" ] && setup_is_done "$SETUP_DIGEST"; then
  say have setup
  if stamp_is "$PACKAGES_STAMP" "$PACKAGES_DIGEST"; then
    say have packages
  fi
fi
say have status
