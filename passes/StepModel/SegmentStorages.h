//===- SegmentStorages.h - The storages of a segment ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_SEGMENTSTORAGES_H
#define ACCEL_PASSES_STEPMODEL_SEGMENTSTORAGES_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

enum class Owner { Own, Input, Tangent, Parameter };

/// A storage: one base slot and the views of it.
struct Storage {
  Owner owner = Owner::Own;
  int index = -1; // of the input
  int64_t bytes = 0;
  int producer = -1;    // instruction
  int lastForward = -1; // last use by each half
  int lastBackward = -1;
  bool output = false, inputGradient = false, parameterGradient = false;
  bool parameterCopy = false;
  int outputIndex = -1;
  /// Saved by autograd: made in the forward and read by the backward.
  bool saved() const {
    return owner == Owner::Own && lastBackward >= 0 && madeInForward;
  }
  bool madeInForward = false;
};

/// By slot; those of slots that are views are empty.
std::vector<Storage> storagesOf(const SegmentGraph &graph);

/// The autograd node of derivative `i`, or what follows of it, unpacks a value
/// that was saved for it: one of the forward, an input or a parameter. What
/// nodes hold in attributes (SegmentGraph::heldByNodes) is not unpacked.
bool unpacksSaved(const SegmentGraph &graph,
                  const std::vector<Storage> &storages, int i);

/// A child that discards what it gives makes it (SegmentGraph::discards).
bool isDiscarded(const SegmentGraph &graph, const Storage &storage);

/// By storage, where each child is a checkpoint of its own: it crosses the
/// boundary of a child and stays, as the arguments that a child is recomputed
/// from, and what derivatives outside of it read; and whether its own child's
/// backward reads it.
std::pair<std::vector<bool>, std::vector<bool>>
valuesOfChildren(const SegmentGraph &graph,
                 const std::vector<Storage> &storages);

/// What Python's frames hold in the forward of a segment with the loss.
struct FrameValues {
  /// By storage: the frames of the model's forward and of its loss function
  /// name it until they return, whatever the graph needs: the logits, and their
  /// fp32 copy; what the layers returned, of which autocast made a copy.
  std::vector<bool> named;
  /// The instruction before which the loss copies the shifted logits; -1: none.
  int shifted = -1;
};
FrameValues frameValues(const SegmentGraph &graph,
                        const std::vector<Storage> &storages);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_SEGMENTSTORAGES_H
