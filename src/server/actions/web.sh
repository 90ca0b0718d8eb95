# web_look: the port and the token of a job with pages for a browser (lib/web.sh), from its $folder: "web PORT TOKEN" once a
# process of this user listens on the port, not before: another user could take it, and would be sent the token.
# shellcheck shell=sh
# shellcheck disable=SC2154

web_look() {
  # what a login shell's start files printed may lack its last newline
  echo
  if [ -f "$folder/web" ] && read -r w_port w_token <"$folder/web"; then
    w_uid=$(id -u)
    grep -h -i ":$(printf '%04X' "$w_port") 0*:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null |
      while read -r _ _ _ _ _ _ _ w_owner _; do
        [ "$w_owner" != "$w_uid" ] || echo "@remote1 web $w_port $w_token"
      done
  fi
  echo '@remote1 end'
}
