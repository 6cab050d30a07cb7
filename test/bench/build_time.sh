#!/usr/bin/env bash
# Seconds to build from nothing in a scratch folder: the compiler, then every
# other binary (tests, and accel-run where torch is), and the compiler again with
# a warm ccache. Bounds on 2 cores: 6 minutes, 10 in all, 20 s warm.
#
#   test/bench/build_time.sh [--without-warm]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CCACHE_DIR=$scratch/ccache
warm=1
[[ ${1-} == --without-warm ]] && warm=0 && export CCACHE_DISABLE=1

# build TARGET
build() {
  local start=$SECONDS
  cmake -S "$root" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    >"$scratch/log" && ninja -C "$scratch/build" "$1" >>"$scratch/log" ||
    { tail -30 "$scratch/log" >&2; exit 1; }
  echo "$((SECONDS - start))"
}
compiler=$(build accel-opt)
rest=$(build all)
printf 'accel-opt, clean: %s s (bound 360)\n' "$compiler"
printf 'all binaries, clean: %s s (bound 600)\n' "$((compiler + rest))"
if ((warm)); then
  rm -rf "$scratch/build"
  again=$(build accel-opt)
  printf 'accel-opt, clean, warm ccache: %s s (bound 20)\n' "$again"
  ((again < 20)) || exit 1
fi
((compiler < 360 && compiler + rest < 600))
