# Lists what a launch wrote: results OUTPUT…, files, folders and patterns by their names from $folder, of which those files count that were
# written after the file $since. Answers with "results file MTIME SIZE |NAME" for each, or "results gone" where there is no such file.
# A name with a line break is left out, for an answer is a line.
# shellcheck shell=sh
# shellcheck disable=SC2154

results() {
  # what a login shell's start files printed may lack its last newline
  echo
  if ! [ -f "$since" ]; then
    echo '@remote1 results gone'
  elif CDPATH='' cd -- "$folder" 2>/dev/null; then
    for rs_output; do
      results_of "$rs_output"
    done
  fi
  echo '@remote1 end'
}

results_of() {
  set +f
  rs_ifs=$IFS
  IFS=
  # shellcheck disable=SC2086  # without IFS it is expanded and not split
  set -- $1
  IFS=$rs_ifs
  for rs_name; do
    [ -e "$rs_name" ] || continue
    # a folder that is a link is followed, links in it are not
    find -H "./$rs_name" -type f -newer "$since" ! -path '*
*' -exec stat -c '@remote1 results file %Y %s |%n' {} + 2>/dev/null
  done
}
