//===- Evaluation.cpp - What an evaluation holds --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Phases/PhaseBuilder.h"

namespace accel {

/// What an evaluation holds, in bytes of a rank.
struct PhaseBuilder::Evaluated {
  int64_t batch = 1;    // sequences
  int64_t parts = 1;    // of its tokens, whose logits are made one by one
  int64_t forward = 0;  // of a batch, beside what persists
  int64_t gathered = 0; // a batch's logits as they are returned, of all ranks
  int64_t sample = 0;   // a sequence's logits in fp32, as the host has them
};

/// Of a job's evaluation. A single process has no more in a batch than there
/// is; ranks that share the samples fill their batches up (even_batches of
/// BatchSamplerShard, accelerate/data_loader.py).
int64_t PhaseBuilder::evalBatch() const {
  const int64_t asked =
      in.evalBatch.value_or(std::max<int64_t>(1, model.microBatch));
  return ranks() == 1 && in.keptLogits && in.keptLogits->samples
             ? std::min(asked, *in.keptLogits->samples)
             : asked;
}

/// The model's forward without saved values, up to the logits; 0: not known.
int64_t PhaseBuilder::activationsInEval(int64_t batch, int64_t parts) const {
  if (batch == model.microBatch)
    return evaluationBytes(model, target, candidate, parts).value_or(0);
  const auto other = in.stepOf ? in.stepOf(batch) : nullptr;
  return other ? evaluationBytes(*other->model, target, other->candidate, parts)
                     .value_or(0)
               : 0;
}

int64_t PhaseBuilder::logitsInEval(int64_t batch) const {
  int64_t logits = 0;
  for (const StepCall &call : model.calls)
    logits += model.kinds[call.kind].logitsBytes;
  return logits / std::max<int64_t>(1, model.microBatch) * batch;
}

/// The widest of the model's forward, and of logits that the loss converts to
/// fp32.
int64_t PhaseBuilder::forwardInEval(int64_t batch, int64_t parts) const {
  const int64_t item = plan::itemSize(candidate.dtypes.compute);
  const int64_t logits = logitsInEval(batch);
  const int64_t wide = logits / std::max<int64_t>(item, 1) * 4;
  // Of 16 bits the loss makes an fp32 copy; of that it takes a log-softmax.
  const int64_t inLoss = logits + (item < 4 ? wide : 0) + wide;
  const int64_t returned = candidate.dtypes.outputFloat ? wide : logits;
  return std::max(
      weightsInEval(item) + inLoss / parts + (comparesInEval() ? wide : 0),
      activationsInEval(batch, parts) + (comparesInEval() ? returned : 0));
}

/// A loss of preferences runs its reference beside the logits.
bool PhaseBuilder::comparesInEval() const {
  return candidate.preference.logProbabilities &&
         candidate.preference.reference != PreferenceStep::Reference::None;
}

void PhaseBuilder::eval() {
  Evaluated e;
  e.batch = evalBatch();
  const int64_t logits = logitsInEval(e.batch);
  if (logits == 0 || !in.evaluates)
    return;
  const int64_t item = plan::itemSize(candidate.dtypes.compute);
  const int64_t wide = logits / std::max<int64_t>(item, 1) * 4;
  // Where the loss alone is asked for, Trainer tells a fused one to leave out
  // the logits (skip_logits); those of a part are there.
  e.parts = !in.keptLogits && atLeast(in.transformers, "5.23")
                ? std::max<int64_t>(1, candidate.lossChunks)
                : 1;
  e.forward = forwardInEval(e.batch, e.parts);
  e.gathered = (candidate.dtypes.outputFloat ? wide : logits) * ranks();
  e.sample = wide / e.batch;
  const int64_t trained = std::max<int64_t>(1, model.microBatch);
  const std::string batch =
      e.batch < in.evalBatch.value_or(trained)
          ? "a batch of all " + std::to_string(e.batch) + " (--eval-samples)"
      : in.evalBatch ? "a batch of " + std::to_string(e.batch) +
                           " (per_device_eval_batch_size)"
                     : std::string("one batch of the step's size");
  if (in.keptLogits)
    return evalKeeps(e, *in.keptLogits, batch);
  add(PhaseKind::Eval, step.persistentBytes + e.forward, step.hostBytes,
      step.hostBytes,
      batch + " whose loss alone is kept" +
          (comparesInEval() ? ", and the reference's logits beside the model's"
                            : "") +
          "; with compute_metrics the logits of all ranks stay on the "
          "device, " +
          in.bytesText(e.gathered) +
          " for each batch until eval_accumulation_steps (--eval-samples N "
          "counts them)");
}

/// Each batch's logits are gathered from all ranks and joined to those before
/// by a copy of all (nested_concat), on the device and, once they go there,
/// on every rank's host.
void PhaseBuilder::evalKeeps(const Evaluated &e, const KeptLogits &kept,
                             const std::string &batch) {
  const int64_t ofAll = e.batch * ranks();
  const int64_t batches = kept.samples ? (*kept.samples + ofAll - 1) / ofAll
                                       : kept.batches.value_or(1);
  const int64_t there =
      kept.eachBatch ? 1 : std::min(batches, kept.batches.value_or(batches));
  const bool joins = kept.joins && !kept.eachBatch;
  // The last batch's are there under a name of their own while the next
  // one's are computed, and so are all before and after being joined.
  auto before = [&](int64_t count) {
    return count * e.gathered + (joins && count > 1 ? e.gathered : 0);
  };
  int64_t during = e.forward + before(there - 1);
  // Of a process alone the last batch has what is left. Where all stay, no
  // whole batch runs beside so many.
  const int64_t left = kept.samples ? *kept.samples - (batches - 1) * ofAll : 0;
  if (ofAll == e.batch && there == batches && there > 1 && left > 0)
    during = std::max(e.forward + before(there - 2),
                      forwardInEval(left, e.parts) + before(there - 1));
  const int64_t all = ofAll == e.batch && kept.samples
                          ? std::min(there * e.batch, *kept.samples)
                          : there * e.batch;
  const int64_t after =
      (joins && there > 1 ? 2 : 1) * all * (e.gathered / e.batch);
  const int64_t device = step.persistentBytes + std::max(during, after);
  const int64_t total =
      kept.samples && !kept.eachBatch ? *kept.samples * e.sample : 0;
  const int64_t host = total * (joins && batches > there ? 2 : 1);
  std::string why = batch + " whose logits compute_metrics gets: those of " +
                    (there == 1 ? std::string("one batch")
                                : std::to_string(there) + " batches") +
                    " of all ranks stay on the device, " +
                    in.bytesText(e.gathered) + " each" +
                    (joins && there > 1 ? ", twice while they are joined" : "");
  if (total > 0)
    why += "; then all are in the host memory of each rank, " +
           in.bytesText(total) +
           (host > total ? ", twice while they are joined" : "");
  else if (!kept.eachBatch)
    why += "; those on the host are not counted without --eval-samples N";
  why += kept.batches || kept.eachBatch
             ? "; preprocess_logits_for_metrics can reduce them before"
             : "; eval_accumulation_steps moves them to the host, and "
               "preprocess_logits_for_metrics can reduce them before";
  add(PhaseKind::Eval, device, step.hostBytes + host, step.hostBytes + host,
      std::move(why));
}

/// What a forward without gradients holds of weights, beside what persists: a
/// gathered unit, or autocast's copies, which its cache keeps until the end.
int64_t PhaseBuilder::weightsInEval(int64_t item) const {
  if (fsdp() || (deepspeed() && candidate.zeroStage == 3))
    return gatheredInEval(item);
  int64_t copies = 0;
  for (const StepParameter &parameter : model.parameters)
    if (candidate.dtypes.autocast && parameter.trainable &&
        parameter.shape.size() > 1 &&
        plan::itemSize(dtypes.storage(parameter)) > item)
      copies += parameter.numel() * item;
  return copies;
}

/// A second model is one unit under FSDP2, whose forward holds the output of
/// its collective and the parameters that are copied out of it.
int64_t PhaseBuilder::gatheredInEval(int64_t item) const {
  if (candidate.executor != FrameworkKind::Fsdp2 ||
      candidate.preference.reference != PreferenceStep::Reference::Second)
    return largestUnit;
  const int64_t stored =
      std::max<int64_t>(1, plan::itemSize(candidate.dtypes.storage));
  return std::max(largestUnit, 2 * (ownStoredBytes / stored * item));
}

} // namespace accel
