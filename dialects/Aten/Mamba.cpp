//===- Mamba.cpp - Mamba-2's fused mixer ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Work, traffic and temporaries are those of mamba_ssm's kernels
// (ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn): a convolution,
// steps and their sums, states of each chunk, what passes from chunk to chunk,
// C B of each group, the scan, a norm. The backward makes all but the scan's
// output again.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Fused.h"

#include "dialects/Aten/Rules.h"
#include "dialects/Aten/ShardingRuleBuilder.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

namespace {

struct Mixer {
  int64_t batch, tokens /* of a sequence */, heads, headDim, groups, state,
      chunk, kernel, width /* bytes of an element */;

  int64_t inner() const { return heads * headDim; }
  int64_t channels() const { return inner() + 2 * groups * state; }
  int64_t projected() const { return inner() + channels() + heads; }
  double all() const { return double(batch) * double(tokens); }
  /// Chunks are padded to their size.
  double chunks() const {
    return double(batch) * double((tokens + chunk - 1) / chunk);
  }
  /// States of all chunks.
  double states() const { return chunks() * double(inner()) * double(state); }
  /// Products of C and B within chunks.
  double scores() const {
    return chunks() * double(chunk) * double(chunk) * double(groups);
  }
  /// C B within chunks; half of its product with x, as later tokens are left
  /// out; B x into states, or C states; the convolution: FLOPs of each once.
  double inside() const { return 2 * scores() * double(state); }
  double scan() const {
    return chunks() * double(chunk) * double(chunk) * double(inner());
  }
  double passing() const { return 2 * all() * double(inner()) * double(state); }
  double conv() const { return 2 * all() * double(channels() * kernel); }
  double x() const { return all() * double(inner() * width); }
  double sharedOfGroups() const {
    return all() * double(2 * groups * state * width);
  }
};

template <typename OpT> Mixer sizesOf(OpT op, int64_t groups) {
  ArrayRef<int64_t> projected = shapeOf(op.getProjected());
  return {projected[0],
          projected[1],
          shapeOf(op.getDecay())[0],
          static_cast<int64_t>(op.getHeadDim()),
          groups,
          static_cast<int64_t>(op.getState()),
          static_cast<int64_t>(op.getChunk()),
          shapeOf(op.getConvWeight())[2],
          elementOf(op.getProjected()).getIntOrFloatBitWidth() / 8};
}

Mixer sizesOf(Mamba2MixerOp op) {
  return sizesOf(op, static_cast<int64_t>(op.getGroups()));
}
Mixer sizesOf(Mamba2MixerBackwardOp op) {
  return sizesOf(op, shapeOf(op.getRstd())[2]);
}

/// What the operands of both have to fit.
template <typename Adaptor>
LogicalResult checkMixer(std::optional<Location> loc, Adaptor adaptor,
                         int64_t groups) {
  ArrayRef<int64_t> projected = shapeOf(adaptor.getProjected()),
                    conv = shapeOf(adaptor.getConvWeight());
  const auto headDim = static_cast<int64_t>(adaptor.getHeadDim()),
             state = static_cast<int64_t>(adaptor.getState());
  if (headDim < 1 || state < 1 || adaptor.getChunk() < 1 || groups < 1)
    return emitOptionalError(loc, "sizes of heads, groups, states and chunks "
                                  "must be at least 1");
  if (projected.size() != 3)
    return emitOptionalError(loc, "expects [B, S, P], got ",
                             adaptor.getProjected().getType());
  ArrayRef<int64_t> decay = shapeOf(adaptor.getDecay());
  if (decay.size() != 1 || decay[0] % groups != 0)
    return emitOptionalError(loc, "heads of ", adaptor.getDecay().getType(),
                             " are not divided by ", groups, " groups");
  const int64_t inner = decay[0] * headDim,
                channels = inner + 2 * groups * state;
  if (projected[2] != inner + channels + decay[0])
    return emitOptionalError(loc, "a projection of ", projected[2],
                             " elements is not gate, input, B, C and steps, ",
                             inner + channels + decay[0]);
  if (conv.size() != 3 || conv[0] != channels || conv[1] != 1)
    return emitOptionalError(loc, "a convolution by ",
                             adaptor.getConvWeight().getType(), " is none of ",
                             channels, " channels");
  auto is = [&](Value value, int64_t size) {
    return shapeOf(value) == ArrayRef<int64_t>(size);
  };
  if (!is(adaptor.getConvBias(), channels) ||
      !is(adaptor.getStepBias(), decay[0]) || !is(adaptor.getSkip(), decay[0]))
    return emitOptionalError(loc, "biases of the convolution and the steps, "
                                  "and 'skip', must have a number for each "
                                  "channel or head");
  if (!is(adaptor.getNormWeight(), inner))
    return emitOptionalError(loc, "the norm's weight ",
                             adaptor.getNormWeight().getType(),
                             " does not have ", inner, " elements");
  return success();
}

} // namespace

