#!/bin/sh
# login to a real sshd that requires a key and a one-time code: one code in total for prepare, launch, tail and kill.
# PAM asks for the code (pam_exec), which requires root and a file in /etc/pam.d.
. "${0%/*}/support.sh"
[ "$(id -u)" = 0 ] || skip "it takes root: PAM asks for the code"
sshd=$(command -v sshd || ls /usr/sbin/sshd) || skip "there is no sshd"
ls /lib/*/security/pam_exec.so /usr/lib/*/security/pam_exec.so >/dev/null 2>&1 || skip "PAM has no pam_exec"
command -v python3 >/dev/null || skip "python3 is missing"

server_pid='' service=remote-e2e-$$
there=$(mktemp -d /tmp/remote-login.XXXXXX) # sshd splits its options at spaces
clean_up() {
  "$REMOTE" --quiet --project "$project" logout >/dev/null
  [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
  rm -rf "/etc/pam.d/$service" "$there"
}
mkdir "$there/home" "$there/run" /run/sshd 2>/dev/null || true
chmod 700 "$there/run"
HOME=$work/home XDG_RUNTIME_DIR=$there/run
export HOME XDG_RUNTIME_DIR
unset SSH_AUTH_SOCK
mkdir "$HOME"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
ssh-keygen -q -t ed25519 -N '' -f "$there/host_key"
cp "$work/key.pub" "$there/authorized_keys"

# The name under which sshd is called is that of its PAM service; since OpenSSH 9.8 it is an option.
ln -s "$sshd" "$there/$service"
cat >"$there/ask" <<EOF
#!/bin/sh
code=\$(tr -d '\\000')
echo "\$code" >>"$there/codes"
[ "\$code" = 123456 ]
EOF
chmod 700 "$there/ask"
cat >"/etc/pam.d/$service" <<EOF
auth required pam_exec.so expose_authtok quiet $there/ask
auth required pam_permit.so
account required pam_permit.so
session required pam_permit.so
EOF
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$there/sshd_config" <<EOF
Port $port
ListenAddress 127.0.0.1
HostKey $there/host_key
AuthorizedKeysFile $there/authorized_keys
PidFile none
UsePAM yes
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication yes
AuthenticationMethods publickey,keyboard-interactive
PermitRootLogin yes
PrintMotd no
SetEnv HOME=$there/home
ForceCommand cd "\$HOME" && exec sh -c "\$SSH_ORIGINAL_COMMAND"
EOF
for option in "PAMServiceName $service" 'PerSourcePenalties no'; do
  if "$there/$service" -t -f "$there/sshd_config" -o "$option" 2>/dev/null; then
    echo "$option" >>"$there/sshd_config"
  fi
done
"$there/$service" -D -f "$there/sshd_config" -E "$there/log" &
server_pid=$!
listening() { grep -qs 'Server listening' "$there/log"; }
until_true listening
mkdir -p .remote
cat >.remote/configs.yaml <<EOF
name: otp
python: {manager: system}
servers:
  one: {hostname: 127.0.0.1, port: $port, username: root, private_key: "$work/key", known_hosts: known_hosts}
EOF
echo 'import time; print("step 1", flush=True); time.sleep(600)' >train.py

# Without a login and without a terminal: the error says what to do.
code 1 run --cmd true
grep -q 'remote login --server one' "$work/err" || fail "the error does not name login"
code 1 login
grep -q 'Permission denied' "$work/err" || fail "it does not say what ssh said"
[ ! -e "$there/codes" ] || [ ! -s "$there/codes" ] || fail "a code was sent that nobody typed"
: >"$there/codes"

cat >"$work/type.py" <<'EOF'
import os, pty, select, sys, time
answer, words = sys.argv[1].encode() + b"\n", sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(words[0], words)
seen, typed, end = b"", False, time.time() + 120
while time.time() < end:
    if select.select([fd], [], [], 1)[0]:
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        if not data:
            break
        seen += data
        if not typed and b"assword:" in seen:
            typed = True
            os.write(fd, answer)
else:
    os.kill(pid, 9)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
EOF
python3 "$work/type.py" 123456 "$REMOTE" login --for 2h >"$work/out" 2>"$work/err" || fail "login failed"
grep -q '^one:' "$work/out" || fail "the question is without the server's name"
grep -q 'one: open until' "$work/out" || fail "it does not say until when"
[ "$(stat -c %a "$there/run/remote")" = 700 ] || fail "the folder of the sockets is open to others"

code 0 prepare
code 0 rsync
code 0 run --cmd 'echo "it works" && exit 0'
grep -q 'it works' "$work/out" || fail "run shows no output"
code 0 torch-launch --launcher ranks --cmd 'python3 train.py' --nproc-per-node 2 --no-check --tag otp
tailed() { remote job-tail --all --no-follow && [ "$(grep -c 'step 1' "$work/out")" = 2 ]; }
until_true tailed
code 0 servers --json
grep -q '"login": "open"' "$work/out" || fail "servers does not show the login"
code 0 servers
grep -q 'LOGIN' "$work/out" || fail "servers has no column for it"
code 0 login
grep -q 'one: already open until' "$work/out" || fail "an open login is not known"

# A master that is killed: no code is sent without being typed, and nothing is reported as gone.
pid=$(ssh -o ControlPath="$(find "$there/run/remote" -type s)" -O check x 2>&1 | sed -n 's/.*pid=\([0-9]*\).*/\1/p')
kill -KILL "$pid"
code 1 run --cmd true
grep -q 'remote login' "$work/err" || fail "the error does not name login again"
remote job-list || true
! grep -qw 'failed\|killed' "$work/out" || fail "a job is called ended though nobody could ask"
python3 "$work/type.py" 123456 "$REMOTE" login >"$work/out" 2>"$work/err" || fail "the second login failed"
code 0 job-kill last
[ "$(grep -c 123456 "$there/codes")" = 2 ] || fail "more codes were asked for: $(wc -l <"$there/codes")"

code 0 logout
grep -q 'closed: one' "$work/out" || fail "logout does not say what it closed"
[ -z "$(find "$there/run/remote" -type s)" ] || fail "a control socket is left"
code 0 logout
grep -q 'no login was open' "$work/out" || fail "it closed what is not open"
