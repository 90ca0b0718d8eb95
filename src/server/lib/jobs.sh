# What every action on jobs begins with. Set by the client: project, the project's folder; jobs, that of its jobs.
# shellcheck shell=sh
# shellcheck disable=SC2154

# Of two actions in one script each sources this.
[ "${remote_jobs_of-}" != $$ ] || return 0
remote_jobs_of=$$
# shellcheck source=src/server/lib/lib.sh
. "$remote_program/lib/lib.sh"
# shellcheck source=src/server/lib/end.sh
. "$remote_program/lib/end.sh"
# shellcheck source=src/server/lib/room.sh
. "$remote_program/lib/room.sh"
# shellcheck source=src/server/lib/processes.sh
. "$remote_program/lib/processes.sh"
# shellcheck source=src/server/lib/second.sh
. "$remote_program/lib/second.sh"
# shellcheck source=src/server/lib/init_file.sh
. "$remote_program/lib/init_file.sh"
# shellcheck source=src/server/lib/container.sh
. "$remote_program/lib/container.sh"
# shellcheck source=src/server/lib/backend_local.sh
. "$remote_program/lib/backend_local.sh"
