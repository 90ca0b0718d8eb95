# The backend `local`: signals to the members of its jobs, and what is left to close when these are gone.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts

# closing_boxes: containers whose processes are gone, into $closing: their engine removes them. One that is still there after a second
# is removed here.
closing_boxes() {
  [ -n "$boxed" ] && [ -z "$no_forks" ] || return 0
  # shellcheck disable=SC2086
  [ -n "$members_local" ] || list_boxes $boxed
  for cb_id in $boxed; do
    case "$members_local " in
      *" container:remote-$cb_id:"*) continue ;;
    esac
    case $boxes in
      *" $cb_id:"*) closing="$closing container:remote-$cb_id:$cb_id" ;;
      *) continue ;;
    esac
    case "$members_local " in
      *":$cb_id "*) continue ;;
    esac
    recall "box_since_$cb_id"
    if [ -z "$recalled" ]; then
      store "box_since_$cb_id" "$clock"
    elif [ $((clock - recalled)) -ge 100 ]; then
      remove_box "$cb_id"
    fi
  done
}

# local_signal SIGNAL MEMBER…: to those that have not had it, then CONT, without which a stopped process never sees it.
# A last look at pid and start time keeps the time in which a pid could be reused to microseconds. Jobs' main processes come
# first: one that waits for a child would end by itself when that is gone, as if it had not been killed.
local_signal() {
  sd_signal=$1
  shift
  sd_members=''
  for sd_member; do
    recall "main_${sd_member##*:}"
    if [ "${sd_member%%:*}" = "$recalled" ]; then
      sd_members="$sd_member $sd_members"
    else
      sd_members="$sd_members $sd_member"
    fi
  done
  # shellcheck disable=SC2086
  set -- $sd_members
  for sd_member; do
    case $sd_member in
      container:*)
        # shellcheck disable=SC2086
        signal_box "$sd_signal" "${sd_member##*:}" $sd_members
        continue
        ;;
    esac
    IFS=:
    # shellcheck disable=SC2086
    set -- $sd_member
    IFS=$blanks
    recall "sent_$1"
    sd_had=$recalled
    if [ "$sd_signal" != 9 ] && [ "$sd_had" = "$2:$sd_signal" ]; then
      continue
    fi
    if alive "$1" "$2" && kill "-$sd_signal" "$1" 2>/dev/null; then
      [ "$sd_signal" = 9 ] || kill -s CONT "$1" 2>/dev/null
      [ "${sd_had%%:*}" = "$2" ] || signalled "$3"
      store "sent_$1" "$2:$sd_signal"
    fi
  done
}

# supervisors ID…: looks after those whose job is gone, into $closing. They end by themselves within milliseconds; one
# that has not after two seconds (it was stopped, or its disk is full) is ended too.
supervisors() {
  for sp_id; do
    recall "sup_$sp_id"
    sp_pid=$recalled
    recall "sup_start_$sp_id"
    sp_start=$recalled
    alive "$sp_pid" "$sp_start" || continue
    closing="$closing $sp_pid:$sp_start:$sp_id"
    case "$members_local " in
      *":$sp_id "*) continue ;;
    esac
    kill -s CONT "$sp_pid" 2>/dev/null
    recall "quiet_$sp_id"
    if [ -z "$recalled" ]; then
      store "quiet_$sp_id" "$clock"
    elif [ $((clock - recalled)) -ge 150 ]; then
      kill -s KILL "$sp_pid" 2>/dev/null
    fi
  done
}
