# Puts this version of the program on the server, and runs the request. A client sends this text, the archive and the request over
# the channel whose command has answered "need" (src/ssh/program_channel.cpp). Set before: remote_digest, remote_program (where the
# version belongs), remote_size (bytes of the archive); r_good checks that what is there is complete and belongs to nobody else; r_here
# reports that the request begins.
# In braces, so that nothing runs of a text that is cut off.
# shellcheck shell=sh
# shellcheck disable=SC2154
{
  remote_umask=$(umask)
  umask 077

  remote_fail() {
    printf '@remote1 error %s\n' "$1"
    exit 1
  }

  # remote_room PARENT: makes a folder there that takes the archive and what is in it, into $remote_new.
  remote_room() {
    remote_new=$(mktemp -d "$1/.remote-new.XXXXXX") || return 1
    dd if=/dev/zero of="$remote_new/room" bs=4096 count=256 && rm "$remote_new/room" && return
    rm -rf "$remote_new"
    return 1
  } 2>/dev/null

  # remote_home CACHE: the same in the home folder, where that may be written, and versions may be run from.
  remote_home() {
    [ -n "$HOME" ] && mkdir -p "$1" 2>/dev/null && [ -O "$1" ] || return 1
    [ ! -L "$1" ] && chmod 700 "$1" && remote_room "$1"
  }

  # The archive from stdin to FILE, and not a byte more: the request follows. By a slow link it may take minutes: an empty line for each
  # piece is a sign of life.
  remote_take() {
    remote_left=$((remote_size / 8192))
    while [ $remote_left -gt 0 ]; do
      { dd bs=8192 count=1 iflag=fullblock || dd bs=1 count=8192; } >>"$1"
      remote_left=$((remote_left - 1))
      echo
    done
    dd bs=1 count=$((remote_size % 8192)) >>"$1"
  } 2>/dev/null

  # The same for each file: storage may be slow, too.
  remote_unpack() {
    gzip -dc <"$remote_new/archive" | (cd "$remote_new" && tar -xvf - && echo .whole) | {
      while read -r remote_name && [ "$remote_name" != .whole ]; do echo; done
      [ "$remote_name" = .whole ]
    }
  }

  # remote_keep CACHE: gives the new folder its place. Another client may do the same at this moment, and be quicker.
  remote_keep() {
    if ! r_good && { [ -e "$remote_program" ] || [ -L "$remote_program" ]; }; then
      mkdir "$remote_new.old" && mv "$remote_program" "$remote_new.old/"
      rm -rf "$remote_new.old"
    fi
    mv -T "$remote_new" "$remote_program" 2>/dev/null || rm -rf "$remote_new"
    # versions that nobody has run for a month, and what an interrupted client left; running jobs have copies of theirs
    for remote_old in "$1"/*/used "$1"/.remote-new.*; do
      case $(find "$remote_old" -prune -mtime +30 2>/dev/null) in
        */used) rm -rf "${remote_old%/used}" ;;
        ?*) rm -rf "$remote_old" ;;
      esac
    done
  }

  for remote_tool in gzip tar mktemp sha256sum; do
    command -v "$remote_tool" >/dev/null 2>&1 ||
      remote_fail "it has no program $remote_tool, which unpacks the server's side of remote: install it there"
  done
  remote_cache=${remote_program%/*} remote_temporary=
  if ! remote_home "$remote_cache"; then
    remote_temporary=1 remote_new=
    for remote_parent in "${XDG_RUNTIME_DIR:-/dev/shm}" /dev/shm /tmp /var/tmp; do
      remote_room "$remote_parent" && break
      remote_new=
    done
    [ -n "$remote_new" ] ||
      remote_fail "no folder there takes the server's side of remote: the home folder, /dev/shm, /tmp and /var/tmp are full or read-only"
  fi
  remote_take "$remote_new/archive"
  remote_sum=$(sha256sum <"$remote_new/archive")
  if [ "${remote_sum%% *}" != "$remote_digest" ] || ! remote_unpack; then
    rm -rf "$remote_new"
    remote_fail "what was sent of the server's side of remote did not arrive whole"
  fi
  rm "$remote_new/archive"
  true >"$remote_new/used"
  r_here
  if [ -z "$remote_temporary" ]; then
    remote_keep "$remote_cache"
    r_good || remote_fail "$remote_program cannot be used: look at its owner and its mode"
    umask "$remote_umask"
    . "$remote_program/main.sh"
  else
    umask "$remote_umask"
    # In a process of its own, as it may become another program; this one only removes the folder.
    trap : HUP INT PIPE TERM
    (
      remote_program=$remote_new
      . "$remote_program/main.sh"
    )
    remote_status=$?
    rm -rf "$remote_new"
    exit $remote_status
  fi
}
