#!/bin/sh
# sandbox up, status and down as users see them: their output, and the changes to configs.yaml.
. "${0%/*}/support.sh"
mkdir deeper "$work/empty"

# Without its tools it says which package has them, and leaves nothing half-made.
if PATH="$work/empty" remote sandbox up; then fail "it started without ssh-keygen"; fi
grep -q 'apt-get install openssh-server' "$work/err" || fail "the package is not named"

code 0 sandbox up --nodes 2
grep -q '2 practice servers up' "$work/err" || fail "up does not say what it did"
[ ! -s "$work/out" ] || fail "up prints to stdout"
grep -q '^/jobs/$' .remote/.gitignore || fail "git would take what remote keeps"
ports=$(sed -n 's/^    port: //p' .remote/configs.yaml)
[ "$(printf '%s\n' "$ports" | wc -l)" = 2 ] || fail "configs.yaml does not have two ports"

cd deeper # the project is found from a subfolder
before=$(cat ../.remote/configs.yaml)
remote sandbox up || fail "second up"
grep -q 'all were running' "$work/err" || fail "the second up started something"
[ "$(cat ../.remote/configs.yaml)" = "$before" ] || fail "the second up changed configs.yaml"

code 0 sandbox status --json
for port in $ports; do
  grep -q "\"port\": $port," "$work/out" || fail "status lacks port $port"
done
[ "$(grep -c '"running": true' "$work/out")" = 2 ] || fail "status does not show two that run"

# Once the user has edited the file, it belongs to the user. While it names the servers, there is no message about it.
printf '# mine\n' >>../.remote/configs.yaml
remote sandbox up || fail "up with an edited file"
if grep -q 'needs:' "$work/err"; then fail "it asks for servers that are named"; fi
code 0 sandbox up --nodes 3
grep -q '^  node-3:' "$work/err" || fail "it does not say what to add"
if grep -q '^  node-2:' "$work/err"; then fail "it asks for a server that is named"; fi
[ "$(tail -n 1 ../.remote/configs.yaml)" = '# mine' ] || fail "it wrote into the user's file"

code 0 sandbox down
grep -q '3 practice servers ended' "$work/err" || fail "down did not end three"
remote sandbox status --json || fail "status after down"
if grep -q '"running": true' "$work/out"; then fail "something runs after down"; fi
code 0 sandbox down --purge
[ ! -e ../.remote/sandbox ] || fail "the sandbox's folder is still there"
[ -e ../.remote/configs.yaml ] || fail "the user's configs.yaml is gone"
