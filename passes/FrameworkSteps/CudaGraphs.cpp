//===- CudaGraphs.cpp - What CUDA graphs hold and copy --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// With mode reduce-overhead or max-autotune Inductor records the kernels of a
// compiled function once and replays them (torch/_inductor/cudagraph_trees.py).
// All graphs of a process share one private pool, forward and backward alike:
// what a function makes, saves and returns, gradients of parameters too, lies
// in it, and no segment of it goes back to the caching allocator. Kernels find
// their operands at the addresses of the recording. Parameters are taken to
// stay where they are (mark_static_input, torch/_dynamo/variables/builder.py),
// and so is what another graph made; any other input is copied into the pool
// before the replay (_allocate_and_copy_recording_inputs). FSDP1's functions
// read views of the flat parameter, which are no nn.Parameter: they are copied,
// and as saved tensors the copies live until the backward.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepRun.h"

namespace accel {

/// The call copies this input before it runs.
bool StepLayout::movesInput(int call, size_t input) const {
  if (!isReplayed(call))
    return false;
  const int producer = model.values[model.calls[call].inputs[input]].producer;
  return producer < 0 || !isReplayed(producer);
}

/// Of a model that is compiled as a whole the calls are parts of one graph,
/// unless a wrapper ends graphs between them.
bool StepLayout::startsGraph(int call) const {
  if (!isReplayed(call))
    return false;
  const bool one = candidate->executor == FrameworkKind::Single ||
                   (candidate->executor == FrameworkKind::Deepspeed &&
                    candidate->zeroStage < 3);
  return !(one && candidate->compiledWhole);
}

void StepLayout::measureGraphs() {
  graphCopies.clear();
  graphGradients.clear();
  if (!candidate->replaysGraphs)
    return;
  graphCopies.resize(model.calls.size());
  graphGradients.resize(units.size());
  for (size_t c = 0; c < model.calls.size(); ++c) {
    const int index = static_cast<int>(c);
    if (!isReplayed(index))
      continue;
    const StepCall &call = model.calls[c];
    const SegmentVariant &v = variant(index);
    GraphCopies &copies = graphCopies[c];
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (movesInput(index, i))
        (v.savesInput[i] ? copies.held : copies.passing) +=
            model.values[call.inputs[i]].bytes;
    for (int value : call.outputs)
      if (const int from = firstGradient[value]; from >= 0 && !isReplayed(from))
        copies.tangents += model.values[value].gradientBytes;
    if (candidate->executor == FrameworkKind::Fsdp1)
      for (size_t i = 0; i < call.parameters.size(); ++i) {
        const StepParameter &p = model.parameters[call.parameters[i]];
        const bool saved = i < v.backwardReads.size() && v.backwardReads[i];
        (saved ? copies.held : copies.passing) +=
            round(p.numel() * plan::itemSize(dtypes().compute(p)));
      }
  }
  for (size_t p = 0; p < model.parameters.size(); ++p)
    if (model.parameters[p].trainable && lastUser[p] >= 0 &&
        isReplayed(lastUser[p]))
      graphGradients[candidate->unitOf[p]] +=
          freshGradientBytes(static_cast<int>(p));
}

Pool StepRun::poolOf(int call) const {
  return call >= 0 && layout.isReplayed(call) ? Pool::Graphs : Pool::Compute;
}

void StepRun::freeFresh(int unit, int64_t bytes) {
  // Gradients of another dtype were cast outside of graphs.
  const int64_t graphs =
      candidate.replaysGraphs && bytes == layout.units[unit].gradients
          ? layout.graphGradients[unit]
          : 0;
  engine.free(Holding::Gradients, graphs, Pool::Graphs);
  engine.free(Holding::Gradients, bytes - graphs);
}

GraphCopies StepRun::copiesOf(int call) const {
  return layout.isReplayed(call) ? layout.graphCopies[call] : GraphCopies();
}

} // namespace accel
