# The shared file of a launch (--init-method file), by which its ranks find each other: `store`, which torch makes (`store.N` after N restarts), in a
# folder of the launch's own. Beside it stand `launch`, which has the launch's id, and `ended.ID` for each job that has ended.
# Part of the supervisor, and of every script about jobs.
# shellcheck shell=sh

# leave_init_file JOB_FOLDER: this job has ended, and needs the file no longer; the last job of the launch removes it. Earlier
# would be too early: a rank may end well while others still look up something in the file, and torch makes it anew then.
# In a subshell, as it goes elsewhere: once inside, nobody can put another folder in its place, and `launch` tells that this
# one is the launch's.
leave_init_file() {
  [ -s "$1/init_file" ] && [ -z "${no_forks-}" ] || return 0
  (
    {
      read -r li_count && IFS= read -r li_folder
    } <"$1/init_file" || exit
    cd -P -- "$li_folder" && read -r li_id <launch && [ "$li_id" = "${li_folder##*/.remote-init-}" ] || exit
    umask 077
    command : >"./ended.${1##*/}"
    set -- ended.*
    [ $# -ge "$li_count" ] || exit
    rm -f store store.* ended.* launch
    cd / && rmdir -- "$li_folder"
  ) 2>/dev/null
  return 0
}
