#!/bin/sh
# `remote servers --verbose`: the resolved settings of each server and their sources, without contacting a server.
. "${0%/*}/support.sh"
mkdir -p "$work/home/.ssh" .remote
HOME=$work/home
export HOME
unset SSH_AUTH_SOCK
cat >"$HOME/.ssh/config" <<'EOF'
Host alias
  HostName 10.1.1.1
  Port 2022
  User conf
Host loop
  ProxyJump loop
EOF
cat >.remote/configs.yaml <<'EOF'
servers:
  first:
    hostname: 192.0.2.1
    private_key: .remote/missing
    password_command: "echo hunter1"
  second:
    hostname: alias
    username: ada
    password: hunter2
    internal_address: 10.0.0.5
EOF
# row SERVER SETTING VALUE FROM
row() { grep -qE "^$1 +$2 +$3 +$4\$" "$work/out" || fail "no line: $*"; }

code 0 -v servers
row first host '192\.0\.2\.1' 'configs.yaml:3'
row first user ubuntu default
row first key 'no such file: .*/my project/\.remote/missing' 'configs.yaml:4'
row first project '[~]/my project' default
row second host '10\.1\.1\.1' '[~]/\.ssh/config:2'
row second port 2022 '[~]/\.ssh/config:3'
row second user ada 'configs.yaml:8'
row second password '[*]+' 'configs.yaml:9'
row second internal_address '10\.0\.0\.5' 'configs.yaml:10'
! grep -q 'hunter' "$work/out" || fail "a password is shown"
! grep -q ' $' "$work/out" || fail "blanks at the end of a line"

code 0 -v --json servers --server 'sec*'
! grep -q 'hunter\|first' "$work/out" || fail "wrong JSON"
if command -v python3 >/dev/null; then
  python3 - "$work/out" <<'EOF' || fail "the JSON is not as it should be"
import json, sys
server, = json.load(open(sys.argv[1]))
assert server["server"] == "second" and server["error"] is None
settings = {line["name"]: (line["value"], line["from"]) for line in server["settings"]}
assert settings["port"] == ("2022", "~/.ssh/config:3"), settings
EOF
fi

code 2 -v servers --server thrid
grep -q 'there are first, second' "$work/err" || fail "the names are not told"

# a server that cannot be resolved does not hide the others
printf '  third: {hostname: loop}\n' >>.remote/configs.yaml
code 2 -v servers
row second port 2022 '[~]/\.ssh/config:3'
grep -q 'error: third: .*circle' "$work/err" || fail "no word about third"

# from a subfolder, and from outside the project
mkdir sub
cd sub
code 0 -v servers --server first
cd /
code 2 -v servers
grep -q 'remote init' "$work/err" || fail "no hint"
echo "servers: all well"
