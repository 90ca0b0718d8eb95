# Enters the project's Python environment. It is put before a command and works in any folder and with any options of the shell: it sets no
# options, never exits the shell and starts no process (except for conda's own hooks). If there is no environment yet, PATH is not changed.
# Set by the caller, as paths:
#   __project   the project's folder       __scripts   its .remote-scripts
#   __env       the environment's folder   __conda     the Miniconda folder (conda)
#   __other     another folder of the environment (conda; may be empty)
#   __isolated  not empty: an environment that remote created, whose Python ignores the packages in ~/.local (conda, venv)
# and __manager: conda, venv (also for uv), system, `prologue` (system, if prologue.sh has put another Python into PATH), or none.
# shellcheck shell=sh
# shellcheck disable=SC2154

__isolate() {
  if [ -n "${__isolated-}" ]; then
    PYTHONNOUSERSITE=${PYTHONNOUSERSITE-1}
    export PYTHONNOUSERSITE
  fi
}

# Enters an environment created by venv, uv, virtualenv or pipenv.
__enter() {
  VIRTUAL_ENV=$__env
  PATH=$__env/bin:$PATH
  export VIRTUAL_ENV PATH
  unset PYTHONHOME
}

case $__manager in
  conda)
    # Does the same as `conda activate`, without taking half a second: sets PATH and conda's variables, and runs the packages' hooks. A
    # hook is tried in a subshell first, because syntax that this shell does not support would end the command.
    if [ -n "$__other" ] && ! [ -x "$__env/bin/python" ]; then __env=$__other; fi
    if [ -x "$__env/bin/python" ]; then
      # There may only be an environment of another user's conda.
      if [ -x "$__conda/bin/conda" ]; then
        PATH=$__conda/condabin:$PATH
        CONDA_EXE=$__conda/bin/conda CONDA_PYTHON_EXE=$__conda/bin/python
        export CONDA_EXE CONDA_PYTHON_EXE
      fi
      PATH=$__env/bin:$PATH
      CONDA_PREFIX=$__env CONDA_DEFAULT_ENV=${__env##*/} CONDA_SHLVL=1
      if [ "$__env" = "$__conda" ]; then CONDA_DEFAULT_ENV=base; fi
      export PATH CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL
      __isolate
      for __hook in "$__env"/etc/conda/activate.d/*.sh; do
        # shellcheck disable=SC1090  # a package's own file
        if [ -f "$__hook" ] && (. "$__hook") </dev/null >/dev/null 2>&1; then . "$__hook"; fi
      done
      unset __hook
    fi
    unset __conda __other
    ;;
  venv)
    if [ -x "$__env/bin/python" ]; then
      __enter
      __isolate
    fi
    ;;
  system)
    if [ -x "$__scripts/bin/python" ]; then
      PATH=$__scripts/bin:$PATH
      export PATH
    fi
    ;;
  prologue)
    if [ -x "$__scripts/bin/python" ]; then
      PATH=$PATH:$__scripts/bin
      export PATH
    fi
    ;;
esac

# If there is a Pipfile, commands run in its environment; update-packages has recorded its folder.
if [ -f "$__project/Pipfile" ] && [ -f "$__scripts/pipenv" ] && IFS= read -r __env <"$__scripts/pipenv" &&
  [ -x "$__env/bin/python" ]; then
  __enter
  PIPENV_ACTIVE=1
  export PIPENV_ACTIVE
fi
case ":${PYTHONPATH-}:" in
  *":$__project:$__project/src:"*) ;; # a shell in the environment enters it again
  *) PYTHONPATH=$__project:$__project/src${PYTHONPATH:+:$PYTHONPATH} ;;
esac
# Output appears immediately, and is not lost if the program is killed.
PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
export PYTHONPATH PYTHONUNBUFFERED
unset __env __project __scripts __manager __isolated
unset -f __enter __isolate
