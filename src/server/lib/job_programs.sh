# Behind a job's activation, in the project's folder: job_programs JOBS_FOLDER [NAME FILE]… puts programs of ours into the
# job's folder, and puts their place before all others on PATH. They find the two folders in REMOTE_JOB_FOLDER and
# REMOTE_PROJECT_FOLDER.
# shellcheck shell=sh
# shellcheck disable=SC2154

job_programs() {
  REMOTE_PROJECT_FOLDER=$(pwd)
  REMOTE_JOB_FOLDER=$REMOTE_PROJECT_FOLDER/$1/$REMOTE_JOB_ID
  export REMOTE_PROJECT_FOLDER REMOTE_JOB_FOLDER
  shift
  case $REMOTE_JOB_FOLDER in
    *:*) job_fails "this launcher needs a project folder without a ':' in its name, because it extends PATH" ;;
  esac
  (
    umask 077
    mkdir -p "$REMOTE_JOB_FOLDER/bin" && cat "$remote_program/lib/end.sh" >"$REMOTE_JOB_FOLDER/bin/end.sh" || exit
    while [ $# -gt 0 ]; do
      cat "$remote_program/lib/$2" >"$REMOTE_JOB_FOLDER/bin/$1" && chmod 700 "$REMOTE_JOB_FOLDER/bin/$1" || exit
      shift 2
    done
  ) || job_fails "cannot write the launcher's programs into the job's folder: is the disk full?"
  PATH=$REMOTE_JOB_FOLDER/bin:$PATH
  export PATH
}

# job_file NAME TEXT: a file in the job's folder, for its owner only.
job_file() {
  (umask 077 && printf '%s' "$2" >"$REMOTE_JOB_FOLDER/$1") || job_fails "cannot write into the job's folder: is the disk full?"
}
