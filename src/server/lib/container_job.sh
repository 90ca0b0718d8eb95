# The functions of a job.sh whose command runs in a container; behind job.sh. That file runs twice: on the server, where
# box_enter makes the job's process the client of the container engine, and once more inside, where box_inside and what follows it
# run the command. "Box" is short for the job's container here.
# shellcheck shell=sh

# box_options WORD PATTERN…: whether one of the WORDs behind `--` is one of these options, alone or with =VALUE.
box_options() {
  bo_names=
  while [ "$1" != -- ]; do
    bo_names="$bo_names $1"
    shift
  done
  shift
  for bo_word; do
    case "$bo_names " in
      *" ${bo_word%%=*} "*) return 0 ;;
    esac
  done
  return 1
}

# box_record ENGINE: how the engine is reached, for those who look after the job later: they have no variables of the job's. Under Slurm
# the start has said it already.
# shellcheck disable=SC2154  # set by `eval`
box_record() {
  [ ! -s "$box_here/container" ] || return 0
  {
    printf '%s\n' "engine $1"
    for br_name in PATH HOME XDG_RUNTIME_DIR TMPDIR DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH \
      CONTAINER_HOST CONTAINERS_CONF CONTAINERS_STORAGE_CONF; do
      eval "br_value=\${$br_name-}"
      [ -z "$br_value" ] || printf '%s\n' "$br_name $br_value"
    done
  } >"$box_here/container"
}

# box_python: a .py file, and an agent of torchrun, are started as `python`, and an image of a distribution may have python3 alone. The file is made
# here, because in the container another user may be at work, whose files this one could not remove.
box_python() {
  [ ! -e "$box_here/bin/python" ] || return 0
  # shellcheck disable=SC2016  # the file expands it
  mkdir -p "$box_here/bin" && printf '#!/bin/sh\nexec python3 "$@"\n' >"$box_here/bin/python.$$" &&
    chmod 755 "$box_here/bin/python.$$" && mv "$box_here/bin/python.$$" "$box_here/bin/python"
} 2>/dev/null

# box_mount PATH: the words that mount it at the same place, into $box_option and $box_value. Commas divide what --mount takes,
# colons what -v and --bind do.
box_mount() {
  case $box_engine:$1 in
    apptainer:*[:,]* | *:*:*,* | *:*,*:*) job_fails "a container cannot be given a folder with this name: $1" ;;
    apptainer:*) box_option=--bind box_value=$1:$1 ;;
    *:*,*) box_option=-v box_value=$1:$1 ;;
    *) box_option=--mount box_value=type=bind,source=$1,target=$1 ;;
  esac
}

