#!/bin/sh
# A pretended nvidia-smi, for tests: it answers from the files of the folder FAKE_GPUS (or of the folder `gpus` beside this
# program). Those of driver 580 were recorded on an H100, the others are written from the manual of nvidia-smi(1).
#   gpus.csv  the fields that this driver knows, then a line a GPU
#   apps.csv  GPU-uuid, pid, MiB, name     topo.txt, q.xml  what `topo -m` and `-q -x` print
#   fails     when it is there: the exit code, then what every call prints
# Lines that begin with '#' are comments of the files.
dir=${FAKE_GPUS:-${0%/*}/gpus}
[ -z "$FAKE_GPUS_LOG" ] || printf '%s\n' "$*" >>"$FAKE_GPUS_LOG"
show() {
  sed '/^#/d;/^<!--/d' "$dir/$1" 2>/dev/null
}
if [ -e "$dir/fails" ]; then
  show fails | sed 1d
  exit "$(show fails | head -n 1)"
fi
case $* in
  --query-gpu=*)
    wanted=${1#--query-gpu=}
    show gpus.csv | awk -v wanted="$wanted" -F ', *' '
      NR == 1 {
        for (i = 1; i <= NF; i++) at[$i] = i
        count = split(wanted, field, ",")
        for (i = 1; i <= count; i++) if (!(field[i] in at)) {
          printf "Field \"%s\" is not a valid field to query.\n\n", field[i]
          exit 2
        }
        next
      }
      /^Unable/ { print; bad = 15; next }
      { for (i = 1; i <= count; i++) printf "%s%s", $(at[field[i]]), i < count ? ", " : "\n" }
      END { if (bad) exit bad }'
    ;;
  --query-compute-apps=*) show apps.csv ;;
  '-q -x') show q.xml ;;
  'topo -m') show topo.txt ;;
  -L) show gpus.csv | awk -F ', *' 'NR > 1 { printf "GPU %s: (UUID: %s)\n", $1, $2 }' ;;
  *)
    echo "ERROR: Option $1 is not recognized. Please run 'nvidia-smi -h'."
    exit 2
    ;;
esac
