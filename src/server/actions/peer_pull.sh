#!/bin/sh
# Brings the project here from another server that has it. After guard.sh. Set by the caller:
#   PROJECT    the project's folder here          WORK       a folder to make, and to remove at the end
#   PEER_HOST, PEER_PORT, PEER_USER               where the other server is, as this one reaches it
#   HOST_KEY   its host key, checked by the caller: "ssh-ed25519 AAAA..."
#   PEER_PATH  rsync's SOURCE: "remote:PATH/"     PROBE      1: only look whether one can log in there
#   NAMES      what to bring, one name a line; rsync's options are the arguments
#   AGENT      the forwarded agent's socket, where the server has not set SSH_AUTH_SOCK itself; removed at the end
# rsync's lines go to stdout as they are; the exit code is its own. Before: "@remote1 fail REASON", exit code 1.
: "${PROJECT:?}" "${WORK:?}" "${PEER_HOST:?}" "${PEER_PORT:?}" "${PEER_USER:?}" "${HOST_KEY:?}" "${PEER_PATH:?}"
: "${PROBE?}" "${NAMES?}" "${AGENT?}"
LC_ALL=C
export LC_ALL PEER_HOST PEER_PORT PEER_USER

fail() {
  printf '@remote1 fail %s\n' "$1"
  exit 1
}

command -v ssh >/dev/null 2>&1 || fail "it has no ssh"
command -v rsync >/dev/null 2>&1 || fail "it has no rsync"
umask 077
trap 'rm -rf "$WORK" ${AGENT:+"$AGENT"}' EXIT
mkdir -p "$WORK" || fail "cannot make $WORK"
if [ -n "$AGENT" ]; then
  export SSH_AUTH_SOCK="$AGENT"
fi
trap 'exit 143' HUP INT PIPE TERM
cd "$WORK" || fail "cannot enter $WORK"
printf 'remote-peer %s\n' "$HOST_KEY" >known_hosts || fail "cannot write to $WORK"

# What rsync runs as its remote shell: ssh with our known_hosts and nobody to ask. The keys are the agent's, which
# is the laptop's, and those that lie in this home folder.
cat >ssh <<'END'
shift # the name that rsync has for the other server
command=$*
set --
for key in "$HOME"/.ssh/id_ed25519 "$HOME"/.ssh/id_ecdsa "$HOME"/.ssh/id_rsa; do
  [ ! -r "$key" ] || set -- "$@" -i "$key"
done
exec ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=known_hosts \
  -o GlobalKnownHostsFile=/dev/null -o HostKeyAlias=remote-peer -o UpdateHostKeys=no -o CheckHostIP=no \
  -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 -o LogLevel=ERROR \
  -o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o ControlMaster=no -o ControlPath=none \
  -o PermitLocalCommand=no "$@" -p "$PEER_PORT" -l "$PEER_USER" -- "$PEER_HOST" "$command"
END
if [ -n "$PROBE" ]; then
  sh ./ssh peer true </dev/null
  exit
fi
printf '%s' "$NAMES" | tr '\n' '\000' >list || fail "cannot write to $WORK"
umask 022
rsync "$@" -0 --files-from=list -e 'sh ./ssh' -- "$PEER_PATH" "$PROJECT/"
