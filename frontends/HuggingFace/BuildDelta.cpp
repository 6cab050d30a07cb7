//===- BuildDelta.cpp - Gated delta rules as operators --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Qwen3NextGatedDeltaNet and Qwen3_5GatedDeltaNet of transformers 5.23.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/DecoderParts.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Fused.h"

using namespace accel;
using namespace accel::huggingface;
using namespace accel::aten;
using mlir::Value;
using mlir::ValueRange;

namespace {

/// What the modules in front of a gated delta rule give: queries, keys and
/// values [B, S, C], the gate [B, S, heads * size], betas and steps of decays
/// [B, S, heads].
struct DeltaInputs {
  Value mixed, gate, beta, steps;
};

} // namespace

static DeltaInputs projectDelta(FunctionWriter &f, const Decoder &decoder,
                                Value hidden) {
  const DeltaMixer &m = decoder.delta;
  DecoderParts parts(f, decoder);
  const int64_t batch = f.shape(hidden)[0], sequence = f.shape(hidden)[1];
  Value rows = f.view(hidden, {batch * sequence, decoder.hiddenSize});
  auto project = [&](const std::string &module) {
    Value x = parts.linear(rows, module);
    f.enter(m.path);
    return f.view(x, {batch, sequence, f.shape(x).back()});
  };
  DeltaInputs inputs;
  if (!m.joined()) {
    inputs.mixed = project(m.in);
    inputs.gate = project(m.gateIn);
    inputs.beta = project(m.betaIn);
    inputs.steps = project(m.decayIn);
    return inputs;
  }
  // For each key head its query, its key, its heads' values and gates; betas
  // and steps.
  const int64_t served = m.heads / m.keyHeads, values = served * m.valueDim;
  auto part = [&](Value from, int64_t begin, int64_t size) -> Value {
    Value x = parts.slice(from, 3, begin, begin + size);
    return f.view(m.keyHeads > 1 ? f.op<CloneOp>(x) : x,
                  {batch, sequence, m.keyHeads * size});
  };
  Value all = project(m.in), numbers = project(m.decayIn);
  all = f.view(all, {batch, sequence, m.keyHeads, 2 * m.keyDim + 2 * values});
  numbers = f.view(numbers, {batch, sequence, m.keyHeads, 2 * served});
  Value value = part(all, 2 * m.keyDim, values);
  inputs.gate = part(all, 2 * m.keyDim + values, values);
  inputs.beta = part(numbers, 0, served);
  inputs.steps = part(numbers, served, served);
  Value query = part(all, 0, m.keyDim), key = part(all, m.keyDim, m.keyDim);
  inputs.mixed = f.op<CatOp>(ValueRange{query, key, value}, uint64_t(2));
  return inputs;
}

Value accel::huggingface::writeDelta(FunctionWriter &f, const Decoder &decoder,
                                     Value hidden) {
  const DeltaMixer &m = decoder.delta;
  DecoderParts parts(f, decoder);
  const int64_t batch = f.shape(hidden)[0], sequence = f.shape(hidden)[1];
  f.enter(m.path);
  DeltaInputs inputs = projectDelta(f, decoder, hidden);
  // causal_conv1d_fn: what lies behind the sequence is cut off.
  Value taps = f.param(m.convolution + ".weight");
  const int64_t before = f.shape(taps)[2] - 1, one = 1, none = 0;
  auto turned = [&](Value x) -> Value {
    return f.op<TransposeIntOp>(x, uint64_t(1), uint64_t(2));
  };
  Value mixed = f.op<ConvolutionOp>(
      turned(inputs.mixed), taps, Value(), llvm::ArrayRef(one),
      llvm::ArrayRef(before), llvm::ArrayRef(one), /*transposed=*/false,
      llvm::ArrayRef(none), uint64_t(f.shape(taps)[0]));
  if (before)
    mixed = parts.slice(mixed, 2, 0, sequence);
  mixed = turned(f.op<SiluOp>(mixed));
  auto wide = [&](Value x) -> Value { // float()
    Value copy = f.op<ToCopyOp>(x, f.f32());
    copy.getDefiningOp()->setAttr(asksFloatAttr, f.unit(true));
    return copy;
  };
  Value beta = f.op<SigmoidOp>(inputs.beta);
  Value rate = f.op<NegOp>(f.op<ExpOp>(wide(f.param(m.decay))));
  Value steps = f.op<AddTensorOp>(wide(inputs.steps), f.param(m.stepBias));
  steps = f.op<SoftplusOp>(steps, f.number(1), f.number(20));
  Value decay = f.op<MulTensorOp>(rate, steps);
  Value core = f.op<GatedDeltaRuleOp>(mixed, decay, beta, uint64_t(m.keyHeads),
                                      uint64_t(m.keyDim), /*cast=*/false);
  core = f.view(core, {batch * sequence * m.heads, m.valueDim});
  Value gate = f.view(inputs.gate, f.shape(core));
  f.enter(m.norm);
  Value normed =
      f.op<RmsNormOp>(core, f.param(m.norm + ".weight"),
                      f.number(decoder.normEps), f.unit(false), f.unit(false));
  Value open = f.op<SiluOp>(wide(gate));
  Value gated = f.op<TypeAsOp>(f.op<MulTensorOp>(normed, open), core);
  gated = f.view(gated, {batch * sequence, m.heads * m.valueDim});
  return f.view(parts.linear(gated, m.out), f.shape(hidden));
}