INFER(Mamba2MixerOp) {
  const auto groups = static_cast<int64_t>(adaptor.getGroups());
  if (failed(checkMixer(loc, adaptor, groups)))
    return failure();
  RankedTensorType projected = tensorType(adaptor.getProjected());
  const int64_t batch = projected.getDimSize(0),
                tokens = projected.getDimSize(1);
  auto inner = RankedTensorType::get(
      {batch, tokens, shapeOf(adaptor.getNormWeight())[0]},
      projected.getElementType());
  results.append({inner, inner,
                  RankedTensorType::get({batch, tokens, groups},
                                        Float32Type::get(context))});
  return success();
}

INFER(Mamba2MixerBackwardOp) {
  ArrayRef<int64_t> rstd = shapeOf(adaptor.getRstd());
  if (rstd.size() != 3)
    return emitOptionalError(loc, "expects statistics [B, S, groups], got ",
                             adaptor.getRstd().getType());
  if (failed(checkMixer(loc, adaptor, rstd[2])))
    return failure();
  if (adaptor.getGradOut().getType() != adaptor.getScanned().getType())
    return emitOptionalError(
        loc, "the gradient ", adaptor.getGradOut().getType(),
        " is not of the scan's type ", adaptor.getScanned().getType());
  for (Value value :
       {adaptor.getProjected(), adaptor.getConvWeight(), adaptor.getConvBias(),
        adaptor.getStepBias(), adaptor.getDecay(), adaptor.getSkip(),
        adaptor.getNormWeight()})
    results.push_back(value.getType());
  return success();
}

