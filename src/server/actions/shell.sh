# Becomes the user's login shell in the project's folder and environment; after tty.sh. Set before: project; environment, which is
# the sh text that exports the variables and enters the Python environment; and bash_rc, the text for bash to begin with.
# shellcheck shell=sh
# shellcheck disable=SC2154,SC1090,SC1091

: "${SHELL:=/bin/sh}"
# The start files of a login shell set PATH anew, so the environment is entered behind them: by these shells here, and by bash at
# the end of its own (shell_rc.sh). Those of the others leave PATH alone, or only add to it.
case ${SHELL##*/} in
  sh | dash | ash | ksh* | mksh | yash)
    for file in /etc/profile "$HOME/.profile"; do
      if [ -r "$file" ]; then . "$file"; fi
    done
    ;;
esac
if ! cd -- "$project" 2>/dev/null; then
  echo "remote: the project's folder $project is not on this server yet; this is your home folder" >&2
  cd || exit
fi
eval "$environment" || echo "remote: cannot enter the Python environment" >&2
[ -z "${__failed-}" ] || echo "remote: the prologue in configs.yaml failed (exit code $__failed)" >&2
# On a node of Slurm, which takes the environment along.
run=''
if [ -n "${REMOTE_ALLOCATE+set}" ]; then
  # shellcheck source=src/server/lib/backend_slurm.sh
  . "$remote_program/lib/backend_slurm.sh"
  slurm_tools || {
    echo 'remote: there is no srun on this server: is it the login node of a Slurm cluster?' >&2
    exit 127
  }
  run="srun --pty $REMOTE_ALLOCATE"
  unset REMOTE_ALLOCATE
  set -f # the options are words
fi
# shellcheck disable=SC2086
case ${SHELL##*/} in
  sh | dash | ash | ksh* | mksh | yash)
    exec $run "$SHELL" -i
    ;;
  bash)
    REMOTE_SHELL_PATH=$PATH
    export REMOTE_SHELL_PATH remote_program
    if [ -n "$run" ]; then # descriptors do not reach the node
      REMOTE_SHELL_RC=$bash_rc
      export REMOTE_SHELL_RC
      # shellcheck disable=SC2016
      exec $run "$SHELL" --norc -c 'exec 9<<<"$REMOTE_SHELL_RC"; unset REMOTE_SHELL_RC; exec "$0" --rcfile /dev/fd/9 -i' "$SHELL"
    fi
    exec 9<<END
$bash_rc
END
    exec "$SHELL" --rcfile /dev/fd/9 -i
    ;;
esac
# shellcheck disable=SC2086
exec $run "$SHELL" -l
