# Looks at paths before one of them is brought: pull_look PATH…, which answers with "pull KIND" for each: link (to a file),
# folder_link, there or missing.
# shellcheck shell=sh

pull_look() {
  # what a login shell's start files printed may lack its last newline
  echo
  for path; do
    if ! [ -e "$path" ]; then
      echo '@remote1 pull missing'
    elif [ -L "$path" ] && [ -d "$path" ]; then
      echo '@remote1 pull folder_link'
    elif [ -L "$path" ]; then
      echo '@remote1 pull link'
    else
      echo '@remote1 pull there'
    fi
  done
  echo '@remote1 end'
}
