# The functions of a job's file job.sh, which calls them with the job's values: job_folder, then `export NAME=VALUE` for each
# variable, job_activate, and job_command. They run as the job.
# shellcheck shell=sh

# job_fails TEXT
job_fails() {
  echo "remote: $1" >&2
  exit 127
}

job_folder() {
  cd "$1" || job_fails 'cannot enter the project folder'
}

# job_read_attempt: of a launch that has begun anew, what differs in this attempt (lifeline_acts.py), from the job's folder; job_attempt
# exports it, after the variables of the first one.
job_read_attempt() {
  job_values=RESTART_COUNT=0
  [ ! -e "${0%job.sh}attempt" ] || job_values=$(cat "${0%job.sh}attempt") || job_fails 'cannot read the number of its attempt'
}

# job_export LINES: those that set a variable.
job_export() {
  while IFS= read -r job_value; do
    case $job_value in
      [A-Z]*=*) export "${job_value?}" ;;
    esac
  done <<EOT
$1
EOT
  job_init_method
}

job_attempt() {
  job_export "$job_values"
  [ "$RESTART_COUNT" != 0 ] || return 0
  case ${INIT_METHOD-} in
    file://*) export INIT_METHOD="$INIT_METHOD.$RESTART_COUNT" ;; # what an ended attempt left in its file would hang this one
  esac
  # agents of two attempts must not meet
  [ -z "${PET_RDZV_ID-}" ] || export PET_RDZV_ID="$PET_RDZV_ID-$RESTART_COUNT"
}

# job_init_method: names the port that this start of the ranks has.
job_init_method() {
  case ${INIT_METHOD-} in
    tcp://*) export INIT_METHOD="tcp://$MASTER_ADDR:$MASTER_PORT" ;;
  esac
}

# job_queue: while the launch waits for its leases. The first job of it on this server waits for all (lease_wait.py); the file `queue` is gone then.
job_queue() {
  [ -e "${0%job.sh}queue" ] || return 0
  {
    read -r job_first
    read -r job_python
    read -r job_options
    read -r job_words
    read -r job_ids
    read -r job_path
  } <queue
  if [ "$job_first" = "$REMOTE_JOB_ID" ]; then
    # shellcheck disable=SC2086
    PATH=$job_path "$job_python" $job_options "${remote_program:?}/python/lease_wait.py" 7 "${PWD%/*}" $job_words -- $job_ids </dev/null ||
      job_fails 'its turn did not come'
  else
    read -r job_go <.turn
    [ "$job_go" = go ] || job_fails 'the job that waited for the turn of all is gone'
  fi
}

# job_read_devices, and job_devices after the variables: what was leased for the job (lib/lease.sh). Its folder is that of job.sh, also in a container.
job_read_devices() {
  job_leased=$(cat "${0%job.sh}devices") || job_fails 'cannot read what is leased for it'
}

job_devices() {
  job_export "$job_leased"
}

# job_workdir: where the command runs, if REMOTE_WORKDIR names another place than the project's folder.
job_workdir() {
  case ${REMOTE_WORKDIR-} in
    '') return 0 ;;
    /*) job_place=$REMOTE_WORKDIR ;;
    '~' | '~'/*) job_place=$HOME${REMOTE_WORKDIR#'~'} ;;
    *) job_place=./$REMOTE_WORKDIR ;; # a folder named "-" is not where `cd -` goes
  esac
  cd "$job_place" 2>/dev/null ||
    job_fails "the project has no folder $REMOTE_WORKDIR here: send it with \`remote rsync\`, or name another with --workdir"
}

# job_tree DIGEST: goes into the tree of a frozen launch; what Python has from the project it takes from there (sitecustomize.py).
# shellcheck disable=SC2154
job_tree() {
  REMOTE_PROJECT_FOLDER=$(pwd)
  cd "${remote_program%/.bin/*}/.trees/$1" 2>/dev/null || job_fails "the tree of this launch is gone: start it again"
  REMOTE_TREE=$(pwd)
  export REMOTE_PROJECT_FOLDER REMOTE_TREE
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

# A command never runs without what the user wants to stand before it.
prologue_is_well() {
  [ -z "${__failed-}" ] || job_fails "the prologue in configs.yaml failed (exit code $__failed)"
}

# A shell that is given one simple command becomes it: the job's pid is then the command's own.
# --norc: within a session of sshd, bash -c reads .bashrc, which may print, and undo the activation.
job_command() {
  if command -v bash >/dev/null 2>&1; then
    exec bash --norc -c -- "$1"
  fi
  exec sh -c -- "$1"
}
