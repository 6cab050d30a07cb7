//===- LossChunks.h - In how many chunks the loss pays off ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_LOSSCHUNKS_H
#define ACCEL_TOOLS_DRIVER_SESSION_LOSSCHUNKS_H

#include "passes/Pipeline/Import.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Targets/Target.h"

#include "mlir/IR/OwningOpRef.h"

#include <functional>

namespace accel {

/// What numbers of chunks are judged by.
struct LossJudge {
  const Target &machine; // whose seconds count
  int64_t ranksPerNode = 0;
  /// What a plan's reserved bytes and the context may take of a device; none
  /// where nothing says.
  std::optional<int64_t> roomBytes;
  Verification verification = Verification::AfterEachPass;
};

/// A module of phase `model` for these options; null after an error.
using Importer =
    std::function<mlir::OwningOpRef<mlir::ModuleOp>(const ImportOptions &)>;

/// Sets `options.lossChunks`, and the reason. Pieces are doubled as long as the
/// peak of a step is in the loss and falls by 1 %; then numbers between the
/// last two are tried. Each number is compiled, so bytes and seconds are those
/// of the program. Chosen is the least product of peak bytes and seconds of a
/// step (of products within 1 % the fewest chunks), since each further chunk
/// saves less and costs a pass over the table; where that does not fit
/// `roomBytes`, the fewest chunks that do, or the lowest peak. False after an
/// error.
bool chooseLossChunks(const Importer &importer, const LossJudge &judge,
                      ImportOptions &options);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_LOSSCHUNKS_H
