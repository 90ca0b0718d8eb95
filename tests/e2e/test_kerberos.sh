#!/bin/sh
# A server that accepts only users with a Kerberos ticket: through libssh, and through OpenSSH. The test runs its own
# KDC and sshd on the loopback address.
. "${0%/*}/support.sh"
PATH=$PATH:/usr/sbin:/usr/local/sbin
for program in sshd krb5kdc kdb5_util kadmin.local kinit kdestroy python3; do
  command -v $program >/dev/null || skip "$program is not installed"
done

there=$(mktemp -d /tmp/remote-krb5.XXXXXX) # sshd and krb5.conf split at spaces
pids=''
clean_up() {
  "$REMOTE" --quiet --project "$project" logout >/dev/null
  for pid in $pids; do kill "$pid" 2>/dev/null; done
  rm -rf "$there"
}
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
mkdir -p "$there/home" "$there/run" "$there/server/tickets"
chmod 700 "$there/run"
HOME=$there/home XDG_RUNTIME_DIR=$there/run
KRB5_CONFIG=$there/krb5.conf KRB5_KDC_PROFILE=$there/kdc.conf KRB5CCNAME=FILE:$there/tickets KRB5_KTNAME=FILE:$there/keytab
export HOME XDG_RUNTIME_DIR KRB5_CONFIG KRB5_KDC_PROFILE KRB5CCNAME KRB5_KTNAME
unset SSH_AUTH_SOCK
# Memory that the Kerberos libraries, and libssh 0.10 when it uses them, do not free.
printf 'leak:%s\n' libgssapi_krb5 libkrb5 libk5crypto libssh.so >"$there/lsan"
export LSAN_OPTIONS="suppressions=$there/lsan:print_suppressions=0"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
user=$(id -un)
kdc_port=$(free_port)
cat >"$KRB5_CONFIG" <<EOF2
[libdefaults]
  default_realm = TEST.EXAMPLE
  default_rcache_name = file2:$there/rcache
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
[realms]
  TEST.EXAMPLE = {
    kdc = 127.0.0.1:$kdc_port
  }
[domain_realm]
  localhost = TEST.EXAMPLE
[logging]
  kdc = FILE:$there/kdc.log
EOF2
cat >"$KRB5_KDC_PROFILE" <<EOF2
[kdcdefaults]
  kdc_listen = 127.0.0.1:$kdc_port
  kdc_tcp_listen = 127.0.0.1:$kdc_port
[realms]
  TEST.EXAMPLE = {
    database_name = $there/principals
    key_stash_file = $there/stash
    acl_file = $there/acl
  }
EOF2
{
  kdb5_util create -s -r TEST.EXAMPLE -P of-the-database
  kadmin.local -q "addprinc -pw of-the-user $user"
  kadmin.local -q 'addprinc -randkey host/localhost'
  kadmin.local -q "ktadd -k $there/keytab host/localhost"
} >"$work/out" 2>"$work/err" || fail "there is no KDC"
krb5kdc -n >/dev/null 2>&1 &
pids=$!
has_ticket() { echo of-the-user | kinit "$user" >"$work/out" 2>"$work/err"; }
until_true has_ticket
kdestroy

ssh-keygen -q -t ed25519 -N '' -f "$there/host_key"
port=$(free_port)
cat >"$there/sshd_config" <<EOF2
Port $port
ListenAddress 127.0.0.1
HostKey $there/host_key
AuthorizedKeysFile none
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication no
GSSAPIAuthentication yes
GSSAPIStrictAcceptorCheck no
PermitRootLogin yes
PrintMotd no
SetEnv HOME=$there/server
EOF2
"$(command -v sshd)" -D -f "$there/sshd_config" -E "$there/log" &
pids="$pids $!"
listening() { grep -qs 'Server listening' "$there/log"; }
until_true listening

mkdir -p .remote "$HOME/.ssh"
chmod 700 "$HOME/.ssh"
echo 'GSSAPIAuthentication yes' >"$HOME/.ssh/config"
cat >.remote/configs.yaml <<EOF2
name: tickets
python: {manager: system}
servers:
  one: {hostname: localhost, port: $port, username: "$user", known_hosts: known_hosts}
EOF2
accepted() { grep -c 'Accepted gssapi-with-mic' "$there/log"; }

code 1 run --cmd true
grep -q kinit "$work/err" || fail "the error does not name what helps"
until_true has_ticket
sed -i '1i connection: libssh' .remote/configs.yaml
code 0 run --cmd 'echo through libssh'
printed 'through libssh
'
[ "$(accepted)" = 1 ] || fail "the server says something else: $(cat "$there/log")"

# The same through OpenSSH: ssh reads the user's configuration, in which this may be disabled.
sed -i '1d' .remote/configs.yaml
code 0 login
kdestroy
code 0 run --cmd 'echo through OpenSSH'
printed 'through OpenSSH
'
[ "$(accepted)" = 2 ] || fail "the server says something else: $(cat "$there/log")"
code 0 logout
code 1 run --cmd true
echo "a ticket of Kerberos is enough"
