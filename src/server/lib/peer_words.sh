# Part of status.sh and workers.sh.
# shellcheck shell=sh

# tells_of_peer FILE: whether the last words in it, those of the last traceback and of the last attempt (docs/resilience.md), say that another
# rank was gone: in the words of gloo, NCCL, torch's stores, mpirun and the system. Such a failure follows from another one.
# shellcheck disable=SC2016  # nothing is meant to be expanded
tells_of_peer() {
  [ -s "$1" ] && [ -f "$1" ] || return 1
  tail -c 16384 "$1" 2>/dev/null | LC_ALL=C sed -n 'H;/Traceback (most recent call last)/h;/^remote: the \(ranks\|workers\) begin anew (/h;${g;p;}' | LC_ALL=C grep -q \
    -e 'Connection reset' -e 'Connection closed' -e 'Connection refused' -e 'Connection was likely closed' \
    -e 'Broken pipe' -e 'connectFullMesh failed' -e 'Socket Timeout' -e 'Socket closed' -e 'Dist\(Network\|Store\)Error' \
    -e 'Timed out waiting [0-9]*ms for \(recv\|send\) operation' -e 'remote process exited' \
    -e 'NCCL communicator was aborted' -e 'NCCL operations have failed or timed out' \
    -e 'Watchdog caught collective operation timeout' -e '^remote: ended by \(TERM\|KILL\), as ' -e '^remote: exited with 14, as ' \
    -e '^remote: mpirun has ended' -e 'has lost communication with a remote daemon' -e 'assert (!closed) failed'
}
