# The stacks of a job's processes on the nodes of Slurm: stacks_on_nodes ID, with $inner set to the request that is answered on a node
# (stacks.sh), which runs there as a step of the job beside its own. Lines say of which process they are.
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/backend_slurm.sh
. "$remote_program/lib/backend_slurm.sh"
# shellcheck source=src/server/lib/keep.sh
. "$remote_program/lib/keep.sh"

stacks_on_nodes() {
  facts "$1" || {
    say "ended $1"
    return
  }
  keep_program
  slurm_ask 0
  [ -z "$slurm_trouble" ] || give_up "$slurm_trouble"
  if [ -n "$f_end" ] || ! slurm_row "$1" || [ "$slurm_state" != RUNNING ]; then
    say "ended $1"
    return
  fi
  so_err=$f_dir/.stacks.$$
  so_answer=$(
    # one node after the other, as all processes of the job write their stacks into one file
    for so_node in $(scontrol show hostnames "$slurm_nodes" 2>/dev/null); do
      printf '%s\n' "$inner" | (umask 077 && slurm_call 20 srun --jobid="$slurm_number" --overlap --mem=0 --cpu-bind=none --mpi=none \
        --nodes=1 --ntasks=1 --nodelist="$so_node" sh -c 'remote_program=$0 && . "$0/main.sh"' "$kept" 2>"$so_err") || exit
    done
  )
  so_code=$?
  slurm_last_line "$(head -c 4000 "$so_err" 2>/dev/null)"
  rm -f "$so_err"
  so_answer=$(printf '%s\n' "$so_answer" | grep -a -e '^@remote1 process ' -e '^@remote1 line ')
  if [ -n "$so_answer" ]; then
    printf '%s\n' "$so_answer"
  elif [ $so_code = 0 ]; then
    say "ended $1"
  else
    give_up "srun could not look into the job on its nodes${slurm_line:+: $slurm_line}"
  fi
}
