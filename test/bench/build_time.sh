#!/usr/bin/env bash
# Seconds to build the compiler from nothing, with a cold and a warm ccache, in
# a scratch folder. Bounds: 5 minutes cold, 20 s warm (2 cores).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CCACHE_DIR=$scratch/ccache

build() {
  local start=$SECONDS
  cmake -S "$root" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DACCEL_RUNTIME=OFF -DACCEL_TESTS=OFF >"$scratch/log" &&
    ninja -C "$scratch/build" accel-opt >>"$scratch/log" ||
    { tail -30 "$scratch/log" >&2; exit 1; }
  echo "$((SECONDS - start))"
}
cold=$(build)
rm -rf "$scratch/build"
warm=$(build)
printf 'accel-opt, clean, cold ccache: %s s (bound 300)\n' "$cold"
printf 'accel-opt, clean, warm ccache: %s s (bound 20)\n' "$warm"
((cold < 300 && warm < 20))
