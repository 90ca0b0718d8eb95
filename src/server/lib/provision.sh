#!/bin/sh
# Shared by the actions that prepare a server. Set by the client, for each of them:
#   PROJECT      the project's folder               SCRIPTS      PROJECT/.remote-scripts
#   MANAGER      conda, venv, uv or system          ENV_PREFIX   the environment's folder
#   CONDA_ROOT   where Miniconda is or goes
#   CONDA_GIVEN  1: that is an installation of the user's own, which is used and never changed but for its environments
#   OTHER_PREFIX where the environment goes when that one takes none (may be empty)
#   PROLOGUE_GIVEN  1: there is a prologue of the user's
#   prologue     sh text that runs it, where it is to run; may be empty
#   PROJECT_KEY  tells this project from others that share the environment
# Lines on stdout that begin with "@remote1 " are for the caller: step, fail, hint, note, have.
: "${PROJECT:?}" "${SCRIPTS:?}" "${MANAGER:?}" "${ENV_PREFIX:?}" "${CONDA_ROOT:?}" "${PROJECT_KEY:?}"
: "${CONDA_GIVEN?}" "${OTHER_PREFIX?}" "${PROLOGUE_GIVEN?}"
# As conda itself does with an installation that is not ours to write.
if [ -n "$OTHER_PREFIX" ] && ! [ -x "$ENV_PREFIX/bin/python" ] && ! [ -w "$CONDA_ROOT/envs" ] &&
  { [ -d "$CONDA_ROOT/envs" ] || ! [ -w "$CONDA_ROOT" ]; }; then
  ENV_PREFIX=$OTHER_PREFIX
fi
# The digests of what was set up, and of what was installed, are kept in the environment, so that they go with it; those of
# an environment that is not ours to write, beside it.
STAMPS=$ENV_PREFIX
[ ! -d "$ENV_PREFIX" ] || [ -w "$ENV_PREFIX" ] || STAMPS=$SCRIPTS
SETUP_STAMP=$STAMPS/.remote-setup
# shellcheck disable=SC2034  # the scripts behind this one use it
PACKAGES_STAMP=$STAMPS/.remote-packages.$PROJECT_KEY
umask 022
exec 3>&1
# The client is gone (guard.sh), and with it whoever reads our output: what EXIT traps clean up is cleaned up.
trap 'exit 143' HUP INT PIPE TERM

# What a login shell's start files printed may lack its last newline.
echo

say() { printf '@remote1 %s %s\n' "$1" "$2" >&3; }

# fail REASON [HINT]
fail() {
  say fail "$1"
  [ -z "${2-}" ] || say hint "$2"
  exit 1
}

stamp_is() { # stamp_is FILE DIGEST
  stamp_found=
  [ -f "$1" ] && IFS= read -r stamp_found <"$1"
  [ "$stamp_found" = "$2" ]
}

write_stamp() { # write_stamp FILE LINE...
  stamp=$1
  shift
  { mkdir -p "${stamp%/*}" && printf '%s\n' "$@" >"$stamp.new" && mv -f "$stamp.new" "$stamp"; } || fail "cannot write $stamp"
}

# The interpreter of the environment; fails when there is none that is executable.
env_python() {
  case $MANAGER in
    system)
      if [ -n "$PROLOGUE_GIVEN" ] && command -v python; then
        return 0 # the one that it put into PATH
      fi
      if [ -x "$SCRIPTS/bin/python" ]; then
        printf '%s\n' "$SCRIPTS/bin/python"
      else
        command -v python && python_is python "$VERSION"
      fi
      ;;
    *) [ -x "$ENV_PREFIX/bin/python" ] && printf '%s\n' "$ENV_PREFIX/bin/python" ;;
  esac
}

setup_is_done() { # setup_is_done DIGEST
  stamp_is "$SETUP_STAMP" "$1" && env_python >/dev/null
}

