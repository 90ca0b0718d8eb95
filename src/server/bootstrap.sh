# Installs the agent and runs it. The client sends this to the shell of agent_command.cpp, then a line "DIGEST PACKED SIZE" and PACKED
# bytes: the program, compressed with xz if PACKED differs from SIZE. Variables set before: r_d, the agent's folder; r_only, 1 if it is the
# only one, whose mode is not changed; r_bin, the last fallback; r_memory, run_agent.py.
# shellcheck shell=sh disable=SC2154,SC2046,SC2012,SC2034,SC3044  # the words of ls are wanted, and compgen and shopt are called in bash only
{ r_run=$( # a subshell, because the agent must get the environment as it is
  set +aefuvxC
  case ${BASH_VERSION-} in ?*) shopt -u failglob nullglob nocaseglob nocasematch && unset -f $(compgen -A function) ;; esac
  unset CDPATH XZ_OPT XZ_DEFAULTS TMOUT TIME_STYLE QUOTING_STYLE BLOCK_SIZE POSIXLY_CORRECT
  command -v mkdir >/dev/null || PATH=$PATH:/usr/bin:/bin
  fail() { printf '\n@remote-agent failed %s\n' "$1" >&3 && exit 1; }
  for tool in sha256sum dd mktemp; do command -v $tool >/dev/null || fail "the server has no program $tool"; done
  export LC_ALL=C why='' staged='' new='' && umask 077 && user=$(id -u)
  discard() { [ -z "$1" ] || { rm -f "$1" && rmdir "${1%/*}"; } 2>/dev/null; }
  reject() { # REASON, or the output of a program that ends with it
    why="$why${why:+; }$place: $(echo "$1" | sed -e 's/.*: //' -e q)"
    { [ "$new" = "$staged" ] || discard "$new"; } && new='' && return 1
  }
  is_safe() { # FOLDER: only root and this user can replace it
    parent=$(cd -P "$1" && pwd) && while set -- $(ls -ldn "$parent/."); do
      case $3:$1 in "$user":d????-??-* | 0:d????-??-* | "$user":d????????[tT]* | 0:d????????[tT]*) ;; *) return 1 ;; esac
      case $parent in / | '') return 0 ;; *) parent=${parent%/*} ;; esac
    done
  }
  make_folder() { [ ! -L "$1" ] && mkdir -p "$1" 2>&1 && [ -O "$1/." ] && case $r_only$1:$(ls -ldn "$1/.") in *:drwx------*) ;; "1$r_d:"*) echo 'is open to other users (chmod 700 closes it)' && false ;; *) chmod 700 "$1" 2>&1 ;; esac; }
  make_file() { # creates $new in $place, with the final size of the program
    if [ "$place" = "$r_d" ]; then
      error=$(make_folder "$r_d" && { make_folder "$r_d/$digest" || { rm -rf "${r_d:?}/$digest" && mkdir "$r_d/$digest" 2>&1; }; }) ||
        reject "${error:-is a link, or belongs to another user}" || return
      new=$r_d/$digest/new.$$
    else
      [ -d "$place" ] || reject 'is missing' || return
      is_safe "$place" || reject 'other users could replace it' || return
      new=$(mktemp -d "$place/.remote-agent.XXXXXX" 2>&1)/remote-agent || { error=${new%/*} new='' && reject "$error" || return; }
    fi
    error=$(dd if=/dev/zero of="$new" bs=65536 count=$((size / 65536 + 1)) 2>&1) || reject "$error"
  }
  receive() { # prints the program as received, reads not a byte more, and prints an empty line for each piece to show progress
    for piece in $(seq $((packed / 8192))); do { dd bs=8192 count=1 iflag=fullblock || dd bs=1 count=8192; } && echo >&3 || return; done
    dd bs=1 count=$((packed % 8192))
  } 2>/dev/null
  works() { # whether $new runs
    error=$("$new" try 2>&1); case $?:$error in 42:*) return 0 ;; *enied*) ;; *) reject "${error:-the program does not run there}" || return ;; esac
    mount=$(cd -P "$place" && pwd) && until [ "${mount:=/}" = / ] || grep -q " $mount " /proc/mounts; do mount=${mount%/*}; done
    grep -q "^[^ ]* $mount [^ ]* [^ ]*noexec" /proc/mounts && error="$mount is mounted noexec" || error='a policy forbids programs there'
    reject "$error"
  }
  trap 'exit 1' HUP INT PIPE TERM && trap '[ "$new" = "$staged" ] || discard "$new"; discard "$staged"' EXIT
  read -r digest packed size && set -- "$r_d" && [ "$r_only" ] || set -- "$r_d" "$XDG_RUNTIME_DIR" /dev/shm /var/tmp /tmp "$r_bin"
  for place; do
    [ "$place" ] && make_file || continue
    if [ "$staged" ]; then cp "$staged" "$new"; else receive | if [ "$packed" = "$size" ]; then cat; else xz -dc; fi | dd of="$new" bs=65536 conv=fsync; fi 2>/dev/null
    [ "$(sha256sum <"$new")" = "$digest  -" ] || fail "$place: the program did not arrive whole"
    chmod 700 "$new" && staged=${staged:-$new} && works && break
  done
  [ "$new" ] || python3 -IS -c '' 2>/dev/null || fail "$why; memory: the server has no program python3"
  [ -z "$new" ] || [ "$new" = "$staged" ] || discard "$staged"
  [ "$new" != "$r_d/$digest/new.$$" ] || { mv -f "$new" "$r_d/$digest/remote-agent" && new=$r_d/$digest/remote-agent; }
  trap - EXIT && if [ "$new" ]; then echo "$new"; else printf 'memory %s %s %s %s\n%s' "$digest" "$packed" "$size" "$staged" "$why"; fi
) || { trap - EXIT && exit 1; }; } 3>&1
trap - EXIT && case $r_run in memory*) exec python3 -IS -c "$r_memory" "$r_run" ;; */.remote-agent.*/remote-agent) r_n=--remove-folder ;; *) r_n=--remove-old ;; esac
exec "$r_run" serve "$r_n"
