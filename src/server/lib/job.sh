# Starts the command of a job that needs a shell first (src/agent/job/exec_job.cpp): in its Python environment, and with the account's
# environment.
# shellcheck shell=sh

# bash gets these flags from SHELLOPTS.
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

# job_activate TEXT: shell text that enters the Python environment. It sees no positional parameters.
job_activate() {
  eval "set --
$1" || job_fails 'cannot enter the Python environment'
  prologue_is_well
}

# job_prologue TEXT: shell text that runs on the server before a container engine.
job_prologue() {
  eval "$1"
  prologue_is_well
}

# job_default NAME VALUE: like set_defaults() in src/agent/job/variables.cpp, after the prologue.
job_default() {
  eval "[ -z \"\${$1+set}\" ]" || return 0
  case $1 in
    NCCL_*) ! grep -qs "^$1=" "${NCCL_CONF_FILE:-${HOME-}/.nccl.conf}" /etc/nccl.conf 2>/dev/null || return 0 ;;
  esac
  export "$1=$2"
}

# A command never runs if the user's prologue has failed.
prologue_is_well() {
  [ -z "${__failed-}" ] || job_fails "the prologue in configs.yaml failed (exit code $__failed)"
}

# If a shell gets a single simple command, it executes it in place, so the job's pid is that of the command.
# --norc: in an sshd session, bash -c reads .bashrc, which may print something, and undo the activation.
job_command() {
  show_environment
  if command -v bash >/dev/null 2>&1; then
    exec bash --norc -c -- "$1"
  fi
  exec sh -c -- "$1"
}
