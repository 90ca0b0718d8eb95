#!/bin/sh
# Fails if the client uses features that only Linux has, such as /proc, outside `#ifdef __linux__` or an #ifdef of that
# very name, or a thread class or a view that is missing in the other C++ library or in Debian 12's clang (tests/libcxx
# finds more of these, but takes long).
# Usage: portable.sh SOURCE_DIR
set -eu
cd -- "${1:?source folder}"
found=$(find src include -name '*.[ch]pp' ! -path 'src/static/*' ! -path 'src/agent/*' -exec awk '
  FNR == 1 { depth = 0; linux = 0 }
  /^ *# *if/ { outer[++depth] = linux; if (/__linux__|SOCK_CLOEXEC|TCP_/ && !/ndef|!/) linux = 1 }
  /^ *# *el(se|if)/ { linux = outer[depth] }
  /^ *# *endif/ { linux = outer[depth--] }
  linux || /^ *(\/\/|#if)/ { next }
  /std::(jthread|stop_token|stop_source|views)|"\/proc|"\/sys\/|[^a-z_](pipe2|accept4|ppoll|sync_file_range|fdatasync|explicit_bzero|memrchr|strchrnul|execvpe|eventfd|signalfd|renameat2|close_range|fallocate|gettid|program_invocation_name)[^a-z_]*\(|[^A-Za-z_](SOCK_CLOEXEC|SOCK_NONBLOCK|MSG_NOSIGNAL|O_PATH|O_TMPFILE|POLLRDHUP|CLOCK_BOOTTIME|TCP_USER_TIMEOUT|TCP_KEEPIDLE)[^A-Za-z_]|<(sys\/(prctl|epoll|eventfd|inotify|sysinfo|sendfile)|linux\/[a-z]*)[.]h>/ {
    print FILENAME ":" FNR ": " $0
  }' {} +)
if [ -n "$found" ]; then
  printf '%s\n' "$found"
  echo "  a Mac has none of it: put it into #ifdef __linux__, with what is done elsewhere; threads: base/threads.hpp"
  exit 1
fi
echo "portable: what only Linux has is in #ifdef __linux__"
