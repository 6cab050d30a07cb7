//===- SegmentMarks.cpp - What a segment's instructions belong to ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/SegmentMarks.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/InPlace.h"
#include "dialects/Aten/Schema.h"
#include "runtime/plan/ModulePath.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace accel;

void accel::markInstructions(func::FuncOp function,
                             const DenseSet<Operation *> &forward,
                             SegmentGraph &graph) {
  int unnumbered = -1;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto aten = dyn_cast<aten::AtenOpInterface>(op); // else an exchange
    graph.forward.push_back(forward.empty() || forward.contains(&op));
    graph.view.push_back(aten::isView(&op));
    int node = unnumbered--; // an exchange is a node of its own
    if (auto fused = aten ? dyn_cast<FusedLoc>(op.getLoc()) : FusedLoc())
      if (auto number = dyn_cast_if_present<IntegerAttr>(fused.getMetadata()))
        node = static_cast<int>(number.getInt());
    graph.node.push_back(node);
    auto save = op.getAttrOfType<aten::SaveAttr>(aten::saveAttr);
    graph.pointwiseKeeps.push_back(save &&
                                   save.getKind() == aten::SaveKind::Keep);
  }
}

bool accel::markChildren(func::FuncOp joint, StringRef path,
                         SegmentGraph &graph) {
  const std::string prefix = plan::withoutLayerNumbers(path) + ".";
  llvm::StringMap<int> children;
  graph.child.clear();
  for (Operation &op : joint.getBody().front().without_terminator()) {
    const std::string module = aten::modulePath(op.getLoc());
    StringRef rest(module);
    if (path.empty() || !rest.consume_front(prefix)) {
      graph.child.push_back(-1);
      continue;
    }
    const StringRef name = rest.split('.').first;
    graph.child.push_back(
        children.try_emplace(name, static_cast<int>(children.size()))
            .first->second);
  }
  return !children.empty();
}
