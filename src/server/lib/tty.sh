# Stands first in what runs on a terminal of its own. The script came by that terminal, which the command line had made raw for it
# (terminal_session.cpp); terminal_modes is what `stty -g` said before.
# shellcheck shell=sh
# shellcheck disable=SC2154

stty "$terminal_modes"
stty iutf8 2>/dev/null # backspace takes a whole character; not every stty knows it
unset terminal_modes
# What stands before this line is the login shell's own.
printf '\n@remote1 run\n'
