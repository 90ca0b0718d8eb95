#!/bin/sh
# What the lifeline kept when the launch stood still (python/lifeline_evidence.py): why_kept ID… of the jobs on this server. It is the answer
# of why.sh at that time, which lib/evidence.sh wrote.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"

why_kept() {
  for wt_id; do
    if ! [ -f "$jobs/$wt_id/why" ] || [ -L "$jobs/$wt_id/why" ]; then continue; fi
    wt_ms='' wt_seconds=''
    read -r wt_ms wt_seconds _ 2>/dev/null <"$jobs/$wt_id/hung" || continue
    case ${#wt_ms}:$wt_ms:$wt_seconds in
      *[!0-9:]* | [0-9]:* | *:) continue ;;
    esac
    say "kept ${wt_ms%???} $wt_seconds"
    sed -n -e '/^@remote1 end$/d' -e '/^@remote1 error /d' -e '/^@remote1 kept /d' -e '/^@remote1 /p' "$jobs/$wt_id/why"
    return
  done
}
