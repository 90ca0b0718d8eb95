# Which Python a program of ours can run with.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables are shared between the parts

# new_python [NAME...]: the first of these, python3 and python where none is named, that is 3.6 or newer, into $python, and its version into
# $python_version. A `python` of version 2 is none.
new_python() {
  [ $# -gt 0 ] || set -- python3 python
  for python; do
    python_version=$("$python" -V 2>&1 </dev/null) || continue
    case $python_version in
      'Python 3.'[6-9]* | 'Python 3.'[1-9][0-9]* | 'Python '[4-9].*) ;;
      *) continue ;;
    esac
    python_version=${python_version#Python }
    python_version=${python_version%%[!0-9.]*}
    return
  done
  return 1
}

# any_python ACTIVATE: the same, else that of the environment that this sh text enters; and the options with which the standard library alone is
# used, into $python_options. -B: it leaves no files. A Python that is told where its library is, has to listen.
any_python() {
  python_options='-B -S -I'
  [ -z "${PYTHONHOME-}" ] || python_options='-B -S'
  new_python || python=$(
    exec 2>/dev/null
    eval "$1" >/dev/null
    new_python && command -v "$python"
  )
}
