#!/bin/sh
# The library as used by another program: installed, found by find_package, linked outside the source tree, and run.
. "$(dirname -- "$0")/support.sh"

build=$(dirname -- "$REMOTE")
sanitize=
case $build in
  */asan) sanitize=-fsanitize=address,undefined ;; # the program must then be built the same way
  */tsan) skip "the build with ThreadSanitizer runs no end-to-end tests" ;;
esac
command -v cmake >/dev/null 2>&1 || skip "no cmake"

# The installation is moved before it is used, so that it must not depend on its original location.
prefix="$work/an installation"
cmake --install "$build" --prefix "$work/first" >"$work/out" 2>"$work/err" || fail "cmake --install"
mv "$work/first" "$prefix"
[ -x "$prefix/bin/remote" ] || fail "no program was installed"
cp -r "$REMOTE_SOURCE_DIR/sample/api" "$work/api"
cmake -G Ninja -S "$work/api" -B "$work/api/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS="$sanitize" \
  >"$work/out" 2>"$work/err" || fail "find_package(remote)"
cmake --build "$work/api/build" >"$work/out" 2>&1 || fail "sample/api does not build"
train="$work/api/build/train"

# The version is in a header and in the pkg-config file.
version=$("$REMOTE" --version | sed "s/remote //")
macros=$(printf '#include <remote/version.hpp>\nREMOTE_VERSION_MAJOR.REMOTE_VERSION_MINOR.REMOTE_VERSION_PATCH\n' |
  c++ -E -P -I"$prefix/include" -x c++ - | tr -d ' \n')
[ "$macros" = "$version" ] || fail "version.hpp says $macros, the program $version"
packages=$(dirname -- "$(find "$prefix" -name remote.pc)")
[ "$(PKG_CONFIG_PATH=$packages pkg-config --modversion remote)" = "$version" ] || fail "remote.pc has another version"

# The library contains nothing from the libraries of the command line.
library=$(find "$prefix" -name libremote.a)
[ -n "$library" ] || fail "no library was installed"
nm -C "$library" >"$work/symbols" 2>/dev/null || true
[ -s "$work/symbols" ] || fail "nm shows nothing"
if grep -E 'CLI::|spdlog::' "$work/symbols" >"$work/out"; then
  fail "the library uses CLI11 or spdlog"
fi

remote sandbox up
system_python
echo 'print("hello from rank 0") if __import__("os").environ["RANK"] == "0" else None' >train.py
got=0
"$train" . "python3 train.py" >"$work/out" 2>"$work/err" || got=$?
[ "$got" = 0 ] || fail "the program exits with $got"
printed 'hello from rank 0
2 of 2 ranks succeeded
'
for node in node-1 node-2; do
  grep -q "^$node: .*load" "$work/err" || fail "a callback did not ask $node"
  grep -qx "$node: no answer" "$work/err" || fail "the call that was too long was not cancelled"
done
got=0
# shellcheck disable=SC2016 # the ranks' shells expand it
"$train" . 'echo no >&2; exit $((RANK * 3))' >"$work/out" 2>"$work/err" || got=$?
[ "$got" = 1 ] || fail "the program exits with $got, not 1"
grep -qx 'rank 1 on node-2 failed first' "$work/out" || fail "the verdict names rank 1"

# Without the helper there is an error that names it, and a hint.
helper="$prefix/libexec/remote/remote-rsync-pipe"
mv "$helper" "$work/away"
echo 'print("changed")' >train.py
got=0
"$train" . "python3 train.py" >"$work/out" 2>"$work/err" || got=$?
[ "$got" = 1 ] || fail "the program exits with $got, not 1"
grep -q "its helper program $helper is not there" "$work/err" || fail "the helper is not named"
grep -q 'Hooks::rsync_helper' "$work/err" || fail "it does not say what to do"
