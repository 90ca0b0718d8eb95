#!/bin/sh
# The completion scripts, in the installed shells.
. "${0%/*}/support.sh"
mkdir -p "$work/bin" "$work/home" "sub dir"
ln -s "$REMOTE" "$work/bin/remote"
PATH=$work/bin:$PATH
HOME=$work/home
export PATH HOME
code 0 init --quiet --server gpu-1=h1 --server gpu-2=h2 --server cpu=h3
# same WHAT WANTED GOT
same() {
  [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
}

same "servers" "gpu-1 gpu-2 cpu" "$("$REMOTE" __complete servers | tr '\n' ' ' | sed 's/ $//')"
same "jobs" "" "$("$REMOTE" __complete jobs 2>&1)"
same "servers outside a project" "" "$(cd / && "$REMOTE" __complete servers 2>&1)"

if command -v bash >/dev/null; then
  "$REMOTE" completion bash >"$work/remote.bash"
  bash -n "$work/remote.bash"
  cat >"$work/ask.bash" <<'EOF'
. "$1"
# ask WORD...: completes the last word as bash does, split at '=' and ':' (COMP_WORDBREAKS); @ marks the cursor
ask() {
  COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=() COMPREPLY=()
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _remote_complete remote
  echo "${COMPREPLY[*]}"
}
ask 'remote ini' remote ini
ask 'remote   completion ' remote completion ''
ask 'remote --color=n' remote --color = n
ask 'remote --color=' remote --color =
ask 'remote --color ne' remote --color ne
ask 'remote --project "/x y" ini' remote --project '"/x y"' ini
ask 'remote init --key s' remote init --key s
ask 'remote init --server a=b --na' remote init --server a = b --na
ask 'remote init --server a=b:22 --na' remote init --server a = b : 22 --na
ask 'remote servers --server gp' remote servers --server gp
ask 'remote servers --server=gp' remote servers --server = gp
ask 'remote servers --server=' remote servers --server =
ask 'remote run -- ls s' remote run -- ls s
ask 'remote help sand' remote help sand
ask 'remote help deb' remote help deb
complete -p remote
# the cursor in the middle of a word
COMP_LINE='remote inixx' COMP_POINT=9 COMP_WORDS=(remote inixx) COMP_CWORD=1
_remote_complete remote
echo "${COMPREPLY[*]}"
EOF
  bash "$work/ask.bash" "$work/remote.bash" >"$work/got" 2>"$work/err" || fail "bash"
  [ ! -s "$work/err" ] || fail "bash complains"
  cat >"$work/wanted" <<'EOF'
init
bash zsh fish
never
auto always never
never
init
sub\ dir
--name
--name
gpu-1 gpu-2
gpu-1 gpu-2
gpu-1 gpu-2 cpu
sub\ dir
sandbox
debugging
complete -F _remote_complete remote
init
EOF
  diff "$work/wanted" "$work/got" >&2 || fail "bash completes otherwise"
else
  echo "no bash here"
fi

if command -v zsh >/dev/null; then
  "$REMOTE" completion zsh >"$work/_remote"
  zsh -n "$work/_remote"
  # shellcheck disable=SC2016
  got=$(zsh -fc 'compdef() { echo "compdef $*"; }
    _describe() { print -l -- "${(P@)argv[-1]}"; }
    _files() { echo "files $*"; }
    source "$1"
    words=(remote ini); CURRENT=2; PREFIX=ini; _remote
    words=(remote init --key s); CURRENT=4; PREFIX=s; _remote
    words=(remote --project ""); CURRENT=3; PREFIX=""; _remote
    words=(remote completion f); CURRENT=3; PREFIX=f; _remote' zsh "$work/_remote" 2>&1)
  same "zsh" "compdef _remote remote
init:Make this folder a project
files 
files -/
fish:" "$got"
else
  echo "no zsh here"
fi

if command -v fish >/dev/null; then
  export TMPDIR="$work" # fish leaves a folder there
  "$REMOTE" completion fish >"$work/remote.fish"
  fish -n "$work/remote.fish"
  # shellcheck disable=SC2016
  got=$(fish -c 'source $argv[1]
    complete -C "remote ini"
    complete -C "remote --color=n"
    complete -C "remote init --key s"
    complete -C "remote servers --server c"
    complete -C "remote completion f"' "$work/remote.fish" 2>&1 | cut -f1)
  same "fish" "init
--color=never
sub dir/
cpu
fish" "$got"
else
  echo "no fish here"
fi

# Text written by others is never executed: neither a tag from a cloned project, inserted with TAB and read by the shell
# on Return, nor a program named `remote` in the folder.
mkdir "$work/foreign"
cd "$work/foreign"
code 0 init --quiet --server gpu-1=h1
id=0123456789abcdef0123456789abcdef
mkdir -p ".remote/jobs/$id"
cat >".remote/jobs/$id/job.json" <<EOF
{"version": 1, "key": 1, "id": "$id", "server": "gpu-1", "state": "succeeded", "exit_code": 0,
 "tags": ["x\$(touch pwned1)'\`touch pwned2\`;touch pwned3|a:b=c \\"d\\\\e"], "command": "true", "hidden": false,
 "created_at": "2026-11-21T07:30:00Z", "checked_at": "2026-11-21T07:30:00Z", "remote_folder": "foreign/.jobs/$id"}
EOF
printf '#!/bin/sh\ntouch pwned4\n' >remote
chmod +x remote
# Recorded launches, even without any of their jobs, by key, name and last
launch=fedcba9876543210fedcba9876543210
mkdir -p ".remote/jobs/launches/$launch"
cat >"$work/record.py" <<'EOF'
import json, sys
moment = "2026-11-21T07:30:00Z"
launch, name = sys.argv[1:]
job = {"version": 1, "key": 7, "id": "ab" * 16, "server": "gpu-1", "state": "succeeded", "exit_code": 0, "tags": [], "command": "true", "hidden": False, "launch": launch,
       "rank": 0, "world_size": 1, "created_at": moment, "ended_at": moment, "checked_at": moment, "remote_folder": "foreign/.jobs/" + "ab" * 16}
record = {"version": 1, "key": 7, "last_key": 7, "id": launch, "name": name, "state": "succeeded", "failed_rank": None, "note": "", "tags": [], "command": "true",
          "servers": ["gpu-1"], "ranks": 1, "exit_code": None, "signal": None, "commit": "", "clean": False, "began_at": moment, "ended_at": moment, "numbers": {},
          "launcher": "ranks", "variables": [], "remote": "0.1.0", "branch": "", "untracked": 0, "last_lines": [], "patch": None, "setups": [], "steps": [], "jobs": [job]}
json.dump(record, open(".remote/jobs/launches/%s/launch.json" % launch, "w"))
EOF
# offered WORD…: prints the completions of the last word
offered() { "$REMOTE" __complete line "$@" | sed 1d | cut -f1 | tr '\n' ' '; }
python3 "$work/record.py" "$launch" nightly
for command in note show rerun diff pull 'diff 7'; do
  # shellcheck disable=SC2086
  same "launches of $command" "7 nightly last " "$(offered $command '')"
done
same "a launch without jobs" "" "$(offered job-kill --launch '')"
# shellcheck disable=SC2016
python3 "$work/record.py" "$launch" 'y$(touch pwned5)`touch pwned6`;touch pwned7|a:b=c "d\e'
cat >"$work/type.py" <<'EOF'
# type.py SHELL SCRIPT: sources the completion script in an interactive shell, and completes as a person would.
import os, pty, select, sys, time
shell, script = sys.argv[1:]
argv = {"bash": ["bash", "--norc", "--noprofile"], "zsh": ["zsh", "-f"], "fish": ["fish", "--no-config"]}[shell]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm" if shell == "fish" else "dumb"
    os.execvp(argv[0], argv)
seen = b""
def until(condition, what):
    global seen
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            sys.exit("waited too long for %s: %r" % (what, seen))
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if b"\x1b[c" in data or b"\x1b[0c" in data:
                os.write(fd, b"\x1b[?62;c")  # fish asks what terminal this is
            seen += data
def line(text, marker):
    os.write(fd, text.encode() + b"\r")
    until(lambda: os.path.exists(marker), text)
start = {"zsh": "autoload -U compinit && compinit -u -D; ", "bash": "", "fish": ""}[shell]
line(start + ("source '%s'; touch ready-%s" % (script, shell)), "ready-" + shell)
os.write(fd, b"remote --quiet job-list --offline --stopped --tag x")
os.write(fd, b"\t")
until(lambda: b"pwned3" in seen, "the tag")
os.write(fd, b"\r")
until(lambda: b"gpu-1" in seen, "the row of the job with this tag")  # so it was quoted, and rightly
line("touch listed-" + shell, "listed-" + shell)
os.write(fd, b"remote --quiet show y")
os.write(fd, b"\t")
until(lambda: b"pwned7" in seen, "the name of the launch")
os.write(fd, b"\r")
until(lambda: b"launcher" in seen, "the launch of this name")
line("touch shown-" + shell, "shown-" + shell)
os.write(fd, b"./remote job-t\t")
time.sleep(1)
os.write(fd, b"\x15")
line("touch end-" + shell, "end-" + shell)
os.write(fd, b"exit\r")
os.waitpid(pid, 0)
EOF
for shell in bash zsh fish; do
  command -v "$shell" >/dev/null || continue
  "$REMOTE" completion "$shell" >"$work/script.$shell"
  python3 "$work/type.py" "$shell" "$work/script.$shell" >"$work/out" 2>"$work/err" || fail "$shell on a terminal"
  for file in pwned*; do
    [ ! -e "$file" ] || fail "$shell: TAB and Return ran a foreign text: $file"
  done
done
echo "completion: all well"
