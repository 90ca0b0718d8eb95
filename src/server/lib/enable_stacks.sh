# For --enable-stacks, behind a job's activation, in the project's folder: enable_stacks JOBS_FOLDER [agent] puts sitecustomize.py
# and debugger.py (as remote_debugger.py) into the job's folder, and that place before all others on PYTHONPATH; for an agent of torchrun also
# torch_agent.py as remote_torch_agent.py, and what it imports. Commands other than Python see a longer PYTHONPATH. Whatever goes wrong here, the job runs.
# shellcheck shell=sh
# shellcheck disable=SC2154

# stacks_file FILE NAME: by rename: the ranks of a node of Slurm share the folder, and import it while others write it.
stacks_file() {
  cat "$remote_program/python/$1" >".part.${RANK-}.$$" && mv -f ".part.${RANK-}.$$" "$2"
}

enable_stacks() {
  set -- "$(pwd)/$1/$REMOTE_JOB_ID/python" "${2-}"
  # a ':' in the folder's name cannot stand in PYTHONPATH
  if case $1 in *:*) false ;; esac && (
    umask 077 && mkdir -p "$1" && cd "$1" && stacks_file debugger.py remote_debugger.py && stacks_file sitecustomize.py sitecustomize.py &&
      { [ -z "$2" ] || { stacks_file torch_rendezvous.py remote_torch_rendezvous.py && stacks_file torch_agent.py remote_torch_agent.py; }; }
  ); then
    PYTHONPATH=$1${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
  else
    echo 'remote: --enable-stacks is not possible in this folder' >&2
  fi
}
