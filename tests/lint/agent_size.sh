#!/bin/sh
# Fails if an agent is larger than 600 KB when compressed with xz: each new server receives it, perhaps over a slow
# link. The streams of the C++ library alone would take 230 KB, and stdio and locales of the C library 90 KB
# (src/agent/unused_parts.cpp). Usage: agent_size.sh FOLDER (agent, in the build folder)
set -eu
most=600000
bad=0
for file in "${1:?folder of the agents}"/*.xz; do
  size=$(wc -c <"$file")
  echo "agent_size: ${file##*/} has $size bytes, of at most $most"
  [ "$size" -le "$most" ] || bad=1
done
exit "$bad"
