# The backend `local`: a job is a supervisor and its processes on this machine. docs/protocol.md tells what a backend is.
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/backend_local_start.sh
. "$remote_program/lib/backend_local_start.sh"
# shellcheck source=src/server/lib/backend_local_state.sh
. "$remote_program/lib/backend_local_state.sh"
# shellcheck source=src/server/lib/backend_local_members.sh
. "$remote_program/lib/backend_local_members.sh"
# shellcheck source=src/server/lib/backend_local_look.sh
. "$remote_program/lib/backend_local_look.sh"
# shellcheck source=src/server/lib/backend_local_end.sh
. "$remote_program/lib/backend_local_end.sh"
