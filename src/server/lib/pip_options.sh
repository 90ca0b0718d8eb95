#!/bin/sh
# Turns what configs.yaml says of packages into pip's options, as the arguments, and into the variables that pip, uv and
# pipenv read. Set by the caller: PROJECT; INDEX_URL, EXTRA_INDEX_URLS (several have blanks between them) and NO_INDEX
# (1), which may be empty; and as arguments pairs of an option and a place, which is a URL or a path: "~/x" is in the
# home folder, and a relative path in the project. Index URLs travel in variables: they may hold a password, and a
# command line is seen by every user of the server.
: "${PROJECT:?}" "${INDEX_URL?}" "${EXTRA_INDEX_URLS?}" "${NO_INDEX?}"
if [ -n "$INDEX_URL" ]; then
  PIP_INDEX_URL=$INDEX_URL UV_DEFAULT_INDEX=$INDEX_URL PIPENV_PYPI_MIRROR=$INDEX_URL
  export PIP_INDEX_URL UV_DEFAULT_INDEX PIPENV_PYPI_MIRROR
fi
if [ -n "$EXTRA_INDEX_URLS" ]; then
  PIP_EXTRA_INDEX_URL=$EXTRA_INDEX_URLS UV_INDEX=$EXTRA_INDEX_URLS
  export PIP_EXTRA_INDEX_URL UV_INDEX
fi
links=
pairs=$(($# / 2))
while [ "$pairs" -gt 0 ]; do
  case $2 in
    *://* | /*) place=$2 ;;
    \~/*) place=$HOME/${2#??} ;;
    *) place=$PROJECT/$2 ;;
  esac
  [ "$1" != --find-links ] || links="${links:+$links }$place"
  set -- "$@" "$1" "$place"
  shift 2
  pairs=$((pairs - 1))
done
if [ -n "$links" ]; then
  PIP_FIND_LINKS=$links
  export PIP_FIND_LINKS
fi
if [ -n "$NO_INDEX" ]; then
  PIP_NO_INDEX=1 # for the pip that pipenv runs
  export PIP_NO_INDEX
  set -- --no-index "$@"
fi
