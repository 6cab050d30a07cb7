//===- KeyData.h - The tables behind KeyTable.h -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_KEYDATA_H
#define ACCEL_FRONTENDS_ACCELERATE_KEYDATA_H

#include "frontends/Accelerate/KeyTable.h"

namespace accel {

/// Keys of one section stand together, in the order of allSections().
std::span<const KeyInfo> keyData();
std::span<const SectionInfo> sectionData();

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_KEYDATA_H
