#!/bin/sh
# remote launch: any command gets the variables of a rank, and no message mentions Python.
. "${0%/*}/support.sh"

# if almost no files can be opened, the error says so; UBSan needs a pipe itself to inspect an object
few='4 5 6'
! grep -q __ubsan_handle "$REMOTE" || few=
for files in $few; do
  # files that this shell inherited count, too
  sh -c 'ulimit -n "$0"; exec "$1" --version' "$files" "$REMOTE" >"$work/out" 2>"$work/err" \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- && fail "it runs with $files files"
  grep -q '^error: cannot make a pipe: Too many open files$' "$work/err" || fail "with $files files: $(cat "$work/err")"
  grep -q 'ulimit -n' "$work/err" || fail "no hint"
done
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cat >go.sh <<'END'
#!/bin/sh
echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK at $MASTER_ADDR:${MASTER_PORT:+port} words: $*"
[ "$1" != "$RANK" ] || { echo "no luck" >&2; exit 3; }
END
chmod +x go.sh
cat >program.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  printf("%s/%s %s/%s node %s at %s:%s words:", getenv("RANK"), getenv("WORLD_SIZE"), getenv("LOCAL_RANK"),
         getenv("LOCAL_WORLD_SIZE"), getenv("NODE_RANK"), getenv("MASTER_ADDR"), getenv("MASTER_PORT") ? "port" : "");
  for (int i = 1; i < argc; ++i) printf(" %s", argv[i]);
  printf("\n");
  fflush(stdout);
  if (argc > 2) sleep(1000);
  return 0;
}
END
command="./go.sh"
if command -v cc >/dev/null && cc -o program program.c; then
  command="./program"
fi
"$REMOTE" --quiet rsync

code 0 launch --nproc-per-node 2 -- "$command" 'a  b*'
code 0 job-wait --launch 1
remote job-tail --launch 1 --all --no-follow
sed 's/^\[[0-9]\] //' "$work/out" | sort >"$work/lines"
printf '%s\n' '0/4 0/2 node 0 at 127.0.0.1:port words: a  b*' '1/4 1/2 node 0 at 127.0.0.1:port words: a  b*' \
  '2/4 0/2 node 1 at 127.0.0.1:port words: a  b*' '3/4 1/2 node 1 at 127.0.0.1:port words: a  b*' >"$work/wanted"
cmp -s "$work/wanted" "$work/lines" || fail "the ranks have other variables"

# If a script fails or a program is missing, the rank is named, and nothing else.
code 1 launch --follow --failure-grace 0 -- ./go.sh 1
grep -q 'rank 1 on node-2 failed first (exit 3' "$work/err" || fail "the failed rank is not named"
grep -q 'no luck' "$work/err" || fail "its last words are not shown"
code 2 launch --follow -- ./nothing
grep -q 'there is no nothing, here or on node-1, node-2' "$work/err" || fail "the missing program is not named"
code 1 launch --no-check --follow -- ./nothing
grep -q './nothing: No such file' "$work/err" || fail "the shell's error is not shown"
! grep -qi python "$work/err" || fail "an error speaks of Python"

# A program that is not Python has no Python stacks, and gets no hint about them.
code 0 launch -- sleep "$mark.1"
key=$(of_jobs 'd[-1]["key"]')
code 1 job-stacks --launch "$key"
grep -q 'not a Python process' "$work/out" || fail "job-stacks does not tell what it is"
! grep -q py-spy "$work/err" || fail "advice about Python stacks"
code 0 job-kill --launch "$key" --yes
[ "$(processes 1)" = 0 ] || fail "something is left"
