//===- ReferenceForward.cpp - Frozen weights that a loss is compared with -===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// TRL's DPOTrainer._compute_loss (trl 1.10) runs the trained forward, takes
// log-probabilities of its logits, and then runs the reference without a graph:
// beside all that the first forward saved. Its logits live until the loss is
// returned. GRPOTrainer scores completions before the forward that is trained:
// by its reference, and by the trained weights where those may have moved
// since.
//
// LLaMA-Factory's get_batch_logps takes a log-softmax of all logits in fp32,
// which stays for the backward; the kernel copies their slice first. The logits
// themselves live until the loss is returned.
//
// How each framework holds a second model is TRL's prepare_fsdp and
// prepare_deepspeed (trl/models/utils.py), and Accelerate's
// prepare_model(evaluation_mode=True) otherwise: whole, in the dtype in which
// it was loaded, under the autocast of mixed precision.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"

#include <algorithm>

namespace accel {

/// Of all heads, in the dtype of the model's output.
int64_t StepRun::logitsBytes() const {
  int64_t bytes = 0;
  for (const StepCall &call : model.calls)
    if (model.kinds[call.kind].loss)
      bytes += model.kinds[call.kind].logitsBytes;
  return bytes;
}

bool StepRun::returnsWideLogits() const {
  return logitsItem() == 2 &&
         std::any_of(model.calls.begin(), model.calls.end(),
                     [&](const StepCall &call) {
                       return model.kinds[call.kind].returnsWideLogits;
                     });
}

/// As the loss reads them: a wrapper converts 16 bits to fp32.
int64_t StepRun::lossLogitsBytes() const {
  const bool wide = candidate.dtypes.outputFloat || candidate.preference.whole;
  return wide && logitsItem() == 2 ? 2 * logitsBytes() : logitsBytes();
}

/// TRL's selective_log_softmax keeps the logits (in 16 bits: log-probabilities
/// of their size) where the model's own loss keeps log-probabilities in fp32.
int64_t StepRun::savedBytes(int call) const {
  return takesLogProbabilities(call) ? besideLogits(call) + lossLogitsBytes()
                                     : layout.variant(call).savedBytes;
}

/// The logits, as the loss reads them, and one sample's rows of them; GRPO
/// divides them by a temperature first. Of 16 bits both are there: before the
/// conversion, or beside the log-probabilities.
int64_t StepRun::forwardPeak(int call) const {
  if (!takesLogProbabilities(call))
    return layout.variant(call).forwardPeakBytes;
  const int64_t read = lossLogitsBytes();
  const int64_t narrow = logitsItem() == 2 ? logitsBytes() : 0;
  if (candidate.preference.whole)
    return besideLogits(call) + read + std::max(narrow, 2 * read);
  const int64_t row = read / std::max<int64_t>(model.microBatch, 1);
  return besideLogits(call) + narrow + read +
         (candidate.preference.scoresFirst ? read : row);
}

/// What the backward of the loss holds before the logits have their gradient,
/// beside what was saved: of log-probabilities in fp32 the gradients of the
/// samples' rows, and these stacked; in 16 bits a row's saved values are gone
/// when its gradient is there.
int64_t StepRun::lossPeak(int call) const {
  if (candidate.lossChunks > 1 && layout.kind(call).loss)
    return 0;
  if (!takesLogProbabilities(call))
    return layout.variant(call).lossPeakBytes;
  const bool narrow = readsNarrow() && !candidate.preference.whole;
  return (narrow ? 1 : 2) * lossLogitsBytes();
}

/// What is freed on the way counts against the peak, and the loss kept another
/// number of bytes.
int64_t StepRun::backwardPeak(int call) const {
  const SegmentVariant &v = layout.variant(call);
  return (addsGradientsInMatmuls() ? v.backwardPeakBytes
          : gradientsStay()        ? v.backwardPeakAddedBytes
                                   : v.backwardPeakFreshBytes) +
         v.savedBytes - savedBytes(call);
}

StepRun::ReferenceSizes StepRun::referenceSizes() const {
  const int64_t ranks = layout.shards.ranks;
  const plan::DType compute = candidate.dtypes.compute;
  const bool zero = candidate.executor == FrameworkKind::Deepspeed;
  const bool fsdp = candidate.executor == FrameworkKind::Fsdp1 ||
                    candidate.executor == FrameworkKind::Fsdp2;
  ReferenceSizes sizes;
  for (const StepParameter &parameter : model.parameters) {
    const int64_t numel = parameter.storedNumel();
    // DeepSpeed's engine converts it; others keep what was loaded.
    const bool converted = zero || candidate.preference.whole;
    const int64_t item = plan::itemSize(
        converted && !parameter.quantized() ? compute : parameter.dtype);
    if (fsdp || (zero && candidate.zeroStage == 3)) {
      sizes.held += layout.round((numel + ranks - 1) / ranks * item);
      const int64_t group = candidate.zero.secondaryRanks;
      if (zero && numel <= candidate.zero.persistenceThreshold)
        sizes.held += layout.round(numel * item);
      else if (zero && group > 1) // of ZeRO++, never stale
        sizes.held += layout.round((numel + group - 1) / group * item);
    } else {
      sizes.held += layout.round(numel * item);
    }
    sizes.whole += layout.round(numel * plan::itemSize(compute));
    if (parameter.dtype != compute)
      sizes.cast += (numel + ranks - 1) / ranks * plan::itemSize(compute);
  }
  sizes.cast = layout.round(sizes.cast);
  return sizes;
}

void StepRun::allocateReference() {
  engine.alloc(Holding::Buffers, candidate.preference.generationBytes);
  if (!hasSecond())
    return;
  const int64_t held = referenceSizes().held;
  // prepare_fsdp and prepare_deepspeed take the offloading of parameters over.
  if (candidate.offloadParameters)
    hostBytes += held;
  else
    engine.alloc(Holding::Parameters, held);
}

/// Without a graph a call holds what it computes with, and its outputs.
void StepRun::callWithoutGraph(int c, int64_t &copies) {
  const StepCall &call = model.calls[c];
  const SegmentKind &kind = layout.kind(c);
  engine.at(c, Place::Part::Reference);
  int64_t peak = layout.variant(c).forwardPeakBytes;
  for (const SegmentVariant &variant : kind.variants)
    if (!variant.solved)
      peak = std::min(peak, variant.forwardPeakBytes);
  // Of the head: a norm in fp32 and the logits; the loss is elsewhere.
  if (kind.loss)
    peak =
        std::min(peak, 3 * kind.inputBytes + kind.logitsBytes / evaluatedParts);
  engine.transient(Holding::Activations, peak);
  engine.call(layout.calls[c].forward, layout.calls[c].forwardExchange);
  // Autocast's cache has copies of what could be trained, so of a second model
  // too, which nobody froze. An evaluation runs the trained one.
  const bool caches = running == PreferenceStep::Reference::None ||
                      (runsSecond() && !candidate.preference.whole);
  if (caches && candidate.dtypes.autocast) {
    const int64_t copy = layout.variant(c).parameterCopyBytes;
    engine.alloc(Holding::Activations, copy);
    copies += copy;
  }
  if (!kind.loss)
    for (int value : call.outputs)
      engine.alloc(Holding::Activations, model.values[value].bytes);
  auto free = [&](int value) {
    engine.free(Holding::Activations, model.values[value].bytes);
  };
  for (int value : call.inputs)
    if (model.values[value].producer >= 0 && layout.lastReader[value] == c)
      free(value);
  if (!kind.loss)
    for (int value : call.outputs)
      if (layout.lastReader[value] < 0)
        free(value);
}

/// Runs all calls; the bytes of autocast's copies, which the caller frees.
int64_t StepRun::runWithoutGraph(bool reference) {
  const std::vector<Block> &blocks = layout.blocks;
  const int count = static_cast<int>(blocks.size());
  int64_t copies = 0;
  for (int b = 0; b < count;) {
    const int run = std::max(1, blocks[b].alike - reachForward());
    const int64_t before = copies;
    int64_t each = 0;
    engine.repeat(run, [&](int64_t i) {
      const Block &block = blocks[b + i];
      each = 0;
      engine.at(block.begin, Place::Part::Reference);
      if (reference)
        beforeReference(block);
      else
        beforeForward(block);
      for (int c = block.begin; c < block.end; ++c)
        callWithoutGraph(c, each);
      engine.at(block.end - 1, Place::Part::Reference);
      if (reference)
        afterReference(block);
      else
        afterForward(block);
    });
    copies = before + run * each; // blocks of a run are alike
    b += run;
  }
  return copies;
}

/// Wrappers gather and free weights as in a forward that is trained.
void StepRun::evaluate(int64_t lossParts) {
  evaluatedParts = std::max<int64_t>(1, lossParts);
  engine.at(-1, Place::Part::Reference);
  beginForward();
  for (const StepValue &value : model.values)
    if (value.producer < 0 && !value.buffer)
      engine.alloc(Holding::Buffers, value.bytes);
  engine.free(Holding::Activations, runWithoutGraph(/*reference=*/false));
  endForward();
  for (const StepValue &value : model.values)
    if (value.producer < 0 && !value.buffer)
      engine.free(Holding::Buffers, value.bytes);
  evaluatedParts = 1;
}

/// Before the forward that is trained.
void StepRun::scoreCompletions() {
  if (candidate.preference.scoresItself)
    engine.free(Holding::Logits,
                referenceForward(PreferenceStep::Reference::Itself));
  if (candidate.preference.scoresFirst)
    engine.free(Holding::Logits,
                referenceForward(candidate.preference.reference));
}

/// After it: what the loss computes until it is returned.
void StepRun::lossForward() {
  const PreferenceStep &preference = candidate.preference;
  engine.at(-1, Place::Part::Reference);
  // The model's output is a variable of the loss; 16 bits were not saved.
  const bool narrow = preference.logProbabilities && readsNarrow();
  const int64_t outputs = preference.whole ? lossLogitsBytes()
                          : narrow         ? logitsBytes()
                                           : 0;
  engine.alloc(Holding::Logits, outputs);
  const int64_t reference =
      preference.scoresFirst ? 0 : referenceForward(preference.reference);
  engine.at(-1, Place::Part::Reference);
  // DPO's metrics: the entropy reshapes a slice of the logits, which copies it,
  // and computes 128 rows at a time (entropy_from_logits).
  if (preference.whole) {
    engine.transient(Holding::Logits, 2 * reference);
  } else if (preference.logProbabilities && !preference.scoresFirst) {
    const int64_t read = lossLogitsBytes();
    const int64_t rows = std::max<int64_t>(model.tokens(), 1);
    engine.transient(Holding::Logits,
                     read + read / rows * 3 * std::min<int64_t>(rows, 128));
  }
  engine.free(Holding::Logits, reference);
  engine.free(Holding::Logits, outputs);
}

/// Returns the bytes of its logits, which the caller frees.
int64_t StepRun::referenceForward(PreferenceStep::Reference whose) {
  if (whose == PreferenceStep::Reference::None)
    return 0;
  running = whose;
  // FSDP's wrapper of a second model enters no autocast.
  const bool sharded = candidate.executor == FrameworkKind::Fsdp1 ||
                       candidate.executor == FrameworkKind::Fsdp2;
  const int64_t logits = logitsBytes();
  const bool asComputed =
      runsSecond() && sharded && !candidate.preference.whole;
  const int64_t kept = asComputed ? logits : lossLogitsBytes();
  engine.at(-1, Place::Part::Reference);
  beginReference();
  const int64_t copies = runWithoutGraph(/*reference=*/true);
  engine.alloc(Holding::Logits, logits);
  endReference();
  engine.free(Holding::Activations, copies);
  if (kept > logits) {
    engine.alloc(Holding::Logits, kept);
    engine.free(Holding::Logits, logits);
  }
  running = PreferenceStep::Reference::None;
  return kept;
}

} // namespace accel
