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
