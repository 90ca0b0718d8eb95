#!/bin/sh
# What logind does with this login's processes when it logs out: a part of actions/facts.sh (src/servers/facts.cpp judges it). logind ends
# the session's scope, so only what is in one is ended (pam_systemd(8), logind.conf(5)): the kernel says it of this process, also in a
# container whose sshd asks no logind.
# shellcheck disable=SC2154

# Drop-ins are taken in the order in which systemd reads them, but for folders that mix names.
tell_logind() {
  tl_session=
  if [ -r "$root/proc/self/cgroup" ]; then
    while read -r tl_line; do
      case $tl_line in */session-*.scope | */session-*.scope/*) tl_session=yes ;; esac
    done <"$root/proc/self/cgroup"
  fi
  [ -z "$tl_session" ] || fact 'session yes'
  [ -d "$root/run/systemd/system" ] || return 0
  tl_kills='' tl_excluded='' tl_only=''
  for tl_file in "$root/usr/lib/systemd/logind.conf" "$root/etc/systemd/logind.conf" "$root"/usr/lib/systemd/logind.conf.d/*.conf \
    "$root"/run/systemd/logind.conf.d/*.conf "$root"/etc/systemd/logind.conf.d/*.conf; do
    [ -r "$tl_file" ] || continue
    while IFS='= 	' read -r tl_name tl_value || [ -n "$tl_name" ]; do # the last line may have no newline
      case $tl_name in
        KillUserProcesses) tl_kills=$tl_value ;;
        KillExcludeUsers) tl_excluded=$tl_value ;;
        KillOnlyUsers) tl_only=$tl_value ;;
      esac
    done <"$tl_file"
  done
  case $tl_kills in
    [Yy][Ee][Ss] | [Tt][Rr][Uu][Ee] | [Oo][Nn] | 1 | [Yy] | [Tt]) fact 'kill_user_processes yes' ;;
  esac
  [ -z "$tl_excluded" ] || fact "kill_excluded $tl_excluded"
  [ -z "$tl_only" ] || fact "kill_only $tl_only"
}
