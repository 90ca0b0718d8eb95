# How the command of a job starts that needs a shell before it (src/agent/job/exec_job.cpp): in its Python environment, and in the account's
# environment.
# shellcheck shell=sh

# bash takes these flags from SHELLOPTS.
case $- in
  *[aeufvxC]*)
    REMOTE_HID_FLAGS=$-
    set +aeufvxC
    ;;
esac
# shellcheck source=src/server/lib/environment.sh
. "${remote_program:?}/lib/environment.sh"

# job_fails TEXT
job_fails() {
  echo "remote: $1" >&2
  exit 127
}

# job_activate TEXT: sh text that enters the Python environment. It sees no positional parameters.
job_activate() {
  eval "set --
$1" || job_fails 'cannot enter the Python environment'
  prologue_is_well
}

# job_prologue TEXT: sh text that runs on the server before a container engine.
job_prologue() {
  eval "$1"
  prologue_is_well
}

# job_default NAME VALUE: set_defaults() of src/agent/job/variables.cpp, after the prologue.
job_default() {
  eval "[ -z \"\${$1+set}\" ]" || return 0
  case $1 in
    NCCL_*) ! grep -qs "^$1=" "${NCCL_CONF_FILE:-${HOME-}/.nccl.conf}" /etc/nccl.conf 2>/dev/null || return 0 ;;
  esac
  export "$1=$2"
}

# A command never runs without what the user wants to stand before it.
prologue_is_well() {
  [ -z "${__failed-}" ] || job_fails "the prologue in configs.yaml failed (exit code $__failed)"
}

# A shell that is given one simple command becomes it: the job's pid is then the command's own.
# --norc: within a session of sshd, bash -c reads .bashrc, which may print, and undo the activation.
job_command() {
  show_environment
  if command -v bash >/dev/null 2>&1; then
    exec bash --norc -c -- "$1"
  fi
  exec sh -c -- "$1"
}