BACKWARD(Mamba2MixerOp) {
  if (grads[1] || grads[2])
    return emitOpError("has no derivative through what it saves");
  if (!grads[0])
    return success();
  auto backward = b.createOp<Mamba2MixerBackwardOp>(
      grads[0], getProjected(), getConvWeight(), getConvBias(), getStepBias(),
      getDecay(), getSkip(), getNormWeight(), getScanned(), getRstd(),
      getHeadDim(), getState(), getChunk(), getEps(), getStepMin());
  for (unsigned i = 0; i < needed.size(); ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// B x into states, and C states, are two passes over those.
Cost Mamba2MixerOp::getCost() {
  const Mixer m = sizesOf(*this);
  // Reads and writes of x's size, of B's and C's, of C B and of states: the
  // convolution has (2, 2), the states (1, .5) and write fp32, their passing
  // reads those and writes the operands' dtype, C B reads B and C, the scan
  // (2, .5) with both, the norm (3, 0).
  return {m.inside() + m.scan() + 2 * m.passing() + m.conv(),
          8 * m.x() + 4 * m.sharedOfGroups() + 8 * m.scores() +
              m.states() * double(8 + 2 * m.width)};
}

/// Makes convolution, states and C B again; gradients of states from C and of
/// x, B, C from them; of C B; sums along the decay of x's gradient again.
Cost Mamba2MixerBackwardOp::getCost() {
  const Mixer m = sizesOf(*this);
  // The norm reads its input, the gate and the gradient and writes two; the
  // convolution again (2, 2) and its gradient (3, 3); states (1, .5) and their
  // gradient (1, .5); x's (3, .5); B's and C's (1, 1.5) each; C B's (2, 0) and
  // from it B's and C's (0, 4); sums (2, 0). States are written, read by their
  // passing and written in fp32, with their gradient; then both are copied in
  // the operands' dtype, of which x's, B's and C's gradients read.
  return {3 * m.inside() + 3 * m.scan() + 5 * m.passing() + 3 * m.conv(),
          20 * m.x() + 14 * m.sharedOfGroups() + 24 * m.scores() +
              m.states() * double(24 + 5 * m.width)};
}

/// What the convolution gives, states in fp32 and in the operands' dtype, C B,
/// and steps with their sums, in fp32.
int64_t Mamba2MixerOp::getWorkspaceBytes(Device) {
  const Mixer m = sizesOf(*this);
  return static_cast<int64_t>(m.x() + m.sharedOfGroups() +
                              m.states() * double(4 + m.width) +
                              4 * m.scores() + 8 * m.all() * double(m.heads));
}

/// The same, with gradients of what the convolution gave, of the scan's output
/// and of states.
int64_t Mamba2MixerBackwardOp::getWorkspaceBytes(Device) {
  const Mixer m = sizesOf(*this);
  return static_cast<int64_t>(3 * m.x() + 2 * m.sharedOfGroups() +
                              m.states() * double(8 + 2 * m.width) +
                              4 * m.scores() + 16 * m.all() * double(m.heads));
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

/// Groups of heads with their B and C are for themselves, each with its rows of
/// the projection and its channels, as Megatron's mixer lays them
/// (core/ssm/mamba_mixer.py); a scan passes all tokens.
MaybeRule aten::mambaRule(Operation *op) {
  auto forward = dyn_cast<Mamba2MixerOp>(op);
  auto backward = dyn_cast<Mamba2MixerBackwardOp>(op);
  if (!forward && !backward)
    return std::nullopt;
  const Mixer m = forward ? sizesOf(forward) : sizesOf(backward);
  RuleBuilder b(op);
  const int batch = b.factor(m.batch), groups = b.factor(m.groups);
  llvm::SmallDenseMap<int64_t, int> inside; // by size
  auto grouped = [&](TensorFactors &tensor, unsigned dim, int64_t size) {
    tensor.dims[dim].push_back(groups);
    if (const int64_t each = size / m.groups; each > 1) {
      auto [it, isNew] = inside.try_emplace(each, 0);
      if (isNew)
        it->second = b.wholeFactor(each);
      tensor.dims[dim].push_back(it->second);
    }
  };
  auto activation = [&](TensorFactors &tensor, int64_t size) {
    tensor.dims[0].push_back(batch);
    grouped(tensor, 2, size);
  };
  const unsigned first = backward ? 1 : 0;
  activation(b.operands(first), m.projected());
  const int64_t sizes[] = {m.channels(), m.channels(), m.heads,
                           m.heads,      m.heads,      m.inner()};
  for (unsigned i = 0; i < 6; ++i)
    grouped(b.operands(first + 1 + i), 0, sizes[i]);
  if (forward) {
    activation(b.results(0), m.inner());
    activation(b.results(1), m.inner());
    activation(b.results(2), m.groups);
    return b.sizes("groups", 2, 2).take();
  }
  activation(b.operands(0), m.inner());
  activation(b.operands(8), m.inner());
  activation(b.operands(9), m.groups);
  activation(b.results(0), m.projected());
  for (unsigned i = 0; i < 6; ++i) {
    grouped(b.results(1 + i), 0, sizes[i]);
    b.partial(1 + i, batch);
  }
  return b.take();
}
