//===- Deterministic.h - Kernels that give other bits each time -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_DETERMINISTIC_H
#define ACCEL_RUNTIME_PLAN_DETERMINISTIC_H

#include "runtime/plan/Functions.h"

namespace accel::plan {

/// What CUDA's kernel of an operator gives each time; torch stops where
/// torch.use_deterministic_algorithms asks for the same and it varies.
enum class Bits {
  Same,
  Vary,   // a plan of a job with 'deterministic: true' takes another kernel
  VaryAll // there is no other
};

/// Of a plan's instruction, in a function with these slots.
inline Bits bitsOnCuda(const Instruction &instruction,
                       const std::vector<Slot> &slots) {
  const std::string &op = instruction.op;
  if (op == "aten::_scaled_dot_product_cudnn_attention_backward")
    return Bits::Vary;
  if (op == "aten::_adaptive_avg_pool2d_backward" ||
      op == "aten::upsample_bilinear2d_backward")
    return Bits::VaryAll;
  if (op != "aten::histc" || instruction.args.empty() ||
      instruction.args[0].kind != Arg::Kind::Tensor)
    return Bits::Same;
  const DType counted = slots[instruction.args[0].slot].dtype;
  return counted == DType::F64 || counted == DType::F32 ||
                 counted == DType::F16 || counted == DType::BF16
             ? Bits::Vary
             : Bits::Same;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_DETERMINISTIC_H
