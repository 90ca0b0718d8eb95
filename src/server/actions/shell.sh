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
case ${SHELL##*/} in
  sh | dash | ash | ksh* | mksh | yash)
    exec "$SHELL" -i
    ;;
  bash)
    REMOTE_SHELL_PATH=$PATH
    export REMOTE_SHELL_PATH remote_program
    exec 9<<END
$bash_rc
END
    exec "$SHELL" --rcfile /dev/fd/9 -i
    ;;
esac
exec "$SHELL" -l
