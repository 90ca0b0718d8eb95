# bash completion of remote:  source <(remote completion bash)
# It asks the remote of $PATH, whichever was typed: ./remote may be anybody's.
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
  # The user may have typed a backslash before a character, as what is inserted here has.
  whole=${whole//\\/}
  words[count - 1]=$whole
  local before=${whole%"${piece//\\/}"} kind="" word
  COMPREPLY=()
  compopt -o nosort 2>/dev/null # the words come in an order that helps; an older bash sorts them
  while IFS= read -r word; do
    if [[ -z $kind ]]; then
      kind=$word
      continue
    fi
    word=${word%%$'\t'*}
    # Quoted: a name may come from files that others wrote, and the shell reads the line again at Return.
    printf -v word %q "${word#"$before"}"
    COMPREPLY[${#COMPREPLY[@]}]=$word
  done < <(command remote __complete line "${words[@]:1}" 2>/dev/null)
  case $kind in
    :files | :folders)
      local flag=-f quote=no
      [[ $kind = :folders ]] && flag=-d
      compopt -o filenames 2>/dev/null || quote=yes  # an older bash quotes no file names by itself
      while IFS= read -r word; do
        [[ $quote = no ]] || printf -v word %q "$word"
        COMPREPLY[${#COMPREPLY[@]}]=$word
      done < <(compgen "$flag" -- "$piece")
      ;;
  esac
  return 0
}
complete -F _remote_complete remote
