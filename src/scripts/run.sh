# Runs one command in the foreground of an SSH channel; after guard.sh. Set before: project, command, enter().
# shellcheck shell=sh
# shellcheck disable=SC2154
cd -- "$project" 2>/dev/null || {
  echo "remote: the project's folder $project is not on this server; run: remote rsync" >&2
  exit 127
}
enter || exit 127
if command -v bash >/dev/null 2>&1; then
  exec bash -c -- "$command"
fi
exec sh -c -- "$command"
