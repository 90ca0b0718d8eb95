# Does the steps of a request that main.sh has read.
# shellcheck shell=sh
# shellcheck disable=SC2154

remote_step=0 remote_words=''
while [ "$remote_step" -lt "$remote_count" ]; do
  remote_step=$((remote_step + 1))
  eval "remote_line=\$remote_$remote_step"
  remote_words=
  while [ "$remote_step" -lt "$remote_count" ]; do
    eval "case \$remote_$((remote_step + 1)) in -*) ;; *) false ;; esac" || break
    remote_step=$((remote_step + 1))
    remote_words="$remote_words \"\${remote_$remote_step#-}\""
  done
  case $remote_line in
    =*) eval "${remote_line#=}=${remote_words# }" ;;
    :*) eval "${remote_line#:} $remote_words" ;;
    *)
      # shellcheck source=/dev/null
      . "$remote_program/${remote_line#<}"
      ;;
  esac
done
