#include <string_view>

#include <remote/error.hpp>

#include "cli/completion/completion.hpp"

// What the shells read. All knowledge is in the binary (`remote __complete line WORD…`): its first line says
// whether words, files or folders follow, each further line is a word and, after a tab, what it is.

namespace remote::cli {
namespace {

// Works with the bash 3.2 of macOS too, and without the bash-completion package.
constexpr std::string_view bash_script = R"bash(# bash completion of remote:  source <(remote completion bash)
_remote_complete() {
  local -a words
  local rest=${COMP_LINE:0:$COMP_POINT} piece whole count=0 i
  # bash cuts words at '=' and ':': put together again what was typed as one.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    if ((i > 0)) && [[ -n $rest && $rest != [[:blank:]]* ]]; then
      words[count - 1]+=$piece
    else
      rest=${rest#"${rest%%[![:blank:]]*}"}
      words[count]=$piece
      count=$((count + 1))
    fi
    if ((i == COMP_CWORD)); then
      # of the last word, what stands before the cursor
      words[count - 1]=${words[count - 1]%"$piece"}$rest
      piece=$rest
    fi
    rest=${rest#"$piece"}
  done
  whole=${words[count - 1]}
  case $piece in
    = | :) piece="" ;;
  esac
  local before=${whole%"$piece"} kind="" word
  COMPREPLY=()
  while IFS= read -r word; do
    if [[ -z $kind ]]; then
      kind=$word
      continue
    fi
    word=${word%%$'\t'*}
    COMPREPLY[${#COMPREPLY[@]}]=${word#"$before"}
  done < <("$1" __complete line "${words[@]:1}" 2>/dev/null)
  case $kind in
    :files | :folders)
      local flag=-f
      [[ $kind = :folders ]] && flag=-d
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do
        COMPREPLY[${#COMPREPLY[@]}]=$word
      done < <(compgen "$flag" -- "$piece")
      ;;
  esac
  return 0
}
complete -F _remote_complete remote
)bash";

constexpr std::string_view zsh_script = R"zsh(#compdef remote
# zsh completion of remote: a file named _remote in a folder of $fpath, or  source <(remote completion zsh)
_remote() {
  local -a lines candidates
  local line
  lines=("${(@f)$("${words[1]}" __complete line "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  case ${lines[1]} in
    :files) _files ;;
    :folders) _files -/ ;;
    :words)
      for line in "${(@)lines[2,-1]}"; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
      done
      _describe 'remote' candidates
      ;;
  esac
}
if [[ ${zsh_eval_context[-1]} = loadautofunc ]]; then
  _remote "$@"
else
  compdef _remote remote
fi
)zsh";

constexpr std::string_view fish_script = R"fish(# fish completion of remote:  remote completion fish | source
function __remote_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($typed[1] __complete line $typed[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':folders'
            __fish_complete_directories "$current"
        case ':words'
            set -e lines[1]
            test (count $lines) -gt 0; and printf '%s\n' $lines
    end
end
complete -c remote -f -a '(__remote_complete)'
)fish";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") {
    return std::string(bash_script);
  }
  if (shell == "zsh") {
    return std::string(zsh_script);
  }
  if (shell == "fish") {
    return std::string(fish_script);
  }
  throw Error::usage("completion " + shell, "there is completion for bash, zsh and fish");
}

}  // namespace remote::cli
