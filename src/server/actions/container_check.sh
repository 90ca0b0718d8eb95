#!/bin/sh
# Looks whether a job can run in a container here, before one starts: container_check ENGINE IMAGE HOW, where ENGINE is one of
# docker, podman and apptainer, or empty: the first that has the image, else the first that works. HOW is look (tell what there is),
# fetch (the image, or a newer one), or login: as look, on a login node, whose nodes may have the engine that it lacks itself. Set before: prologue, the user's, which may be what brings the engine; project.
# shellcheck disable=SC2154,SC2016

container_say() {
  printf '@remote1 container %s\n' "$*"
}

# one_line TEXT: its last line that says something, without control characters.
one_line() {
  printf '%s\n' "$1" | sed -n -e 's/[[:cntrl:]]/?/g' -e '/[^ ]/h' -e '${x;p;}' | cut -c 1-300
}

# engine_works ENGINE: whether this login can use it; else why not, into $why. For docker whether it is rootless, into $rootless.
engine_works() {
  rootless=
  case $1 in
    apptainer)
      program=apptainer
      command -v apptainer >/dev/null 2>&1 || program=singularity
      ;;
    *) program=$1 ;;
  esac
  if ! command -v "$program" >/dev/null 2>&1; then
    why="$1 is not installed"
    return 1
  fi
  case $1 in
    docker)
      if ! found=$(docker info --format '{{.SecurityOptions}}' 2>&1); then
        why="docker cannot be used: $(one_line "$found")"
        return 1
      fi
      # what the program prints where there is no server, and exits with 0
      case $found in
        *'permission denied'* | *'annot connect'*)
          why="docker cannot be used: $(one_line "$found")"
          return 1
          ;;
        *rootless*) rootless=rootless ;;
      esac
      ;;
    podman) [ "$(id -u)" = 0 ] || rootless=rootless ;;
  esac
}

# image_is_there ENGINE IMAGE HOW: fails with why into $why. 2: the engine itself fails.
image_is_there() {
  why="there is no image $2 here"
  case $1 in
    podman)
      found=$(podman image exists "$2" 2>&1 </dev/null)
      case $? in
        0) ;;
        1) return 1 ;;
        *) why="podman cannot be used: $(one_line "$found")" && return 2 ;;
      esac
      ;;
    docker) docker image inspect --format . "$2" >/dev/null 2>&1 </dev/null ;;
    apptainer)
      case $2 in
        # apptainer keeps what it has fetched, and does not tell; a node fetches for itself what nobody fetches here
        *://*) [ "$3" = login ] && ! command -v "$program" >/dev/null 2>&1 ;;
        /*) [ -e "$2" ] ;;
        *) [ -e "$project/$2" ] ;;
      esac
      ;;
  esac
}

# fetch_image ENGINE IMAGE
fetch_image() {
  case $1 in
    apptainer) found=$("$program" exec "$2" true 2>&1 </dev/null) ;;
    *) found=$("$1" pull --quiet "$2" 2>&1 </dev/null) ;;
  esac || {
    why="cannot fetch the image $2: $(one_line "$found")"
    return 1
  }
}

container_check() {
  # What a login shell's start files printed may lack its last newline.
  echo
  look_for_container "$@"
  printf '@remote1 end\n'
}

# look_for_container ENGINE IMAGE HOW: says what there is.
look_for_container() {
  eval "$prologue" >/dev/null 2>&1
  whys='' first='' first_rootless='' there=''
  for engine in ${1:-podman docker apptainer}; do
    if ! engine_works "$engine" && [ "$3" != login ]; then
      whys="$whys${whys:+; }$why"
      continue
    fi
    image_is_there "$engine" "$2" "$3"
    case $? in
      0)
        first=$engine first_rootless=$rootless there=1
        break
        ;;
      1) [ -n "$first" ] || first=$engine first_rootless=$rootless ;;
      *) whys="$whys${whys:+; }$why" ;;
    esac
  done
  if [ -z "$first" ]; then
    container_say "failed $whys"
  elif [ "$3" = fetch ] && ! fetch_image "$first" "$2"; then
    container_say "failed $why"
  elif [ "$3" = fetch ] || [ -n "$there" ]; then
    container_say "ready $first ${first_rootless:--}"
  else
    container_say "missing $first ${first_rootless:--}"
  fi
}
