# Lists what a launch wrote: results OUTPUT…, files, folders and patterns by their names from $folder, of which those files count that were
# written after $jobs/$first/job.sh and, once all of its jobs ($ids) that are here have ended, not after the last `result` of them. Answers
# with "results file MTIME SIZE |NAME" for each, or "results gone" without that job.sh. A name with a line break is left out, for an
# answer is a line.
# shellcheck shell=sh
# shellcheck disable=SC2154,SC3013

results() {
  # what a login shell's start files printed may lack its last newline
  echo
  rs_since=$jobs/$first/job.sh
  if ! [ -f "$rs_since" ]; then
    echo '@remote1 results gone'
  elif CDPATH='' cd -- "$folder" 2>/dev/null; then
    results_until
    for rs_output; do
      results_of "$rs_output"
    done
  fi
  echo '@remote1 end'
}

results_until() {
  rs_until=
  for rs_id in $ids; do
    [ -d "$jobs/$rs_id" ] || continue
    rs_result=$jobs/$rs_id/result
    if ! [ -f "$rs_result" ]; then
      rs_until=
      break
    elif [ -z "$rs_until" ] || [ "$rs_result" -nt "$rs_until" ]; then
      rs_until=$rs_result
    fi
  done
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
    find -H "./$rs_name" -type f -newer "$rs_since" ${rs_until:+! -newer "$rs_until"} ! -path '*
*' -exec stat -c '@remote1 results file %Y %s |%n' {} + 2>/dev/null
  done
}
