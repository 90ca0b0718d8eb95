# How a process ended: the record `KIND CODE MS BY` of docs/protocol.md. Whatever of sh writes or reads one does it here.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables are shared between the parts

# moment: milliseconds since the epoch, into $ms; whole seconds where date knows no parts. Fails where no process can be started.
moment() {
  ms=$(date +%s%3N) || return
  case $ms in
    *[!0-9]* | ??????????) ms=${ms%%[!0-9]*}000 ;;
  esac
}

# ended_by CODE [NOTE]: what a shell's exit code says of its child, into $kind and $code. A shell has 128+N also for a child that exited so,
# but writes a note, such as "Killed", for a signal alone. For SIGINT and SIGPIPE no shell writes one: such a code means the signal, in all
# likelihood. Of a container's first process nobody writes one: 137 is a KILL there.
ended_by() {
  kind='exit' code=$1
  [ "$code" -gt 128 ] && [ "$code" -le 192 ] || return 0
  if [ -n "${2-}" ] || [ "$code" = 130 ] || [ "$code" = 141 ] || { [ "$code" = 137 ] && [ -e container ]; }; then
    kind=signal code=$((code - 128))
  fi
}

# end_record KIND CODE MS BY: the record, into $end.
end_record() {
  end="$1 $2 $3 $4"
}

# read_end: the record on stdin, into f_end (its KIND), f_code, f_ms and f_by. Fails where there is none. In those of older builds the time is
# in seconds, perhaps with parts, or missing; BY is missing, or the node of a rank of Slurm.
read_end() {
  read -r f_end f_code f_ms f_by _ || f_end=
  case $f_end in
    exit | signal | never) ;;
    *) f_code=- ;;
  esac
  case $f_code in
    '' | *[!0-9]* | ????*)
      f_end='' f_code='' f_ms='' f_by=''
      return 1
      ;;
  esac
  case $f_ms in
    *.[0-9][0-9][0-9]) f_ms=${f_ms%.*}${f_ms#*.} ;;
    '' | ????????????*) ;;
    *) f_ms=${f_ms}000 ;;
  esac
  case $f_ms in
    *[!0-9]* | ??????????????*) f_ms= ;;
  esac
  case $f_by in
    '' | *[!A-Za-z0-9._@-]*) f_by=- ;;
    - | *@* | supervisor | kill | claim | slurm | mpirun | torchrun) ;;
    *) f_by=-@$f_by ;;
  esac
}
