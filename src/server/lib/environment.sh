# The account's environment, which the agent hides (list_job_variables() in src/agent/host/host.cpp), because remote's own scripts must not
# depend on it.
# shellcheck shell=sh

# show_environment: restores it for a user's command. Variables that were set since are kept.
show_environment() {
  for se_name in TMOUT CDPATH BASH_ENV GLOBIGNORE EXECIGNORE FUNCNEST TIME_STYLE QUOTING_STYLE BLOCK_SIZE BLOCKSIZE \
    LS_BLOCK_SIZE DF_BLOCK_SIZE DU_BLOCK_SIZE GREP_OPTIONS GREP_COLOR GREP_COLORS TAR_OPTIONS GZIP RSYNC_ICONV RSYNC_OLD_ARGS \
    RSYNC_PROTECT_ARGS RSYNC_PARTIAL_DIR PYTHONINSPECT PYTHONVERBOSE PYTHONWARNINGS PYTHONDEBUG PYTHONPROFILEIMPORTTIME PYTHONIOENCODING; do
    eval "[ -z \"\${REMOTE_HID_$se_name+set}\" ] || [ -n \"\${$se_name+set}\" ] || export $se_name=\"\$REMOTE_HID_$se_name\"; unset REMOTE_HID_$se_name"
  done
  unset se_name
  if [ -n "${REMOTE_HID_FUNCTIONS-}" ] && [ -n "${BASH_VERSION-}" ]; then
    eval "$REMOTE_HID_FUNCTIONS" # as `declare -pfx` of the account's shell printed them
  fi
  se_flags=${REMOTE_HID_FLAGS-}
  unset REMOTE_HID_FUNCTIONS REMOTE_HID_FLAGS
  case $se_flags in *e*) set -e ;; esac
  case $se_flags in *u*) set -u ;; esac
  case $se_flags in *f*) set -f ;; esac
  case $se_flags in *v*) set -v ;; esac
  case $se_flags in *C*) set -C ;; esac
  case $se_flags in *a*) set -a ;; esac
  case $se_flags in *x*) set -x ;; esac
}
