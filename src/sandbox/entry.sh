# Run by every session of a practice server, as ForceCommand; written by `remote sandbox up`. The user may have any login shell, and the
# command must have the same meaning in all of them, so the path of this file is passed in a variable.
# shellcheck shell=sh
unset REMOTE_SANDBOX_ENTRY SHLVL
cd "$HOME" || exit 1
if [ -z "${SSH_ORIGINAL_COMMAND+set}" ]; then
  exec "$SHELL"
fi
command=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$command"
