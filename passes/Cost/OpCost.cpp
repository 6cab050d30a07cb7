//===- OpCost.cpp - Seconds of one operator -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/OpCost.h"

#include "runtime/plan/InstructionKey.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace accel {

using namespace plan;

namespace {

/// A block of a matmul's result that one multiprocessor computes at a time.
/// Smaller ones read their operands more often.
struct Tile {
  double rows, columns, efficiency;
};
// Of cuBLAS's and CUTLASS's kernels for 16-bit operands; the efficiencies are
// the arithmetic per byte of shared memory that a tile allows, saturating at
// 128 x 128.
constexpr std::array<Tile, 6> tiles = {{{256, 128, 1.0},
                                        {128, 256, 1.0},
                                        {128, 128, 0.95},
                                        {128, 64, 0.8},
                                        {64, 128, 0.8},
                                        {64, 64, 0.62}}};
constexpr std::array<double, 5> splits = {1, 2, 4, 8, 16};

double ceilDiv(double a, double b) { return std::ceil(a / b); }
int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool isFloating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16 ||
         dtype == DType::F64;
}

/// "aten::addmm.out" -> "addmm".
std::string_view baseName(std::string_view op) {
  if (size_t colons = op.rfind("::"); colons != op.npos)
    op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// Shapes of the tensors among the arguments, in order.
std::vector<const std::vector<int64_t> *>
tensorShapes(const Function &function, const Instruction &instruction) {
  std::vector<const std::vector<int64_t> *> shapes;
  for (const Arg &arg : instruction.args)
    if (arg.kind == Arg::Kind::Tensor)
      shapes.push_back(&function.slots[arg.slot].shape);
  return shapes;
}

} // namespace

double MatmulShape::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
         static_cast<double>(n) * static_cast<double>(k);
}

OpKind opKind(const Instruction &instruction) {
  if (instruction.flops == 0 && instruction.movedBytes == 0)
    return OpKind::View;
  const std::string_view name = baseName(instruction.op);
  if (contains(name, "attention"))
    return OpKind::Attention;
  if (contains(name, "mamba2_mixer"))
    return OpKind::Scan;
  if (contains(name, "gated_delta_rule"))
    return OpKind::Loop;
  if (name.ends_with("mm") || name.ends_with("matmul") ||
      name.ends_with("linear"))
    return OpKind::Matmul;
  for (const char *part : {"norm", "softmax", "nll_loss", "cross_entropy",
                           "dense_backward", "index_add"})
    if (contains(name, part))
      return OpKind::Reduction;
  if (name == "sum" || name == "mean" || name == "var" || name == "amax")
    return OpKind::Reduction;
  return OpKind::Stream;
}

DType computeType(const Function &function, const Instruction &instruction) {
  for (const Arg &arg : instruction.args)
    if (arg.kind == Arg::Kind::Tensor &&
        isFloating(function.slots[arg.slot].dtype))
      return function.slots[arg.slot].dtype;
  for (int slot : instruction.results)
    if (slot >= 0 && isFloating(function.slots[slot].dtype))
      return function.slots[slot].dtype;
  return DType::F32;
}

std::optional<MatmulShape> matmulShape(const Function &function,
                                       const Instruction &instruction) {
  const std::string_view name = baseName(instruction.op);
  // addmm and baddbmm begin with what the matmul is added to.
  const size_t first = name == "addmm" || name == "baddbmm" ? 1 : 0;
  const auto shapes = tensorShapes(function, instruction);
  if (shapes.size() < first + 2)
    return std::nullopt;
  const std::vector<int64_t> &a = *shapes[first], &b = *shapes[first + 1];
  MatmulShape shape;
  if (name == "linear") { // the weight is [n, k]
    if (a.empty() || b.size() != 2 || a.back() != b[1])
      return std::nullopt;
    for (size_t i = 0; i + 1 < a.size(); ++i)
      shape.m *= a[i];
    shape.n = b[0];
    shape.k = b[1];
    return shape;
  }
  if (name == "_grouped_mm") {
    if (shapes.size() < 3 || a.size() != 2 || b.size() < 2 ||
        shapes[2]->size() != 1 || shapes[2]->front() < 1)
      return std::nullopt;
    // Groups of equal length: of the rows, or of what is summed over.
    shape.batch = shapes[2]->front();
    shape.n = b.back();
    const bool rows = b.size() == 3;
    shape.m = rows ? ceilDiv(a[0], shape.batch) : a[0];
    shape.k = rows ? a[1] : ceilDiv(a[1], shape.batch);
    return shape;
  }
  const size_t rank = a.size();
  if ((rank != 2 && rank != 3) || b.size() != rank ||
      a[rank - 1] != b[rank - 2])
    return std::nullopt;
  if (rank == 3)
    shape.batch = a[0];
  shape.m = a[rank - 2];
  shape.k = a[rank - 1];
  shape.n = b[rank - 1];
  return shape;
}