# box_enter ENGINE IMAGE ROOTLESS WORD…: becomes the engine's client, which runs this file inside. ROOTLESS: 1 where the engine's
# own root is this login. The words are the user's options of the engine; of most options the last one counts, and those are theirs.
# box_here is the job's folder, box_files what box_outputs is told of it.
# shellcheck disable=SC2154
box_enter() {
  box_engine=$1 box_image=$2 box_rootless=$3
  shift 3
  box_project=$(pwd)
  box_real=$(pwd -P)
  { box_record "$box_engine" && box_python; } || job_fails "cannot write the job's folder: is the disk full?"
  box_gpus=
  [ ! -e /dev/nvidiactl ] || box_options --gpus --device --nv -- "$@" || box_gpus=1
  box_other_network=
  ! box_options --net --network -- "$@" || box_other_network=1
  # shellcheck disable=SC2086  # names without blanks
  set -- "$@" "$box_image" sh "$box_here/job.sh" inside "$HOME" "$(umask)" "$box_project" $box_files
  box_mount "$box_project"
  set -- "$box_option" "$box_value" "$@"
  if [ "$box_real" != "$box_project" ]; then
    box_mount "$box_real"
    set -- "$box_option" "$box_value" "$@"
  fi
  case $box_here in
    "$box_real"/*) ;;
    *)
      box_mount "$box_here"
      set -- "$box_option" "$box_value" "$@"
      ;;
  esac
  case $remote_program in
    "$box_real"/*) ;;
    *)
      box_mount "$remote_program"
      set -- "$box_option" "$box_value" "$@"
      ;;
  esac
  # The launch's shared file (init_file.sh) may lie elsewhere.
  box_shared=
  [ ! -f "$box_here/init_file" ] || { read -r _ && IFS= read -r box_shared; } <"$box_here/init_file" || box_shared=
  case $box_shared in
    '' | "$box_project"/* | "$box_real"/*) ;;
    *)
      box_mount "$box_shared"
      set -- "$box_option" "$box_value" "$@"
      ;;
  esac
  case $box_engine in
    apptainer) box_apptainer "$@" ;;
    *) box_run "$@" ;;
  esac
}

# box_apptainer WORD…, box_run WORD…: becomes the client; the words are options, image and command.
box_apptainer() {
  command -v apptainer >/dev/null 2>&1 || box_engine=singularity
  # Nobody has asked a node of Slurm before.
  command -v "$box_engine" >/dev/null 2>&1 ||
    job_fails "there is no apptainer on $(hostname): install it there, or let \`prologue\` in configs.yaml load it"
  case $box_image in
    *://*) ;;
    *) [ -e "$box_image" ] || job_fails "there is no image $box_image on $(hostname): put it where this server sees it" ;;
  esac
  box_client exec --cleanenv --env "REMOTE_JOB_ID=$REMOTE_JOB_ID" --pwd "$box_project" ${box_gpus:+--nv} "$@"
}

box_run() {
  case $box_engine:$box_gpus in
    docker:1) set -- --gpus all "$@" ;;
    podman:1) set -- --device nvidia.com/gpu=all "$@" ;;
  esac
  [ -n "$box_other_network" ] || set -- --network host "$@"
  # podman without root mounts /dev/mqueue for --ipc, and fails without one
  if [ "$box_engine:$box_rootless" = podman:1 ] && ! [ -e /dev/mqueue ]; then
    set -- -v /dev/shm:/dev/shm "$@"
  else
    set -- --ipc host "$@"
  fi
  if [ "$box_engine" = docker ] && [ -z "$box_rootless" ]; then
    for box_group in $(id -G); do
      set -- --group-add "$box_group" "$@"
    done
  fi
  if [ "$box_engine$box_rootless" = docker1 ]; then
    set -- --user 0:0 "$@"
  else
    set -- --user "$(id -u):$(id -g)" "$@"
  fi
  [ "$box_engine:$box_rootless" != podman:1 ] || set -- --userns keep-id "$@"
  # --entrypoint '': what an image does at its start may print, or run something else
  box_client run --rm --name "remote-$REMOTE_JOB_ID" --pull never --log-driver none --security-opt label=disable \
    --entrypoint '' --env "REMOTE_JOB_ID=$REMOTE_JOB_ID" --workdir "$box_project" "$@"
}

box_client() {
  # The client is known by its pid. A helper that it leaves behind for all containers of the login is none of the job's.
  unset REMOTE_JOB_ID
  exec "$box_engine" "$@"
}

# box_inside HOME UMASK NOTE: inside, as the container's first process. That one gets no signal that it does not catch, so the
# command is a child of it, in the foreground, as it is one of the supervisor outside (supervisor.sh). The shell's stderr is
# the supervisor's note.
box_inside() {
  box_home=$1
  umask "$2"
  trap : HUP INT QUIT USR1 USR2 PIPE ALRM TERM
  cd "${0%/*}" || job_fails "the container has no folder ${0%/*}"
  exec 3>&2
  exec 2>/dev/null
  [ ! -w "$3" ] || command exec 2<>"$3"
}

# box_outputs PROJECT OUT ERR NOTE VARIABLES: in the child. The outputs are the job's own files, so no engine stands between. VARIABLES: a
# file with those that the job is given on its node, -: none.
box_outputs() {
  exec 2>&3 3>&-
  if [ -w "$2" ] && [ -w "$3" ]; then
    command exec >>"$2" 2>>"$3"
  fi
  # shellcheck disable=SC1090
  [ "$5" = - ] || . "./$5" || job_fails 'cannot read the variables of this rank inside the container'
  [ -n "${HOME-}" ] && [ "$HOME" != / ] && [ -w "$HOME" ] || HOME=/tmp
  export HOME
  cd "$1" || job_fails 'cannot enter the project folder inside the container'
}

# box_activate TEXT: as job_activate; the paths in it may be those of the home folder outside.
box_activate() {
  box_own_home=$HOME
  HOME=$box_home
  job_activate "$1"
  HOME=$box_own_home
  command -v python >/dev/null 2>&1 || PATH=$PATH:${0%/*}/bin
  export PATH
}

# box_workdir PATH: where the command runs, if not in the project's folder and nobody said otherwise (job_workdir).
box_workdir() {
  [ -z "${REMOTE_WORKDIR-}" ] || return 0
  cd "$1" || job_fails "the container has no folder $1 (workdir in configs.yaml)"
}
