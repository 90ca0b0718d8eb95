#!/bin/sh
# Installs what the project asks for. Set by the client: what pip_options.sh takes; PACKAGES_DIGEST, KIND (pipenv, requirements, pyproject or none), LOCKED
# (1: there is a Pipfile.lock), and SOURCES, the files that the digest is of, as the laptop has them: lines
# "sha256 HEX NAME" and "size BYTES NAME".
# shellcheck disable=SC2154

# shellcheck source=src/server/lib/provision.sh
. "$remote_program/lib/provision.sh"
# shellcheck source=src/server/lib/pip_options.sh
. "$remote_program/lib/pip_options.sh"
: "${PACKAGES_DIGEST:?}" "${PACKAGES_STAMP:?}" "${KIND:?}" "${LOCKED?}" "${SOURCES?}"
cd "$PROJECT" || fail "there is no folder $PROJECT" "send the project there first"
lock_environment
if [ -n "$waited" ] && stamp_is "$PACKAGES_STAMP" "$PACKAGES_DIGEST"; then
  exit 0 # the other one has just done it
fi
python=$(env_python) || fail "there is no Python environment here" "set the server up first"
mkdir -p "$ENV_PREFIX" || fail "cannot write to $ENV_PREFIX"
rm -f "$PACKAGES_STAMP"
PIP_DISABLE_PIP_VERSION_CHECK=1
PIP_NO_INPUT=1
export PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT

is_externally_managed() {
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")))'
}

# The distribution owns the system's packages: look whether all is there already, and change nothing.
check_system() { # check_system PIP-ARGUMENTS...
  # Some pips refuse even a dry run unless they are told this.
  report=$(PIP_BREAK_SYSTEM_PACKAGES=1 "$python" -m pip install --dry-run --no-index --progress-bar off "$@" 2>&1)
  code=$?
  printf '%s\n' "$report"
  if [ "$code" -eq 0 ]; then
    case $report in
      *"Would install"*) ;;
      *) return 0 ;;
    esac
  fi
  printf '%s\n' "$report" >&2
  fail "the system's Python belongs to the distribution (PEP 668), and it lacks what the project asks for" \
    "set python: {manager: venv, system_site_packages: true} in configs.yaml, or install the distribution's packages (system_packages)"
}

# Whether an environment that sees the system's packages has all that requirements.txt names. The distribution's packages
# ask in their metadata for more than they need, which pip would fetch. Lines that only pip understands are left to pip.
requirements_are_met() {
  "$python" - 2>/dev/null <<'EOF'
import importlib.metadata, os, re, sys
try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement
sys.path[:] = [folder for folder in sys.path if folder]  # not the project's own folder
settings = os.path.join(sys.prefix, "pyvenv.cfg")
if os.path.exists(settings):
    with open(settings, encoding="utf-8") as file:
        if not re.search(r"(?mi)^include-system-site-packages\s*=\s*true", file.read()):
            sys.exit(1)
with open("requirements.txt", encoding="utf-8") as file:
    for line in file:
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not line:
            continue
        wanted = Requirement(line)
        if wanted.url or wanted.extras:
            sys.exit(1)
        if wanted.marker and not wanted.marker.evaluate():
            continue
        if not wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True):
            sys.exit(1)
EOF
}

pip_install() { # pip_install PIP-ARGUMENTS...
  if [ "$MANAGER" = uv ]; then
    uv=$(find_uv) || fail "uv was not found on this server"
    "$uv" pip install --python "$python" "$@" || fail "uv could not install the packages"
    return 0
  fi
  "$python" -c 'import pip' || fail "this server's Python has no pip" \
    "apt-get install python3-pip there, list it under system_packages, or set python: {manager: venv}"
  if [ "$MANAGER" = system ] && is_externally_managed; then
    check_system "$@"
    return 0
  fi
  "$python" -m pip install --progress-bar off "$@" || fail "pip could not install the packages"
}

find_pipenv() {
  for candidate in "${python%/*}/pipenv" pipenv "$HOME/.local/bin/pipenv"; do
    command -v "$candidate" && return 0
  done
  return 1
}

pipenv_install() { # pipenv_install PIP-ARGUMENTS...
  if ! pipenv=$(find_pipenv); then
    say step "installing pipenv"
    pip_install "$@" pipenv
    pipenv=$(find_pipenv) || fail "pipenv was installed and cannot be found"
  fi
  export PIPENV_IGNORE_VIRTUALENVS=1 PIPENV_NOSPIN=1 PIPENV_YES=1 PIPENV_VERBOSITY=-1 CI=1
  say step "pipenv"
  # --python names the environment's own interpreter, unless the Pipfile's environment is there already.
  "$pipenv" --venv >/dev/null 2>&1 || "$pipenv" --python "$python" || fail "pipenv could not make its environment"
  if [ -n "$LOCKED" ]; then
    "$pipenv" sync || fail "pipenv sync failed"
  else
    "$pipenv" install --skip-lock || fail "pipenv install failed"
  fi
  folder=$("$pipenv" --venv) || fail "pipenv does not say where its environment is"
  # Commands enter it by this, because asking pipenv takes half a second.
  mkdir -p "$SCRIPTS" || fail "cannot write to $SCRIPTS"
  write_stamp "$SCRIPTS/pipenv" "$folder"
}

# The first file that is not here what it is on the laptop.
different_source() {
  printf '%s' "$SOURCES" | "$python" -c 'import hashlib, os, sys
for line in os.fsdecode(getattr(sys.stdin, "buffer", sys.stdin).read()).split("\n")[:-1]:
    kind, want, name = line.split(" ", 2)
    try:
        with open(name, "rb") as file:
            have = str(os.fstat(file.fileno()).st_size) if kind == "size" else hashlib.sha256(file.read()).hexdigest()
    except EnvironmentError:
        have = None
    if have != want:
        sys.stdout.write(ascii(name)[1:-1])
        break'
}

# Looked at first: a file that is sent meanwhile would pass for the one that was installed.
if ! different=$(different_source); then
  different=${SOURCES:+"what the project asks for"}
fi
[ "$KIND" = pipenv ] || rm -f "$SCRIPTS/pipenv"
case $KIND in
  none) ;;
  requirements)
    # Constraints are pip's matter.
    case " $* " in *' --constraint '*) met=no ;; *) requirements_are_met && met=yes || met=no ;; esac
    if [ "$met" = yes ]; then
      say step "the environment has all of it"
    else
      pip_install "$@" -r requirements.txt
    fi
    ;;
  pyproject) pip_install "$@" -e . ;;
  pipenv) pipenv_install "$@" ;;
esac
if [ -z "$different" ]; then
  write_stamp "$PACKAGES_STAMP" "$PACKAGES_DIGEST"
else
  say note "the packages are those of the project on the server, where $different is not what it is here: send the project, then update again"
fi
