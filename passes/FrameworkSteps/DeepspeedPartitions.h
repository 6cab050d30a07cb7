//===- DeepspeedPartitions.h - Which rank updates what ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Stages 1 and 2 of ZeRO lay the parameters of each of the optimizer's groups
// in one row and give each rank an equal part of it (zero/stage_1_and_2.py), so
// that a part may begin and end inside of a parameter.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPARTITIONS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPARTITIONS_H

#include "passes/StepModel/StepModel.h"

#include <algorithm>
#include <array>
#include <vector>

namespace accel {

struct DeepspeedPartitions {
  /// A group of the optimizer: its trained elements, and a rank's.
  struct Group {
    int64_t numel = 0, partition = 0;
  };
  /// The most elements of a parameter that one rank updates, and all of that
  /// parameter's.
  struct Piece {
    int64_t elements = 0, of = 0;
  };

  std::array<Group, 2> groups;
  std::vector<Piece> pieces; // by unit
  /// A rank keeps the whole gradient of a parameter of which it has a part
  /// (copy_grads_in_partition): the elements of the rank with the most.
  int64_t keptGradients = 0;

  /// Of the optimizer: matrices, then what has no weight decay (the groups of
  /// transformers' Trainer and of most training loops).
  static int groupOf(const StepParameter &parameter) {
    return parameter.shape.size() < 2 ? 1 : 0;
  }

  /// Each group is padded to two elements a rank.
  static DeepspeedPartitions of(const StepModel &model,
                                const std::vector<int> &unitOf, size_t units,
                                int64_t ranks) {
    DeepspeedPartitions all;
    all.pieces.resize(units);
    for (const StepParameter &parameter : model.parameters)
      if (parameter.trainable)
        all.groups[groupOf(parameter)].numel += parameter.storedNumel();
    for (Group &g : all.groups)
      g.partition = (g.numel + 2 * ranks - 1) / (2 * ranks) * 2;
    std::vector<int64_t> kept(ranks);
    int64_t at[2] = {};
    for (size_t p = 0; p < model.parameters.size(); ++p)
      if (const StepParameter &parameter = model.parameters[p];
          parameter.trainable) {
        const int g = groupOf(parameter);
        all.place(parameter.storedNumel(), at[g], all.groups[g].partition,
                  all.pieces[unitOf[p]], kept);
        at[g] += parameter.storedNumel();
      }
    all.keptGradients = *std::max_element(kept.begin(), kept.end());
    return all;
  }

  /// Elements that a rank updates.
  int64_t elements() const { return groups[0].partition + groups[1].partition; }
  /// Of all units.
  const Piece &largestPiece() const {
    return *std::max_element(
        pieces.begin(), pieces.end(),
        [](const Piece &a, const Piece &b) { return a.elements < b.elements; });
  }

private:
  /// A parameter that begins at `begin` of its row, of which `part` elements
  /// are each rank's.
  static void place(int64_t numel, int64_t begin, int64_t part, Piece &most,
                    std::vector<int64_t> &kept) {
    const int64_t end = begin + numel;
    for (size_t r = begin / part; r < kept.size(); ++r) {
      const int64_t first = static_cast<int64_t>(r) * part;
      if (first >= end)
        break;
      kept[r] += numel;
      const int64_t piece =
          std::min(end, first + part) - std::max(begin, first);
      if (piece > most.elements)
        most = {piece, numel};
    }
  }
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_DEEPSPEEDPARTITIONS_H
