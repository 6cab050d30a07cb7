//===- OpCost.h - Seconds of one operator -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A roofline over curves: an operator takes its launch, and then the longer of
// its arithmetic and its traffic. Matmuls attain what their shape allows
// (tiles dealt to multiprocessors in waves, the inner size against the cost of
// filling the pipeline), attention what its length and head allow, everything
// else what its bytes allow. All seconds are of one rank of a target.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_COST_OPCOST_H
#define ACCEL_PASSES_COST_OPCOST_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string_view>

namespace accel {

/// What decides an operator's time.
enum class OpKind {
  View,      // takes none
  Matmul,    // mm, addmm, bmm, baddbmm, linear
  Attention, // fused attention, forward or backward
  Scan,      // a Mamba-2 mixer between its projections
  Loop,      // a gated delta rule of single operators, chunk by chunk
  Reduction, // norms, softmax, losses, sums, embedding gradients
  Stream     // everything else: reads and writes its tensors once
};

/// Choices that a job makes and a target does not.
struct CostOptions {
  bool tf32 = false; // f32 matmuls in TF32, where the target has it
  bool fp8 = false;  // 16-bit matmuls of fp8 operands, where it has them
};

/// One matmul: `batch` times [m, k] x [k, n]; of a matmul by groups, as many
/// of equal length.
struct MatmulShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  double flops() const;
};

/// One fused attention, all sequences and heads of it.
struct AttentionShape {
  int64_t queries = 1, keys = 1; // tokens of a sequence
  int64_t headSize = 1;
  bool causal = false;
  bool backward = false;
  bool cudnn = false; // cuDNN's kernel, which has rates of its own
};

/// The kind of an operator by its name ("aten::mm.out"); one that neither
/// computes nor moves anything is a view.
OpKind opKind(const plan::Instruction &instruction);

/// The dtype in which an operator computes: of its first floating-point tensor.
plan::DType computeType(const plan::Function &function,
                        const plan::Instruction &instruction);

/// The sizes of a matmul or attention whose operands say them.
std::optional<MatmulShape> matmulShape(const plan::Function &function,
                                       const plan::Instruction &instruction);
std::optional<AttentionShape>
attentionShape(const plan::Function &function,
               const plan::Instruction &instruction);

/// The rates that `dtype` computes with.
const ComputeRate &computeRate(const Target &target, plan::DType dtype,
                               const CostOptions &options = {});

/// Seconds of a matmul's arithmetic alone. The best of several tile sizes, as
/// cuBLAS chooses one, with the inner size split where tiles are too few.
double productSeconds(const Target &target, plan::DType dtype,
                      const MatmulShape &shape,
                      const CostOptions &options = {});

/// Seconds of an attention's arithmetic alone; `flops` are those that are not
/// masked.
double attentionSeconds(const Target &target, plan::DType dtype,
                        const AttentionShape &shape, double flops,
                        const CostOptions &options = {});

/// Seconds of a memory-bound operator with its launch.
double memorySeconds(const Target &target, double bytes,
                     OpKind kind = OpKind::Stream);

/// Seconds of one operator with its launch; 0 for a view.
double opSeconds(const plan::Function &function,
                 const plan::Instruction &instruction, const Target &target,
                 const CostOptions &options = {});

/// What a function takes, run operator by operator or compiled.
struct FunctionCost {
  double seconds = 0; // on the device, launches included
  int launches = 0;   // kernels: times Target::dispatchSeconds is CPU time
};

/// Every operator by itself: eager frameworks and accel-run.
FunctionCost eagerCost(const plan::Function &function, const Target &target,
                       const CostOptions &options = {});

/// As torch.compile runs it: operators that are neither matmuls nor attention
/// become one kernel with those that they read from or feed, where no matmul
/// or attention lies between; values inside a kernel touch no memory.
FunctionCost fusedCost(const plan::Function &function, const Target &target,
                       const CostOptions &options = {});
/// By instruction: the kernel that it is in, as the number of one of its
/// instructions. Matmuls and attention are kernels of their own; a view is in
/// none and has its own number.
std::vector<int> fusedKernels(const plan::Function &function);

} // namespace accel

#endif // ACCEL_PASSES_COST_OPCOST_H
