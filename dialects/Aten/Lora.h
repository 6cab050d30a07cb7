//===- Lora.h - Adapters in autograd functions ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Layers with a LoRA that a trainer computes in autograd functions of its own
// in place of PEFT's modules. accel-run has none of them, so that no plan of
// its holds one.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_LORA_H
#define ACCEL_DIALECTS_ATEN_LORA_H

#include "dialects/Aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/Aten/AtenLora.h.inc"

#endif // ACCEL_DIALECTS_ATEN_LORA_H
