# Finds what fits a pattern: pull_match PATTERN answers with "pull name |NAME" for each file or folder, by its
# name from $folder. One whose name has a line break is left out, for an answer is a line.
# shellcheck shell=sh
# shellcheck disable=SC2154

pull_match() {
  # what a login shell's start files printed may lack its last newline
  echo
  if CDPATH='' cd -- "$folder" 2>/dev/null; then
    set +f
    match_ifs=$IFS
    IFS=
    # shellcheck disable=SC2086  # without IFS it is expanded and not split
    set -- $1
    IFS=$match_ifs
    for match_name; do
      case $match_name in
        *'
'*) continue ;;
      esac
      if [ -e "$match_name" ] || [ -L "$match_name" ]; then
        printf '@remote1 pull name |%s\n' "$match_name"
      fi
    done
  fi
  echo '@remote1 end'
}
