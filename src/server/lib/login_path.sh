# The PATH of a login shell, for programs of the site that are on no other: a shell that sshd starts for a command reads no .profile,
# .bash_profile or .zprofile. Sourced by gpus.sh and backend_slurm.sh.
# shellcheck shell=sh

# add_login_path: appends to PATH what the start files of the user's login shell have put into it. That shell is asked once; its output
# is dropped, and one that does not end counts for nothing.
add_login_path() {
  if [ -z "${login_path+asked}" ]; then
    al_limit=
    command -v timeout >/dev/null 2>&1 && al_limit='timeout 5'
    # shellcheck disable=SC2016
    login_path=$($al_limit "${SHELL:-/bin/sh}" -l -c 'printf "\n@path %s\n" "$PATH"' 2>/dev/null </dev/null | sed -n '/^@path /{s/^@path //p;q;}')
  fi
  case $login_path:$PATH in
    [!/]* | *":$login_path") ;;
    *) PATH=${PATH:+$PATH:}$login_path ;;
  esac
}