std::optional<AttentionShape> attentionShape(const Function &function,
                                             const Instruction &instruction) {
  AttentionShape shape;
  shape.backward = contains(instruction.op, "backward");
  shape.cudnn = contains(instruction.op, "cudnn");
  const auto shapes = tensorShapes(function, instruction);
  // A backward begins with the output's gradient.
  const size_t first = shape.backward ? 1 : 0;
  if (shapes.size() < first + 2 || shapes[first]->size() != 4 ||
      shapes[first + 1]->size() != 4)
    return std::nullopt;
  const std::vector<int64_t> &query = *shapes[first];
  // aten::_flash_attention_forward has [B, S, H, D].
  const size_t tokens = contains(instruction.op, "::_flash_attention") ? 1 : 2;
  shape.queries = query[tokens];
  shape.headSize = query[3];
  shape.keys = (*shapes[first + 1])[tokens];
  double all = (shape.backward ? 10.0 : 4.0) * static_cast<double>(shape.keys);
  for (int64_t size : query)
    all *= static_cast<double>(size);
  shape.causal = instruction.flops < 0.75 * all;
  return shape;
}

const ComputeRate &computeRate(const Target &target, DType dtype,
                               const CostOptions &options) {
  if (options.tf32 && target.tf32 && dtype == DType::F32)
    return *target.tf32;
  if (options.fp8 && target.fp8 &&
      (dtype == DType::BF16 || dtype == DType::F16))
    return *target.fp8;
  return target.rate(dtype);
}

double productSeconds(const Target &target, DType dtype,
                      const MatmulShape &shape, const CostOptions &options) {
  const ComputeRate &rate = computeRate(target, dtype, options);
  const double flops = rate.peakFlops * rate.matmulEfficiency;
  const double k = static_cast<double>(shape.k);
  if (target.multiprocessors == 0)
    return shape.flops() / flops * (k + rate.halfDepth) / std::max(k, 1.0);
  const double each = flops / static_cast<double>(target.multiprocessors);
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double batch = static_cast<double>(shape.batch);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile &tile : tiles) {
    const double count =
        batch * ceilDiv(m, tile.rows) * ceilDiv(n, tile.columns);
    for (double split : splits) {
      // Splits shorter than a few steps of the pipeline do not pay.
      if (split > 1 && (k / split < 256 ||
                        count * split > 2.0 * double(target.multiprocessors)))
        break;
      const double waves =
          ceilDiv(count * split, static_cast<double>(target.multiprocessors));
      double seconds = waves * 2 * tile.rows * tile.columns *
                       (k / split + rate.halfDepth) / (each * tile.efficiency);
      if (split > 1) // the partial results are written and summed in f32
        seconds += 8 * split * batch * m * n /
                   std::max(1.0, target.memoryBytesPerSecond);
      best = std::min(best, seconds);
    }
  }
  return best;
}

double attentionSeconds(const Target &target, DType dtype,
                        const AttentionShape &shape, double flops,
                        const CostOptions &options) {
  // fp8 recipes leave attention in 16 bits.
  CostOptions own = options;
  own.fp8 = false;
  const ComputeRate &rate = computeRate(target, dtype, own);
  const bool cudnn = shape.cudnn && rate.cudnnEfficiency > 0;
  const double forward =
      cudnn ? rate.cudnnEfficiency : rate.attentionEfficiency;
  const double backward =
      cudnn ? rate.cudnnBackwardEfficiency : rate.attentionBackwardEfficiency;
  double efficiency = shape.backward && backward > 0 ? backward : forward;
  auto saturating = [](double size, double half) {
    return half > 0 ? size / (size + half) : 1.0;
  };
  // The blocks on a causal mask's diagonal are computed whole; they are the
  // fewer, the longer the sequence.
  const double half = rate.attentionHalfLength * (shape.causal ? 1.0 : 0.25);
  efficiency *= saturating(static_cast<double>(shape.keys), half) *
                saturating(static_cast<double>(shape.headSize),
                           cudnn ? rate.cudnnHalfHead : rate.attentionHalfHead);
  return flops / (rate.peakFlops * efficiency);
}

double memorySeconds(const Target &target, double bytes, OpKind kind) {
  const double bandwidth =
      kind == OpKind::Reduction && target.reductionBytesPerSecond > 0
          ? target.reductionBytesPerSecond
          : target.memoryBytesPerSecond;
  return target.launchSeconds + (bytes + target.memoryHalfBytes) / bandwidth;
}

/// torch's _grouped_mm has a kernel for all groups in bf16 alone. In other
/// dtypes the host waits until `offs` is computed and copied to it, and queues
/// one matmul after the other while the device has nothing else to do.
static double groupByGroupSeconds(const Target &target, DType dtype,
                                  MatmulShape shape,
                                  const CostOptions &options) {
  const double groups = static_cast<double>(shape.batch);
  shape.batch = 1;
  return target.host.latencySeconds +
         groups * std::max(target.dispatchSeconds,
                           target.launchSeconds +
                               productSeconds(target, dtype, shape, options));
}

/// Kernels that mamba_ssm launches for a mixer (dialects/Aten/Mamba.cpp): the
/// convolution, steps and their sums, states, their passing, C B, the scan, the
/// norm; backward all but the last two again, and twelve more.
constexpr double scanKernels = 7, scanBackwardKernels = 17;

