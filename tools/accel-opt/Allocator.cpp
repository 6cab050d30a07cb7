//===- Allocator.cpp - How jemalloc serves a short process ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

/// jemalloc's options (its manual, "TUNING"): the process ends soon, so memory
/// that is freed is not given back, and few threads share two arenas.
extern "C" {
extern const char *malloc_conf;
const char *malloc_conf = "narenas:2,dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
