# Which Python a program of ours can run with.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables are shared between the parts

# new_python: the first of python3 and python that is 3.6 or newer, into $python, and its version into $python_version. A `python` of version 2 is none.
new_python() {
  for python in python3 python; do
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
