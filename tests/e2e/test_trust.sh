#!/bin/sh
# A project made by another person, as a user would see it: no part of it acts on this machine before `remote trust`.
# shellcheck source=tests/e2e/support.sh
. "$(dirname -- "$0")/support.sh"

code 0 sandbox up --nodes 1
system_python
code 0 rsync
code 0 job-run --server node-1 --cmd 'sleep 1000'

# --- a command for the password -----------------------------------------------------------------------------------
sed -i "s|^    private_key: .*|    password_command: touch '$work/ran'; echo no|" .remote/configs.yaml
for command in 'job-list' 'run --cmd true' 'rsync' 'job-kill --yes'; do
  # shellcheck disable=SC2086 # words are wanted
  code 2 $command
  grep -q "touch '$work/ran'" "$work/err" || fail "$command does not show what the project wants"
  grep -q 'remote trust' "$work/err" || fail "$command does not say how to allow it"
done
[ ! -e "$work/ran" ] || fail "the command ran before it was allowed"
code 2 trust
code 0 trust --yes
remote run --cmd true || true # the password is wrong
[ -e "$work/ran" ] || fail "the command did not run after it was allowed"
[ "$(stat -c %a "$work/state/remote/trusted")" = 600 ] || fail "what is allowed can be read by others"

# --- a copy of the project is another project ---------------------------------------------------------------------
rm "$work/ran"
mkdir "$work/copy" && cp -r .remote "$work/copy/"
code 2 --project "$work/copy" job-list
code 0 trust --forget
code 2 job-list
[ ! -e "$work/ran" ] || fail "the command ran in a copy"

# --- back to keys, which need no trust ----------------------------------------------------------------------------
sed -i 's|^    password_command: .*|    private_key: ./.remote/sandbox/id_ed25519|' .remote/configs.yaml
code 0 job-kill --yes

# --- a FIFO in place of the patterns ------------------------------------------------------------------------------
rm .remote/exclude.txt && mkfifo .remote/exclude.txt
code 2 rsync
rm .remote/exclude.txt

# --- a folder that any user can write to --------------------------------------------------------------------------
chmod o+w .remote
code 2 job-list
grep -q 'remote trust --folder' "$work/err" || fail "the way to allow the folder is not told"
code 2 sandbox up
chmod o-w .remote
code 0 job-list
