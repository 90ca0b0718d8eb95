# The PATH of a login shell, for programs of the site that are on no other: a shell that sshd starts for a command reads no .profile,
# .bash_profile or .zprofile. Sourced by gpus.sh and backend_slurm.sh.
# shellcheck shell=sh

# add_login_path: appends to PATH what the start files of the user's login shell have put into it. Their output is dropped, and a shell
# that does not end counts for nothing.
add_login_path() {
  [ -z "${login_path_added-}" ] || return 0
  login_path_added=1
  al_limit=
  command -v timeout >/dev/null 2>&1 && al_limit='timeout 5'
  # shellcheck disable=SC2016
  al_path=$($al_limit "${SHELL:-/bin/sh}" -l -c 'printf "\n@path %s\n" "$PATH"' 2>/dev/null </dev/null | sed -n '/^@path /{s/^@path //p;q;}')
  case $al_path in
    /*) PATH=${PATH:+$PATH:}$al_path ;;
  esac
}
