# How the ranks of a job that has several have ended: workers ID LINES. What it reads is written by sitecustomize.py and
# torch_agent.py under torchrun, by mpi_rank.sh under mpirun, and by slurm_job.sh under Slurm.
# A job writes these files itself, so that nothing in them is believed to be more than numbers and lines of text.
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/actions/status.sh
. "$remote_program/actions/status.sh"
# shellcheck source=src/server/lib/attempts.sh
. "$remote_program/lib/attempts.sh"

# are_numbers WORD…
are_numbers() {
  for an_word; do
    case $an_word in
      '' | *[!0-9]* | ??????????????*) return 1 ;;
    esac
  done
}

# text_of RANK LINES: the last of the lines on stdin.
text_of() {
  tail -c 65536 | tail -n "$2" | of_last_attempt | cut -b -2000 | LC_ALL=C sed "s/^/@remote1 text $1 |/"
}

# raised RANK FILE LINES: the first line of the file says when, in milliseconds; the others are a traceback.
raised() {
  rs_at=
  read -r rs_at <"$2"
  are_numbers "$1" "$rs_at" || return 0
  rs_peer=0
  tells_of_peer "$2" && rs_peer=1
  say "raised $1 $rs_at $rs_peer"
  tail -n +2 "$2" | text_of "$1" "$3"
}

# exited RANK LINES: the record that read_end has read. Where the rank raised nothing, its last words are those on its stderr.
exited() {
  ex_err=../ranks/$1.err ex_peer=0
  if [ -f "rank.$1" ]; then
    ex_err=rank.$1
  elif [ -f "$ex_err" ] && ! [ -L "$ex_err" ]; then
    text_of "$1" "$2" <"$ex_err"
  fi
  tells_of_peer "$ex_err" && ex_peer=1
  say "exited $1 $f_end:$f_code:$f_ms:$f_by $ex_peer"
}

workers() {
  cd "$jobs/$1/failures" 2>/dev/null || return 0
  for wk_file in rank.*; do
    [ -f "$wk_file" ] && raised "${wk_file#rank.}" "$wk_file" "$2"
  done
  [ -f agent ] || return 0
  wk_seen=' '
  head -c 65536 agent | while read -r wk_rank wk_end; do
    case $wk_seen in *" $wk_rank "*) continue ;; esac
    if read_end <<END && are_numbers "$wk_rank" "$f_ms"; then
$wk_end
END
      wk_seen="$wk_seen$wk_rank "
      exited "$wk_rank" "$2"
    fi
  done
}
