#!/bin/sh
# Makes the Python environment. Set by the client: SETUP_DIGEST, VERSION (of Python,
# may be empty), ASKED_VERSION (the same, empty where configs.yaml names none), SITE_PACKAGES (1 or empty), FORCE (1 or empty), CONDA_URL, CONDA_SHA256_X86_64,
# CONDA_SHA256_AARCH64 (may be empty), and the listed system packages as arguments.
# shellcheck disable=SC2154

# shellcheck source=src/server/lib/provision.sh
. "$remote_program/lib/provision.sh"

: "${SETUP_DIGEST:?}" "${SETUP_STAMP:?}" "${VERSION?}" "${ASKED_VERSION?}" "${SITE_PACKAGES?}" "${FORCE?}" "${CONDA_URL?}"
: "${CONDA_SHA256_X86_64?}" "${CONDA_SHA256_AARCH64?}"

install_system_packages() {
  missing=$(missing_system_packages "$@")
  [ -n "$missing" ] || return 0
  say step "apt-get install$missing"
  command -v apt-get >/dev/null 2>&1 ||
    fail "system_packages needs apt-get, which this server lacks" "install$missing by hand and take them off the list"
  if [ "$(id -u)" = 0 ]; then
    as_root() { "$@"; }
  else
    command -v sudo >/dev/null 2>&1 || fail "system_packages needs root or sudo, and there is no sudo" \
      "let an administrator install$missing"
    sudo -n true || fail "system_packages needs sudo without a password, and sudo asks for one" \
      "let an administrator install$missing, or allow it in sudoers (NOPASSWD)"
    as_root() { sudo -n "$@"; }
  fi
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086  # names of packages, one word each
  as_root apt-get install -y -- $missing || {
    say step "apt-get update"
    as_root apt-get update && as_root apt-get install -y -- $missing
  } || fail "apt-get could not install$missing" "see the log; are the names right for this distribution?"
}

# What is being made is on record first, so that a half-made thing is known for what it is.
begin() { # begin FOLDER
  { mkdir -p "$SCRIPTS" && printf '%s\n' "$1" >"$SCRIPTS/setup.unfinished"; } || fail "cannot write to $SCRIPTS"
}
is_unfinished() { # is_unfinished FOLDER
  stamp_is "$SCRIPTS/setup.unfinished" "$1"
}

# Whether the environment that is there can be kept. One that we made otherwise, or did not finish, is removed;
# one that somebody else made is taken over when it fits, and never removed.
adopted=
can_keep_environment() {
  [ -e "$ENV_PREFIX" ] || return 1
  if is_unfinished "$ENV_PREFIX" || { [ -f "$SETUP_STAMP" ] && ! grep -qx adopted "$SETUP_STAMP"; }; then
    say step "removing the former environment"
    begin "$ENV_PREFIX" # half removed is unfinished, too
    rm -f "$SETUP_STAMP"
    rm -rf "$ENV_PREFIX" || fail "cannot remove $ENV_PREFIX"
    return 1
  fi
  # a venv without its pyvenv.cfg runs the system's Python, and would install into it
  [ "$MANAGER" = conda ] || [ -f "$ENV_PREFIX/pyvenv.cfg" ] ||
    fail "$ENV_PREFIX is there and is no virtual environment" "move it away and run the command again"
  "$ENV_PREFIX/bin/python" -c 'import pip' >/dev/null 2>&1 ||
    fail "$ENV_PREFIX is there and has no working Python with pip" "move it away and run the command again"
  [ -z "$ASKED_VERSION" ] || python_is "$ENV_PREFIX/bin/python" "$ASKED_VERSION" ||
    fail "$ENV_PREFIX is there and has another Python than $ASKED_VERSION" "move it away and run the command again"
  adopted=adopted
  say note "took over $ENV_PREFIX, which was there already"
}

python_hint="install it (apt-get install python3), or set python: {manager: conda} in configs.yaml"
[ -z "$VERSION" ] ||
  python_hint="install python$VERSION there, set another python.version, or use python: {manager: conda}"

setup_system() {
  python=$(find_python "$VERSION") || fail "there is no Python ${VERSION:-3.6 or newer} on this server" "$python_hint"
  mkdir -p "$ENV_PREFIX" "$SCRIPTS/bin" || fail "cannot write to $SCRIPTS"
  rm -f "$SCRIPTS/bin/python"
  # Debian has python3 and no python, and python may be Python 2; commands say python.
  if ! python_is python "$VERSION"; then
    ln -s "$python" "$SCRIPTS/bin/python" || fail "cannot write to $SCRIPTS/bin"
  fi
}

setup_venv() {
  can_keep_environment && return 0
  python=$(find_python "$VERSION") || fail "there is no Python ${VERSION:-3.6 or newer} on this server" "$python_hint"
  begin "$ENV_PREFIX"
  say step "making the environment with $python"
  "$python" -c 'import ensurepip, venv' || fail "this server's Python cannot make environments (no venv module)" \
    "apt-get install python3-venv there, or list it under system_packages"
  "$python" -m venv ${SITE_PACKAGES:+--system-site-packages} "$ENV_PREFIX" ||
    fail "python -m venv failed" "if it asks for python3-venv: list it under system_packages"
}

