# What bash reads in the place of .bashrc (shell.sh): the start files of a login shell, and then, where they have set PATH anew, the
# project's environment once more. Set before: remote_project, remote_environment, remote_program.
# shellcheck shell=sh
# shellcheck disable=SC2154,SC1090,SC1091

exec 9<&-
if [ -r /etc/profile ]; then . /etc/profile; fi
for remote_file in ~/.bash_profile ~/.bash_login ~/.profile; do
  if [ -r "$remote_file" ]; then
    . "$remote_file"
    break
  fi
done
if [ "$PATH" != "$REMOTE_SHELL_PATH" ]; then eval "$remote_environment"; fi
cd -- "$remote_project" 2>/dev/null || cd || :
unset remote_file remote_project remote_environment remote_program REMOTE_SHELL_PATH
