#!/bin/sh
# A frozen launch on a full disk: nothing starts on any server, and nothing of the tree is left. Requires root for a
# small tmpfs.
# shellcheck disable=SC2016
if [ "${1-}" != in-namespace ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: only root may mount a small disk"
    exit 77
  fi
  exec unshare -m sh "$0" in-namespace
fi
. "${0%/*}/support.sh"
home="$sandbox/node-2/home"
clean_up() { umount "$home" 2>/dev/null || umount -l "$home" 2>/dev/null; }
code 0 sandbox up --nodes 2
mount -t tmpfs -o size=9m "$work" "$home"
system_python
mkdir conf
for file in $(seq 20); do head -c 100000 /dev/zero >"conf/$file.yaml"; done
echo 'print("ran")' >train.py
code 0 rsync
code 0 launch --nproc-per-node 1 --follow -- true # installs the program
head -c $((2 * 1024 * 1024)) /dev/zero >"$home/fill"
before=$(find .remote/jobs -name job.json | wc -l)
code 1 launch --frozen --nproc-per-node 1 -- true
grep -q 'node-2: cannot freeze the code.*No space left' "$work/err" || fail "the full disk is not named"
[ "$(find .remote/jobs -name job.json | wc -l)" = "$before" ] || fail "something was started"
[ -z "$(find "$home/my project/.jobs/.trees" -mindepth 1 -type d)" ] || fail "something of the tree is left"
rm "$home/fill"
code 0 launch --frozen --nproc-per-node 1 --follow -- cat conf/7.yaml
echo "frozen on a full disk: all well"