setup_uv() {
  uv=$(find_uv) || fail "uv was not found on this server" \
    "install it there (docs.astral.sh/uv), or set python: {manager: venv} in configs.yaml"
  can_keep_environment && return 0
  begin "$ENV_PREFIX"
  say step "making the environment with uv"
  "$uv" venv --seed ${SITE_PACKAGES:+--system-site-packages} ${VERSION:+--python "$VERSION"} "$ENV_PREFIX" ||
    fail "uv venv failed"
}

download() { # download URL FILE
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --retry 2 -o "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1"
  elif command -v python3 >/dev/null 2>&1; then
    python3 -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as source, open(sys.argv[2], "wb") as target:
    shutil.copyfileobj(source, target)' "$1" "$2"
  else
    fail "nothing to download with: neither curl, wget nor python3" "install one of them on the server"
  fi
}

sha256_of() { # sha256_of FILE
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1"
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r <"$1"
  else
    fail "nothing to check the installer's SHA-256 with" "take miniconda_sha256 out of configs.yaml, or install coreutils"
  fi
}

install_conda() {
  arch=$(uname -m)
  case $arch in
    x86_64 | amd64) arch=x86_64 sum=$CONDA_SHA256_X86_64 ;;
    aarch64 | arm64) arch=aarch64 sum=$CONDA_SHA256_AARCH64 ;;
    *) fail "there is no Miniconda for this server's architecture, $arch" "set python: {manager: venv} in configs.yaml" ;;
  esac
  [ -n "$sum" ] || [ -z "$CONDA_SHA256_X86_64$CONDA_SHA256_AARCH64" ] || fail \
    "miniconda_sha256 in configs.yaml has no digest for this server's architecture, $arch" \
    "add one: miniconda_sha256: {$arch: …}"
  url=$(printf '%s' "$CONDA_URL" | sed "s/{arch}/$arch/g")
  begin "$ENV_PREFIX"
  command : >"$CONDA_ROOT.unfinished" || fail "cannot write $CONDA_ROOT.unfinished"
  installer=$CONDA_ROOT.installer.$$.sh
  trap 'rm -f "$installer"' EXIT
  say step "downloading Miniconda"
  download "$url" "$installer" || {
    rm -f "$CONDA_ROOT.unfinished" "$SCRIPTS/setup.unfinished" # nothing of a failed download stays
    drop_lock
    fail "cannot download $url" "in configs.yaml, python: {manager: venv} or {manager: system} needs no download; \
miniconda_url names a mirror"
  }
  if [ -n "$sum" ]; then
    found=$(sha256_of "$installer") || exit 1
    [ "${found%% *}" = "$sum" ] || fail "the installer from $url has SHA-256 ${found%% *}, not $sum" \
      "correct miniconda_sha256 in configs.yaml if the installer is meant to be a newer one"
  fi
  say step "installing Miniconda"
  run=$(command -v bash || command -v sh)
  "$run" "$installer" -b -p "$CONDA_ROOT" || fail "the Miniconda installer failed"
  "$CONDA_ROOT/bin/conda" --version || fail "the Miniconda installer made no working conda"
  rm -f "$CONDA_ROOT.unfinished"
}

setup_conda() {
  if [ -n "$CONDA_GIVEN" ]; then
    can_keep_environment && return 0
    "$CONDA_ROOT/bin/conda" --version || fail "there is no conda that works in $CONDA_ROOT" \
      "python.conda in configs.yaml names the folder of an installation; leave it out to have one made in the home"
    make_conda_environment
    return 0
  fi
  # An environment that is there, elsewhere, is used as it is: no conda of ours is needed for it.
  case $ENV_PREFIX in
    "$CONDA_ROOT"/*) ;;
    *) can_keep_environment && return 0 ;;
  esac
  if [ -e "$CONDA_ROOT.unfinished" ]; then
    say step "removing a half-finished Miniconda"
    rm -rf "$CONDA_ROOT" || fail "cannot remove $CONDA_ROOT"
  elif [ -e "$CONDA_ROOT" ] && ! "$CONDA_ROOT/bin/conda" --version >/dev/null 2>&1; then
    # Not ours to remove, and of no use where it is.
    aside=$CONDA_ROOT.broken.$(date +%Y%m%d%H%M%S)
    mv "$CONDA_ROOT" "$aside" || fail "cannot move the broken $CONDA_ROOT aside"
    say note "moved a conda that does not run to $aside"
  fi
  [ -x "$CONDA_ROOT/bin/conda" ] || install_conda
  can_keep_environment || make_conda_environment
}

make_conda_environment() {
  begin "$ENV_PREFIX"
  say step "making the environment with Python $VERSION"
  "$CONDA_ROOT/bin/conda" create -y -q -p "$ENV_PREFIX" "python${VERSION:+=$VERSION}" pip ||
    fail "conda create failed" "if it asks to accept terms of service: accept them on the server, or set python.miniconda_url to Miniforge"
  [ -x "$ENV_PREFIX/bin/python" ] || fail "conda create made no python in $ENV_PREFIX"
}

lock_environment
install_system_packages "$@"
if [ -z "$FORCE" ] && setup_is_done "$SETUP_DIGEST"; then
  exit 0 # another one did it while we waited
fi
case $MANAGER in
  system) setup_system ;;
  venv) setup_venv ;;
  uv) setup_uv ;;
  conda) setup_conda ;;
esac
write_stamp "$SETUP_STAMP" "$SETUP_DIGEST" ${adopted:+"$adopted"}
rm -f "$SCRIPTS/setup.unfinished"
