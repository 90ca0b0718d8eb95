# Behind a job's activation, in the project's folder: web_begin JOBS_FOLDER chooses a free port and a token for a program with
# pages for a browser, and writes both into the job's folder, for its owner only. The program finds them in REMOTE_WEB_PORT
# and JUPYTER_TOKEN: no argument has the token.
# shellcheck shell=sh
# shellcheck disable=SC2154

web_begin() {
  for web_python in python3 python ''; do
    command -v "$web_python" >/dev/null 2>&1 && break
  done
  [ -n "$web_python" ] || job_fails 'there is no python here: tensorboard and jupyter need one'
  REMOTE_WEB_PORT=$("$web_python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') ||
    job_fails 'cannot find a free port'
  JUPYTER_TOKEN=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
  [ ${#JUPYTER_TOKEN} = 48 ] || job_fails 'cannot make a token: /dev/urandom cannot be read'
  (
    umask 077
    cd "$1/$REMOTE_JOB_ID" && echo "$REMOTE_WEB_PORT $JUPYTER_TOKEN" >web.new && mv -f web.new web
  ) || job_fails "cannot write into the job's folder: is the disk full?"
  export REMOTE_WEB_PORT JUPYTER_TOKEN
}
