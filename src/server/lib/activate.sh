# Enters the project's Python environment. Stands before a command, in any folder and under any options of the shell:
# it sets no options, ends no shell and starts no process (conda's own hooks apart). Where there is no environment yet,
# PATH stays as it is. Set by the caller, as paths:
#   __project   the project's folder       __scripts   its .remote-scripts
#   __env       the environment's folder   __conda     where Miniconda is (part conda)
#   __prologue  the user's own text (part prologue)    __other   another folder of the environment (part conda; may be empty)
# The part prologue comes first, where there is one, then one of the parts conda, venv (also for uv) and system, then the part
# project. Where the prologue failed, __failed is its exit code afterwards; else it is not set.
# shellcheck shell=sh
# shellcheck disable=SC2154

# An environment made by venv, uv, virtualenv or pipenv.
__enter() {
  VIRTUAL_ENV=$__env
  PATH=$__env/bin:$PATH
  export VIRTUAL_ENV PATH
  unset PYTHONHOME
}

#part prologue
# What the user's text needs (module, source) only bash has, and what it prints must not come between our lines: it runs in a
# process of its own, with stderr as its stdout, and what it did to variables, limits and the umask comes back as sh text.
# shellcheck disable=SC2016
__runner='
cd -- "$2" 2>/dev/null
case $1 in
  *module* | *"ml "*)
    type module >/dev/null 2>&1 || for __file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh \
      /usr/share/modules/init/bash /usr/share/Modules/init/bash /usr/share/lmod/lmod/init/bash; do
      if [ -r "$__file" ]; then
        . "$__file" >&2
        break
      fi
    done
    ;;
esac
__limits() {
  for __flag in d l n s t v; do
    echo "ulimit -S -$__flag $(ulimit -S "-$__flag")"
  done 2>/dev/null
  echo "umask $(umask)"
}
__names=
[ -z "$BASH_VERSION" ] || __names=$(compgen -e)
__before=$(__limits)
{ eval "$1"; } >&2 || exit
for __name in $__names; do
  eval "[ -n \"\${$__name+set}\" ]" || echo "unset $__name"
done
[ "$(__limits)" = "$__before" ] || __limits
exec sh -c "export -p; echo __failed="
'
# Within a session of sshd, bash -c would read .bashrc.
__shell='sh'
if command -v bash >/dev/null 2>&1; then __shell='bash --norc'; fi
__pwd=$PWD
__failed=1
# shellcheck disable=SC2086
__text=$($__shell -c "$__runner" prologue "$__prologue" "$__project" </dev/null) || __failed=$?
case $__failed$__text in
  1*__failed=)
    eval "$__text"
    PWD=$__pwd
    unset __failed
    ;;
esac
unset __runner __shell __pwd __text __prologue

#part conda
# What `conda activate` does, without conda's half second: PATH, its variables, the hooks of the packages. A hook is
# tried in a subshell first, because a syntax that this sh does not know would end the command.
if [ -n "$__other" ] && ! [ -x "$__env/bin/python" ]; then __env=$__other; fi
if [ -x "$__env/bin/python" ]; then
  # An environment of somebody else's conda may be all there is.
  if [ -x "$__conda/bin/conda" ]; then
    PATH=$__conda/condabin:$PATH
    CONDA_EXE=$__conda/bin/conda CONDA_PYTHON_EXE=$__conda/bin/python
    export CONDA_EXE CONDA_PYTHON_EXE
  fi
  PATH=$__env/bin:$PATH
  CONDA_PREFIX=$__env CONDA_DEFAULT_ENV=${__env##*/} CONDA_SHLVL=1
  if [ "$__env" = "$__conda" ]; then CONDA_DEFAULT_ENV=base; fi
  export PATH CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL
  for __hook in "$__env"/etc/conda/activate.d/*.sh; do
    # shellcheck disable=SC1090  # a package's own file
    if [ -f "$__hook" ] && (. "$__hook") </dev/null >/dev/null 2>&1; then . "$__hook"; fi
  done
  unset __hook
fi
unset __conda __other

#part venv
if [ -x "$__env/bin/python" ]; then __enter; fi

#part system
if [ -x "$__scripts/bin/python" ]; then
  PATH=$__scripts/bin:$PATH
  export PATH
fi

#part system after prologue
if [ -x "$__scripts/bin/python" ]; then
  PATH=$PATH:$__scripts/bin
  export PATH
fi

#part project
# Where there is a Pipfile, commands run in its environment; update-packages wrote down where that is.
if [ -f "$__project/Pipfile" ] && [ -f "$__scripts/pipenv" ] && IFS= read -r __env <"$__scripts/pipenv" &&
  [ -x "$__env/bin/python" ]; then
  __enter
  PIPENV_ACTIVE=1
  export PIPENV_ACTIVE
fi
case ":${PYTHONPATH-}:" in
  *":$__project:$__project/src:"*) ;; # a shell in the environment enters it once more
  *) PYTHONPATH=$__project:$__project/src${PYTHONPATH:+:$PYTHONPATH} ;;
esac
# What a program prints shows up at once, and is there when it is killed.
PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
export PYTHONPATH PYTHONUNBUFFERED
unset __env __project __scripts
unset -f __enter
