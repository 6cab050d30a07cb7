//===- JointCheck.cpp - Counted against exported, for tests ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// joint-check DEVICE [SETS] < sharded.mlir: for each joint function and each
// mode, and for SETS pseudo-random saved sets, splits and exports the function
// as a plan holds it, and compares what the plan's timeline says of it with
// what measureSplit counted. Prints one line per function; exit 1 if any byte
// differs. Read by test/Passes/joint-graph.test.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Joint.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Partition/SplitJoint.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Recompute/ExtractJoint.h"
#include "runtime/plan/Timeline.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace mlir;
using namespace accel;

namespace {

aten::BindingKind bindingOf(func::FuncOp function, unsigned i, bool result) {
  auto attr =
      result
          ? function.getResultAttrOfType<aten::BindingAttr>(i,
                                                            aten::bindingAttr)
          : function.getArgAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
  return attr.getKind();
}

FailureOr<plan::Function> exportPart(func::FuncOp function,
                                     aten::Device device) {
  SmallVector<GradientMode> modes;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (bindingOf(function, i, true) == aten::BindingKind::ParamGrad) {
      Type type =
          cast<RankedTensorType>(function.getResultTypes()[i]).getElementType();
      modes.push_back({false, type.isBF16()  ? plan::DType::BF16
                              : type.isF16() ? plan::DType::F16
                              : type.isF64() ? plan::DType::F64
                                             : plan::DType::F32});
    }
  return exportFunction(function, modes, device, Reuse::Sums);
}

class Checker {
public:
  Checker(mlir::ModuleOp module, aten::Device device)
      : symbols(module), device(device) {}

  /// Whether all bytes of the split by `saved` are as exported.
  bool check(func::FuncOp joint, const ExtractedJoint &extracted,
             const SavedSet &saved, StringRef what) {
    SplitBytes want =
        measureSplit(extracted.graph, splitGraph(extracted.graph, saved));
    for (auto [op, mark, keep] :
         llvm::zip(extracted.ops, extracted.graph.marks, saved))
      if (mark.forward)
        op->setAttr(aten::saveAttr,
                    aten::SaveAttr::get(op->getContext(),
                                        keep ? aten::SaveKind::Keep
                                             : aten::SaveKind::Recompute,
                                        "test"));
    func::FuncOp copy = joint.clone();
    symbols.insert(copy); // renamed
    copy.setName("check" + jointSuffix.str());
    if (failed(splitJoint(copy)))
      return false;
    auto module = cast<mlir::ModuleOp>(symbols.getOp());
    auto forward = module.lookupSymbol<func::FuncOp>("check.forward");
    auto backward = module.lookupSymbol<func::FuncOp>("check.backward");
    bool same = compare(forward, backward, want, joint.getName(), what);
    forward.erase();
    backward.erase();
    return same;
  }

private:
  bool compare(func::FuncOp forward, func::FuncOp backward,
               const SplitBytes &want, StringRef name, StringRef what) {
    auto made = exportPart(forward, device);
    auto read = exportPart(backward, device);
    if (failed(made) || failed(read))
      return false;
    SplitBytes got;
    int64_t given = 0;
    std::vector<int64_t> consumed;
    for (unsigned i = 0, input = 0; i < backward.getNumArguments(); ++i) {
      auto kind = bindingOf(backward, i, false);
      if (kind == aten::BindingKind::Param)
        continue;
      int64_t bytes = read->slotBytes(read->inputs[input++]);
      if (kind == aten::BindingKind::Input)
        got.savedInput += bytes;
      else
        given += bytes;
      if (kind == aten::BindingKind::Saved || kind == aten::BindingKind::Output)
        got.saved += bytes;
      consumed.push_back(kind == aten::BindingKind::Input ? 0 : bytes);
    }
    plan::FunctionProfile profile = plan::profileFunction(*made, {});
    got.forwardPeak = profile.peakBytes;
    got.forwardPeakTotal = profile.peakTotalBytes;
    profile = plan::profileFunction(*read, {});
    got.backwardPeak = profile.peakBytes;
    got.backwardPeakTotal = profile.peakTotalBytes;
    profile = plan::profileFunction(*read, consumed);
    got.backwardHeldPeak = given + profile.peakBytes;
    got.backwardHeldTotal = given + profile.peakTotalBytes;
    bool same = true;
    auto expect = [&](StringRef field, int64_t a, int64_t b) {
      if (a == b)
        return;
      same = false;
      llvm::outs() << name << " (" << what << "): " << field << " counted " << a
                   << ", exported " << b << "\n";
    };
    expect("saved", want.saved, got.saved);
    expect("savedInput", want.savedInput, got.savedInput);
    expect("forwardPeak", want.forwardPeak, got.forwardPeak);
    expect("forwardPeakTotal", want.forwardPeakTotal, got.forwardPeakTotal);
    expect("backwardPeak", want.backwardPeak, got.backwardPeak);
    expect("backwardPeakTotal", want.backwardPeakTotal, got.backwardPeakTotal);
    expect("backwardHeldPeak", want.backwardHeldPeak, got.backwardHeldPeak);
    expect("backwardHeldTotal", want.backwardHeldTotal, got.backwardHeldTotal);
    return same;
  }

  SymbolTable symbols;
  aten::Device device;
};

} // namespace

int main(int argc, char **argv) {
  StringRef which = argc > 1 ? argv[1] : "";
  int sets = 0;
  if ((which != "cpu" && which != "cuda") ||
      (argc > 2 && StringRef(argv[2]).getAsInteger(10, sets))) {
    llvm::errs() << "usage: joint-check cpu|cuda [SETS] < sharded.mlir\n";
    return 64;
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto buffer = llvm::MemoryBuffer::getSTDIN();
  if (!buffer)
    return 1;
  auto module =
      parseSourceString<mlir::ModuleOp>((*buffer)->getBuffer(), &context);
  if (!module)
    return 1;
  auto device = which == "cpu" ? aten::Device::Cpu : aten::Device::Cuda;
  Checker checker(*module, device);
  bool same = true;
  for (auto joint : llvm::to_vector(module->getOps<func::FuncOp>())) {
    if (!joint.getName().ends_with(jointSuffix))
      continue;
    auto extracted = extractJoint(joint, device);
    if (failed(extracted))
      return 1;
    for (const char *mode : {"none", "pointwise", "full"})
      same &= checker.check(joint, *extracted,
                            savedByMode(extracted->graph, mode), mode);
    std::mt19937 random(7);
    for (int i = 0; i < sets; ++i) {
      SavedSet saved(extracted->ops.size());
      for (size_t op = 0; op < saved.size(); ++op)
        saved[op] = random() % 2;
      same &=
          checker.check(joint, *extracted, saved, "set " + std::to_string(i));
    }
    llvm::outs() << joint.getName() << ": " << extracted->ops.size()
                 << " operations, " << sets + 3 << " saved sets\n";
  }
  return same ? 0 : 1;
}
