# The copy of this version of the program that jobs run from, in .bin of the jobs' folder: they outlive the version in the cache, and
# nodes of a cluster see it. Part of actions that start something.
# shellcheck shell=sh
# shellcheck disable=SC2154

# keep_program: makes the copy where there is none, into $kept, and $kept_name from .bin on. Nobody but this login may have made
# it, or write to it: a digest as a name says nothing about that.
keep_program() {
  kept_name=$remote_digest
  kept=$jobs/.bin/$kept_name
  if ! kept_is_ours; then
    own_folder .bin
    make_copy 2>/dev/null || {
      rm -rf "$kp_new"
      give_up "cannot write in $jobs (no right to, or the disk is full)"
    }
    kept_is_ours || give_up "other users may change the programs in $jobs/.bin: look at who owns them, and at their modes"
    drop_copies
  fi
  # when it was used last
  true 2>/dev/null >"$kept/used"
}

# own_folder NAME: makes this folder of the jobs' folder, from which something runs. Nobody else may write to the two.
own_folder() {
  [ -d "$jobs/$1" ] || mkdir -p "$jobs/$1" 2>/dev/null || give_up "cannot write in $jobs: no right to, or the disk is full"
  for of_dir in "$jobs" "$jobs/$1"; do
    [ -O "$of_dir" ] || give_up "$of_dir belongs to another user, who could change what runs from it; remove it, or use another folder"
  done
  ! [ -L "$jobs/$1" ] || give_up "$jobs/$1 is a symbolic link, and programs are run from it: remove it"
  chmod go-w "$jobs" "$jobs/$1" 2>/dev/null
}

# kept_is_ours: whether the copy is whole, is this login's own like the folders that it is in, and nobody else may write to these.
kept_is_ours() {
  [ -O "$jobs" ] && [ -O "$jobs/.bin" ] && [ -O "$kept" ] && ! [ -L "$jobs/.bin" ] && ! [ -L "$kept" ] || return 1
  size_of "$remote_program"
  ko_size=$size
  # shellcheck disable=SC2012  # modes are what is wanted
  ko_modes=$(cd "$kept" && ls -ld . .. ../..) || return 1
  case "
$ko_modes" in
    *'
'?????w* | *'
'????????w*) return 1 ;;
  esac
  size_of "$kept"
  [ "$size" = "$ko_size" ]
}

# size_of FOLDER: the bytes of a version's files, into $size; files of others, or that they may write to, count for nothing.
size_of() {
  size=0
  [ -n "$own_uid" ] || own_uid
  # shellcheck disable=SC2012,SC2046,SC2035  # no odd names here
  set -- $(cd "$1" && ls -ldn main.sh */*.sh */*.py)
  while [ $# -ge 9 ]; do
    case $1 in
      -???????w* | -????w*) ;;
      *) [ "$3" != "$own_uid" ] || size=$((size + $5)) ;;
    esac
    shift 9
  done
} 2>/dev/null

# make_copy: by rename. Machines with one home may do this at once; what was there before somebody else may have made.
make_copy() {
  kp_new=$(mktemp -d "$jobs/.bin/.new.XXXXXX") || return
  (cd "$remote_program" && cp -R main.sh actions lib python "$kp_new") && chmod -R u=rwX,go= "$kp_new" || return
  if [ -e "$kept" ] && ! kept_is_ours; then
    mkdir "$kp_new.old" && mv "$kept" "$kp_new.old/" && rm -rf "$kp_new.old" || return
  fi
  mv -T "$kp_new" "$kept" || rm -rf "$kp_new"
}

# drop_copies: those that were used for nothing in the last month, and that no job's folder names.
drop_copies() {
  for dc_used in "$jobs"/.bin/*/used; do
    dc_dir=${dc_used%/used}
    if [ -n "$(find "$dc_used" -prune -mtime +30 2>/dev/null)" ] && ! grep -qsF "/.bin/${dc_dir##*/}" "$jobs"/*/job.sh; then
      rm -rf "$dc_dir"
    fi
  done
}
