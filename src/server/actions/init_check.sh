#!/bin/sh
# Before a launch with a shared file (init_file.sh): init_make on the first server makes its folder, then init_see on each of
# the others looks whether it is there. Not both at once: over NFS, a server that has looked too early may believe for half a
# minute that there is no such folder. init_drop removes the folder when nothing was started.
# shellcheck disable=SC2154  # $folder is set before
LC_ALL=C
export LC_ALL

init_end() {
  echo '@remote1 end'
}

# init_fail TEXT: the text may have an error message in it.
init_fail() {
  printf '@remote1 init fail %s\n' "$(printf '%s' "$1" | tr '\000-\037\177' '?')"
  init_end
  exit 0
}

# init_make ID MAKE(0|1): with MAKE, the folder that it stands in is made, too.
init_make() {
  if ! [ -d "$folder" ]; then
    [ "$2" = 1 ] || init_fail "there is no folder $folder"
    im_why=$(mkdir -p -- "$folder" 2>&1) || init_fail "$im_why"
  fi
  cd -- "$folder" || init_fail "no right to enter $folder"
  im_why=$(mkdir -m 700 -- ".remote-init-$1" 2>&1) || init_fail "cannot write in $folder: ${im_why##*: }"
  if ! im_why=$( (printf '%s\n' "$1" >".remote-init-$1/launch") 2>&1); then
    rmdir ".remote-init-$1" 2>/dev/null
    init_fail "cannot write in $folder: ${im_why##*: }"
  fi
  init_tell "$1"
}

# init_see ID NAME: NAME is the server that made it.
init_see() {
  [ -d "$folder" ] || init_fail "there is no folder $folder"
  cd -- "$folder" || init_fail "no right to enter $folder"
  [ -d ".remote-init-$1" ] || init_fail "$folder is not the same folder as on $2: what $2 wrote there is not visible"
  init_tell "$1"
}

# init_tell ID: torch opens the file for reading and writing, and locks it; so that is tried.
init_tell() {
  cd -- ".remote-init-$1" || init_fail "no right to enter what was made in $folder: does another user log in here?"
  it_found=
  read -r it_found 2>/dev/null <launch || init_fail "cannot read in $folder what was written there"
  [ "$it_found" = "$1" ] || init_fail "what is read in $folder is not what was written there"
  { :; } 2>/dev/null 9<>launch || init_fail "cannot write in $folder"
  if command -v flock >/dev/null && command -v timeout >/dev/null; then
    timeout 10 flock -x 9 9<>launch || init_fail "$folder has no file locks (flock), which torch needs"
  fi
  printf '@remote1 init at %s\n' "$PWD"
}

# init_drop ID: nothing but what is ours, and only where that is all.
init_drop() {
  cd -P -- "$folder/.remote-init-$1" 2>/dev/null && read -r id_found 2>/dev/null <launch && [ "$id_found" = "$1" ] || return 0
  rm -f store ended.* launch
  cd .. && rmdir ".remote-init-$1"
}