/// Each kernel loads its tiles, multiplies over one chunk and stores: no loop
/// is long enough to hide the loads behind products of that depth, so that both
/// are waited for. Products are of 16-bit operands also in fp8 recipes.
static double scanSeconds(const Function &function,
                          const Instruction &instruction,
                          const Target &target) {
  const ComputeRate &rate = target.rate(computeType(function, instruction));
  double chunk = 1; // the last whole number among the arguments
  for (const Arg &arg : instruction.args)
    if (arg.kind == Arg::Kind::Int)
      chunk = std::max(1.0, static_cast<double>(arg.intValue));
  const double bandwidth = target.reductionBytesPerSecond > 0
                               ? target.reductionBytesPerSecond
                               : target.memoryBytesPerSecond;
  return (contains(instruction.op, "backward") ? scanBackwardKernels
                                               : scanKernels) *
             target.launchSeconds +
         instruction.flops / (rate.peakFlops * rate.matmulEfficiency) *
             (chunk + rate.halfDepth) / chunk +
         instruction.movedBytes / bandwidth;
}

/// torch_chunk_gated_delta_rule's operators (dialects/Aten/DeltaRule.cpp): each
/// kernel is short, so that the host, which queues them from a loop of Python,
/// may be what is waited for.
static double loopSeconds(const Function &function,
                          const Instruction &instruction,
                          const Target &target) {
  const bool backward = contains(instruction.op, "backward");
  bool cast = false;
  for (const Arg &arg : instruction.args)
    if (arg.kind == Arg::Kind::Bool)
      cast = arg.intValue != 0;
  const std::vector<int64_t> &shape = *tensorShapes(function, instruction)[0];
  constexpr int64_t chunk = 64;
  const auto chunks = static_cast<double>(ceilDiv(shape[1], chunk));
  // Of transformers 5.23 and torch's derivatives, counted.
  const double kernels = backward ? cast ? 42 * chunks + 76 : 31 * chunks + 75
                         : cast   ? 17 * chunks + 50
                                  : 9 * chunks + 46;
  const ComputeRate &rate =
      target.rate(cast ? computeType(function, instruction) : DType::F32);
  const double device = kernels * target.launchSeconds +
                        instruction.flops /
                            (rate.peakFlops * rate.matmulEfficiency) *
                            (double(chunk) + rate.halfDepth) / double(chunk) +
                        instruction.movedBytes / target.memoryBytesPerSecond;
  return std::max(device, kernels * target.dispatchSeconds);
}

double opSeconds(const Function &function, const Instruction &instruction,
                 const Target &target, const CostOptions &options) {
  const OpKind kind = opKind(instruction);
  if (kind == OpKind::View)
    return 0;
  if (!target.measured.empty())
    if (const auto at =
            target.measured.find(instructionKey(function, instruction));
        at != target.measured.end())
      return at->second;
  if (kind == OpKind::Scan)
    return scanSeconds(function, instruction, target);
  if (kind == OpKind::Loop)
    return loopSeconds(function, instruction, target);
  DType dtype = computeType(function, instruction);
  double compute = 0;
  if (kind == OpKind::Matmul) {
    CostOptions own = options;
    if (baseName(instruction.op) == "_scaled_mm") { // of fp8 operands
      own.fp8 = true;
      dtype = DType::BF16;
    }
    const ComputeRate &rate = computeRate(target, dtype, own);
    const auto shape = matmulShape(function, instruction);
    if (shape && dtype != DType::BF16 && target.kind == TargetKind::Cuda &&
        baseName(instruction.op) == "_grouped_mm")
      return groupByGroupSeconds(target, dtype, *shape, options);
    // Operands that contradict the work say nothing about its shape.
    compute =
        shape && std::abs(shape->flops() - instruction.flops) <=
                     0.1 * instruction.flops
            ? productSeconds(target, dtype, *shape, own)
            : instruction.flops / (rate.peakFlops * rate.matmulEfficiency);
  } else if (kind == OpKind::Attention) {
    const ComputeRate &rate = target.rate(dtype);
    const auto shape = attentionShape(function, instruction);
    compute =
        shape ? attentionSeconds(target, dtype, *shape, instruction.flops,
                                 options)
              : instruction.flops / (rate.peakFlops * rate.attentionEfficiency);
  } else {
    // Plain units compute in f32 whatever the dtype.
    if (instruction.flops > 0)
      compute = instruction.flops / target.peakFlops(DType::F32);
    return std::max(target.launchSeconds + compute,
                    memorySeconds(target, instruction.movedBytes, kind));
  }
  return target.launchSeconds +
         std::max(compute,
                  instruction.movedBytes / target.memoryBytesPerSecond);
}

FunctionCost eagerCost(const Function &function, const Target &target,
                       const CostOptions &options) {
  FunctionCost cost;
  for (const Instruction &instruction : function.instructions) {
    if (opKind(instruction) == OpKind::View)
      continue;
    cost.seconds += opSeconds(function, instruction, target, options);
    ++cost.launches;
  }
  return cost;
}

} // namespace accel
