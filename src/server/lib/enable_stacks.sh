# For --enable-stacks, behind a job's activation, in the project's folder: enable_stacks JOBS_FOLDER TEXT [AGENT] writes TEXT as
# sitecustomize.py into the job's folder, and puts its place before all others on PYTHONPATH; beside it, AGENT as
# remote_torch_agent.py, for an agent of torchrun. Commands other than Python see a longer PYTHONPATH. Whatever goes wrong
# here, the job runs.
# shellcheck shell=sh

enable_stacks() {
  set -- "$(pwd)/$1/$REMOTE_JOB_ID/python" "$2" "${3-}"
  # a ':' in the folder's name cannot stand in PYTHONPATH
  if case $1 in *:*) false ;; esac && (
    # by rename: the ranks of a node of Slurm share the folder, and import it while others write it
    part=$1/.part.${RANK-}.$$
    umask 077 && mkdir -p "$1" && printf '%s' "$2" >"$part" && mv -f "$part" "$1/sitecustomize.py" &&
      { [ -z "$3" ] || { printf '%s' "$3" >"$part" && mv -f "$part" "$1/remote_torch_agent.py"; }; }
  ); then
    PYTHONPATH=$1${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
  else
    echo 'remote: --enable-stacks is not possible in this folder' >&2
  fi
}
