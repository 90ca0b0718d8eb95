# Part of supervisor.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154

# open_ranks: MPICH's mpirun kills a rank together with its mpi_rank.sh, which could not put the end on record (also for MPI_Abort, of which
# only a line on the rank's stderr tells). Records it at $ended, the job's end; the code of MPI_Abort is then the job's $code.
open_ranks() {
  mkdir -p failures || return 0
  or_tries=0
  for or_file in open.rank.*; do
    or_rank=${or_file#open.rank.}
    read -r or_pid or_earlier or_label <"$or_file" || continue
    case "$or_rank$or_pid$or_earlier$or_label" in
      *[!0-9]*) continue ;;
    esac
    ! kill -0 "$or_pid" 2>/dev/null || continue # it tells its end itself
    # its last words may be on their way
    while kill -0 "$or_label" 2>/dev/null && [ $or_tries -lt 100 ]; do
      or_tries=$((or_tries + 1))
      sleep 0.02
    done
    or_words=ranks/$or_rank.err
    [ -f "$or_words" ] || or_words=job.err
    {
      printf '%s\n' "$ended"
      tail -c "+$((or_earlier + 1))" "$or_words" | tail -c 16384 | tail -n 50
    } >"failures/.rank.$or_rank"
    or_code=$(sed -n "s/^Abort(\\([0-9]\\{1,9\\}\\)) on node $or_rank .*/\\1/p" "failures/.rank.$or_rank" | tail -n 1)
    if [ -n "$or_code" ]; then
      code=$((or_code & 255))
      end_record 'exit' "$code" "$ended" mpirun
    else
      end_record signal 9 "$ended" mpirun
      echo 'remote: ended by KILL, as mpirun does it when another rank has failed' >>"failures/.rank.$or_rank"
    fi
    mv "failures/.rank.$or_rank" "failures/rank.$or_rank" && printf '%s\n' "$or_rank $end" >>failures/agent
  done
}
