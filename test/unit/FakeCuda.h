//===- FakeCuda.h - A device for torch's allocator --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_FAKECUDA_H
#define ACCEL_TEST_UNIT_FAKECUDA_H

#include <cstdint>

/// Memory that is counted and never there. The functions of CUDA's runtime and
/// driver that c10's allocator calls are in FakeCuda.cpp; the executable's go
/// before those of the libraries.
struct FakeCuda {
  int64_t capacityBytes = 0; // 0: no end
  int64_t usedBytes = 0;
};
FakeCuda &fakeCuda();

#endif // ACCEL_TEST_UNIT_FAKECUDA_H