# Another machine may just have made what is looked for, in folders that both have: NFS believes what it saw half a minute
# ago, but for a folder in which this machine itself makes something.
look_anew() {
  for folder in "$HOME" "$PROJECT" "$SCRIPTS" "$CONDA_ROOT" "$CONDA_ROOT/envs" "${ENV_PREFIX%/*}" "$ENV_PREFIX"; do
    [ -d "$folder" ] && [ -w "$folder" ] && fresh=$(mktemp "$folder/.remote-look.XXXXXX" 2>/dev/null) && rm -f "$fresh"
  done
}

# One preparation of an environment at a time. The lock stands where the environment does, because several servers may have
# that folder in common, by whatever path. Sets `waited` where another one was at it.
lock_environment() {
  waited=
  command -v flock >/dev/null 2>&1 || return 0
  case $ENV_PREFIX in
    "$PROJECT"/*) lock=$SCRIPTS/setup.lock ;;
    "$CONDA_ROOT"/*) lock=$CONDA_ROOT.lock ;;
    *)
      lock=$ENV_PREFIX.lock
      # conda may have to be installed first
      [ "$MANAGER" != conda ] || [ -e "$ENV_PREFIX" ] || lock=$CONDA_ROOT.lock
      ;;
  esac
  lock_file "$lock" || lock_file "$SCRIPTS/setup.lock" || return 0
  [ -z "$waited" ] || look_anew
}

lock_file() { # lock_file FILE
  mkdir -p "${1%/*}" 2>/dev/null
  while :; do
    # A redirection that fails would end this shell. Nothing is written: whatever the name leads to keeps its content.
    { command exec 9>>"$1"; } 2>/dev/null || return 1
    if ! flock -n 9; then
      waited=1
      say step "waiting for another remote that prepares this environment"
      flock 9 || return 0
    fi
    # The one that had it may have removed it.
    # shellcheck disable=SC3013  # all shells here know -ef
    { [ -e /proc/self/fd/9 ] && ! [ "$1" -ef /proc/self/fd/9 ]; } || return 0
  done
}

# drop_lock: removes the lock of an environment that did not come to be. Only who has it does that.
drop_lock() {
  case ${lock-} in
    "$CONDA_ROOT.lock" | "$ENV_PREFIX.lock") ;;
    *) return 0 ;;
  esac
  # shellcheck disable=SC3013
  [ -e "${lock%.lock}" ] || [ -s "$lock" ] || [ -L "$lock" ] || ! [ "$lock" -ef /proc/self/fd/9 ] || rm -f "$lock"
}

# Whether an interpreter is at least 3.6, and of a version such as 3.11 or 3.11.4 where one is wanted.
python_is() { # python_is PYTHON VERSION
  "$1" -c 'import sys
want = [n for n in sys.argv[1].split(".") if n]
sys.exit(sys.version_info < (3, 6) or [str(n) for n in sys.version_info[:len(want)]] != want)' "$2" 2>/dev/null
}

find_python() { # find_python VERSION: prints the interpreter
  for candidate in ${1:+"python$1"} python3 python; do
    candidate=$(command -v "$candidate") && python_is "$candidate" "$1" && printf '%s\n' "$candidate" && return 0
  done
  return 1
}

find_uv() {
  for candidate in uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv"; do
    command -v "$candidate" && return 0
  done
  return 1
}

# Packages of the distribution that are listed and not there.
missing_system_packages() { # missing_system_packages NAME[=VERSION]...
  for package in "$@"; do
    # shellcheck disable=SC2016  # dpkg-query's own variables
    case $package in
      *=*) form='=${Version}' wanted="install ok installed=${package#*=}" ;;
      *) form='' wanted='install ok installed' ;;
    esac
    dpkg-query -W -f="\${Status}$form\n" -- "${package%%=*}" 2>/dev/null | grep -Fqx -- "$wanted" || printf ' %s' "$package"
  done
}

if [ -n "${prologue-}" ]; then
  eval "$prologue"
  [ -z "${__failed-}" ] || fail "the prologue in configs.yaml failed (exit code $__failed)" \
    "where it needs files of the project, send the project first"
fi
