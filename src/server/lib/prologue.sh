# Runs the user's own text before every command and job; the rules of activate.sh apply. Set by the caller:
#   __prologue  the text       __project   the project's folder
# If it fails, __failed is set to its exit code; otherwise it is unset.
# shellcheck shell=sh
# shellcheck disable=SC2154

# The user's text may need features of bash (module, source), and its output must not be mixed with ours. So it runs in a separate process,
# with stderr as its stdout, and its changes to variables, limits and the umask are returned as shell text.
# shellcheck disable=SC2016
__runner='
if [ -n "${REMOTE_HID_FUNCTIONS-}" ] && [ -n "$BASH_VERSION" ]; then eval "$REMOTE_HID_FUNCTIONS"; fi
cd -- "$2" 2>/dev/null
case $1 in
  *module* | *"ml "*)
    type module >/dev/null 2>&1 || for __file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh \
      /usr/share/modules/init/bash /usr/share/Modules/init/bash /usr/share/lmod/lmod/init/bash; do
      if [ -r "$__file" ]; then
        . "$__file" >&2
        break
      fi
    done
    ;;
esac
__limits() {
  for __flag in d l n s t v; do
    echo "ulimit -S -$__flag $(ulimit -S "-$__flag")"
  done 2>/dev/null
  echo "umask $(umask)"
}
__names=
[ -z "$BASH_VERSION" ] || __names=$(compgen -e)
__before=$(__limits)
{ eval "$1"; } >&2 || exit
for __name in $__names; do
  eval "[ -n \"\${$__name+set}\" ]" || echo "unset $__name"
done
[ "$(__limits)" = "$__before" ] || __limits
exec sh -c "export -p; echo __failed="
'
# In an sshd session, bash -c would read .bashrc.
__shell='sh'
if command -v bash >/dev/null 2>&1; then __shell='bash --norc'; fi
__pwd=$PWD
__failed=1
# shellcheck disable=SC2086
__text=$($__shell -c "$__runner" prologue "$__prologue" "$__project" </dev/null) || __failed=$?
case $__failed$__text in
  1*__failed=)
    eval "$__text"
    PWD=$__pwd
    unset __failed
    ;;
esac
unset __runner __shell __pwd __text __prologue
