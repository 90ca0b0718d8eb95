#!/bin/sh
# authorize with real sshd: adds a second key to all servers once, using the first key's login, and verifies it.
. "${0%/*}/support.sh"
mkdir "$work/keys"
code 0 sandbox up --nodes 2
ssh-keygen -q -t ed25519 -N '' -C 'ann at home' -f "$work/keys/second"
blob=$(cut -d' ' -f2 "$work/keys/second.pub")
homes=$(homes)
first_home=$(printf '%s\n' "$homes" | head -n 1)
[ -d "$first_home" ] || fail "no home folder in: $homes"

# One server already has a file: readable by all, without a final newline.
ssh-keygen -q -t ed25519 -N '' -C 'old' -f "$work/keys/old"
chmod 755 "$first_home/.ssh"
tr -d '\n' <"$work/keys/old.pub" >"$first_home/.ssh/authorized_keys"
chmod 644 "$first_home/.ssh/authorized_keys"

each_home() { # each_home: the conditions that must now hold on every server
  printf '%s\n' "$homes" | while IFS= read -r home; do
    file="$home/.ssh/authorized_keys"
    [ "$(grep -cF "$blob" "$file")" = 1 ] || fail "$file has not the key once"
    [ "$(stat -L -c %a "$home/.ssh")" = 700 ] || fail "permissions of $home/.ssh"
    [ "$(stat -L -c %a "$file")" = 600 ] || fail "permissions of $file"
  done
}
code 0 authorize --key "$work/keys/second.pub"
[ "$(grep -c 'key added; logged in with it alone' "$work/out")" = 2 ] || fail "it does not say so of both servers"
grep -q "private_key: $work/keys/second" "$work/err" || fail "it does not say how to use the key"
each_home
grep -qxF "$(cat "$work/keys/old.pub")" "$first_home/.ssh/authorized_keys" || fail "the old key's line is broken"
port=$(sed -n 's/^    port: //p' .remote/configs.yaml | head -n 1)
ssh -F none -p "$port" -i "$work/keys/second" -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no \
  -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentityAgent=none 127.0.0.1 true || fail "ssh does not get in"

# Again, with the private half and another comment: nothing is added.
printf '%s %s another comment\n' ssh-ed25519 "$blob" >"$work/keys/second.pub"
code 0 authorize --json --key "$work/keys/second"
[ "$(grep -c '"state": "present"' "$work/out")" = 2 ] || fail "it does not find the key"
each_home

# The key is there, but only for another address: the login with the first key proves nothing.
printf '%s\n' "$homes" | while IFS= read -r home; do
  printf 'from="192.0.2.1" ssh-ed25519 %s\n' "$blob" >"$home/.ssh/authorized_keys"
done
code 1 authorize --key "$work/keys/second.pub"
grep -q 'options before it' "$work/err" || fail "the reason is not named"

# No key: one is made if requested, and only then.
code 2 authorize --key "$work/keys/new/mine.pub"
grep -q -e '--generate' "$work/err" || fail "the way out is not named"
code 0 authorize --server node-1 --generate --key "$work/keys/new/mine.pub"
ssh-keygen -lf "$work/keys/new/mine.pub" >/dev/null || fail "what was made is no key"
[ "$(stat -c %a "$work/keys/new/mine")" = 600 ] || fail "permissions of the private half"
code 0 authorize --server node-1 --generate --key "$work/keys/new/mine.pub"
grep -q 'was there already' "$work/out" || fail "a key was made anew"

# A private key is never sent, and arbitrary text is not a key.
cp "$work/keys/old" "$work/keys/wrong.pub"
code 2 authorize --key "$work/keys/wrong.pub"
grep -q 'private key' "$work/err" || fail "a private key is taken"
echo "authorize: all well"
