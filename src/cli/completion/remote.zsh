#compdef remote
# zsh completion of remote: a file named _remote in a folder of $fpath, or  source <(remote completion zsh)
_remote() {
  local -a lines candidates
  local line name
  # The remote of $PATH, whichever was typed: ./remote may be anybody's.
  lines=("${(@f)$(command remote __complete line "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  case ${lines[1]} in
    :files) _files ;;
    :folders) _files -/ ;;
    :words)
      for line in "${(@)lines[2,-1]}"; do
        name=${${line%%$'\t'*}//\\/\\\\}
        candidates+=("${name//:/\\:}:${line#*$'\t'}")
      done
      _describe -V 'remote' candidates
      ;;
  esac
}
if [[ ${zsh_eval_context[-1]} = loadautofunc ]]; then
  _remote "$@"
else
  compdef _remote remote
fi
