# What a session of a practice server runs; written by `remote sandbox up`. Every session begins here, as ForceCommand.
# The login shell of the user may be any, and what it is given has to mean the same in all of them, so the path of this
# file comes as a variable.
# shellcheck shell=sh
unset REMOTE_SANDBOX_ENTRY SHLVL
cd "$HOME" || exit 1
if [ -z "${SSH_ORIGINAL_COMMAND+set}" ]; then
  exec "$SHELL"
fi
command=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$command"
