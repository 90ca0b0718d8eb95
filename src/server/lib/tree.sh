# The tree that a frozen launch runs in (python/tree.py): which jobs need it, and when they have ended. Part of start.sh, clean.sh and
# the supervisor. In .trees of the jobs' folder: DIGEST, the tree; DIGEST.jobs, a file for each job, which ends in `.done` once that has
# ended; `python`, the program that tree.py runs with.
# shellcheck shell=sh
# shellcheck disable=SC2154

# tree_use JOB_FOLDER: the job needs its tree from now on. The file says on which machine it runs: several may share the folder.
tree_use() {
  [ -f "$1/tree" ] || return 0
  read -r tu_tree <"$1/tree" && read -r tu_host </proc/sys/kernel/hostname &&
    printf '%s\n' "$tu_host" >"${1%/*}/.trees/$tu_tree.jobs/${1##*/}" && rm -f "${1%/*}/.trees/$tu_tree.starting"
}

# tree_left: in the folder of the job $id, which has ended; the last one has what was written into the tree carried to the project.
tree_left() {
  [ -f tree ] && read -r tl_tree <tree || return 0
  mv "../.trees/$tl_tree.jobs/$id" "../.trees/$tl_tree.jobs/$id.done"
  for tl_job in "../.trees/$tl_tree.jobs"/*; do
    case $tl_job in
      *.done) continue ;;
    esac
    [ ! -d "../${tl_job##*/}" ] || [ -e "../${tl_job##*/}/result" ] || return 0
  done
  tree_program ..
} 2>/dev/null

# tree_program JOBS_FOLDER [drop]: carries home what ended launches have left; `drop`: and removes the trees that no job needs.
tree_program() {
  [ -s "$1/.trees/python" ] || return 0
  IFS= read -r tp_python <"$1/.trees/python" || return 0
  "$tp_python" -B -I -S "$remote_program/python/tree.py" "${2-land}" "$1" </dev/null >/dev/null 2>&1 || :
}
