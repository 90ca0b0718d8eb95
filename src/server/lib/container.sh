#!/bin/sh
# The containers of jobs, from outside: remote-ID, made by container_job.sh. Part of every script about jobs, and of the
# supervisor. Only a container of that very name is ever touched. Set before it: jobs.
# shellcheck disable=SC2034,SC2154,SC3013  # variables are shared between the parts; all shells here know -ef

# box_of ID: the engine that has the job's container, into $box_engine. Fails where no engine would know it by a name:
# the processes of apptainer are the client's own.
box_of() {
  box_engine=
  read -r _ box_engine 2>/dev/null <"$jobs/$1/container" || return 1
  case $box_engine in
    docker | podman) ;;
    *) return 1 ;;
  esac
}

# ask_engine ID WORD…: runs the engine's client as the job did. One that hangs is given up after a while.
ask_engine() {
  ae_file=$jobs/$1/container
  shift
  (
    while read -r ae_name ae_value; do
      case $ae_name in
        engine) engine=$ae_value ;;
        PATH | HOME | XDG_RUNTIME_DIR | TMPDIR | DOCKER_* | CONTAINER*)
          case $ae_name in
            *[!A-Z_]*) ;;
            *) export "$ae_name=$ae_value" ;;
          esac
          ;;
      esac
    done <"$ae_file"
    unset REMOTE_JOB_ID
    limit=
    command -v timeout >/dev/null && limit='timeout 20'
    exec $limit "$engine" "$@"
  ) </dev/null 2>/dev/null
}

# list_boxes ID…: which of these jobs' containers there are, into $boxes: " ID:up ID:down ". What runs is up; so is all of
# an engine that does not answer, for nothing proves that it is gone.
list_boxes() {
  boxes=' ' lb_record='' lb_end='
'
  for lb_id; do
    box_of "$lb_id" || continue
    lb_text=$box_engine
    while read -r lb_line; do
      lb_text=$lb_text$lb_end$lb_line
    done <"$jobs/$lb_id/container"
    if [ "$lb_text" != "$lb_record" ]; then
      lb_record=$lb_text
      lb_found=$(ask_engine "$lb_id" ps --all --no-trunc --filter name=remote- --format '{{.Names}} {{.Status}}') ||
        lb_found=silent
    fi
    case $lb_end$lb_found$lb_end in
      "${lb_end}silent$lb_end" | *"${lb_end}remote-$lb_id "Up* | *"${lb_end}remote-$lb_id "Paused* | \
        *"${lb_end}remote-$lb_id "Restarting* | *"${lb_end}remote-$lb_id "[Ss]topping*) boxes="$boxes$lb_id:up " ;;
      *"${lb_end}remote-$lb_id "*) boxes="$boxes$lb_id:down " ;;
    esac
  done
}

# box_up ID: whether the job's container runs.
box_up() {
  [ -z "$no_forks" ] && box_of "$1" || return 1
  list_boxes "$1"
  case $boxes in
    *" $1:up "*) ;;
    *) return 1 ;;
  esac
}

# remove_box ID: ends and removes the job's container, where there is one.
remove_box() {
  # podman's rm waits for what does not end by TERM
  ask_engine "$1" kill --signal KILL "remote-$1" >/dev/null
  ask_engine "$1" rm --force "remote-$1" >/dev/null
}

# signal_box SIGNAL ID MEMBER…: a signal to all processes of a container whose processes this login may not signal itself, as they
# run as another user. Those that are among the members got it like any other.
signal_box() {
  sb_signal=$1 sb_id=$2
  shift 2
  if [ "$sb_signal" = 9 ]; then
    remove_box "$sb_id"
    signalled "$sb_id"
    return
  fi
  recall "box_sent_$sb_id"
  [ "$recalled" != "$sb_signal" ] || return
  store "box_sent_$sb_id" "$sb_signal"
  for sb_member; do
    case $sb_member in
      [0-9]*:"$sb_id") [ "/proc/${sb_member%%:*}/ns/pid" -ef /proc/self/ns/pid ] || return ;;
    esac
  done
  ask_engine "$sb_id" exec "remote-$sb_id" sh -c "kill -$sb_signal -1" >/dev/null
  signalled "$sb_id"
}
