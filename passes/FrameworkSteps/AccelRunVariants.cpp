//===- AccelRunVariants.cpp - Variants as accel-run executes them ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/AccelRunVariants.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Cost/OpCost.h"
#include "passes/Differentiate/Joint.h"
#include "passes/Loss/LossHead.h"
#include "passes/Partition/FuseLoss.h"
#include "passes/Partition/SplitJoint.h"
#include "passes/Recompute/DecideSaved.h"
#include "runtime/plan/Timeline.h"

#include <set>

using namespace mlir;

namespace accel {
namespace {

double secondsOf(const plan::Function &function, const Target *target) {
  double seconds = 0;
  if (target)
    for (const plan::Instruction &i : function.instructions)
      seconds += opSeconds(function, i, *target);
  return seconds;
}

int launches(const plan::Function &function) {
  int count = 0;
  for (const plan::Instruction &i : function.instructions)
    count += i.flops != 0 || i.movedBytes != 0;
  return count;
}

aten::BindingAttr argBinding(func::FuncOp function, unsigned i) {
  return function.getArgAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
}

class AccelRunMemory {
public:
  AccelRunMemory(const SegmentKind &kind, const plan::Function &forward,
                 const plan::Function &backward, const Target *target)
      : kind(kind), forward(forward), backward(backward), target(target) {}

  SegmentVariant run(StringRef name, func::FuncOp backwardOp, int numInputs,
                     int numOutputs) {
    variant.name = name.str();
    variant.savesInput.assign(numInputs, false);
    variant.savesOutput.assign(numOutputs, false);
    measureForward(numOutputs);
    measureBackward(backwardOp);
    return variant;
  }

  /// A chunked loss: the backward does everything.
  SegmentVariant runFused(StringRef name, func::FuncOp op, int numInputs,
                          int numOutputs, int numParams) {
    variant.name = name.str();
    variant.savesInput.assign(numInputs, false);
    variant.savesOutput.assign(numOutputs, false);
    variant.backwardReads.assign(numParams, false);
    std::vector<int64_t> consumed(backward.inputs.size(), 0);
    size_t input = 0;
    for (unsigned i = 0; i < op.getNumArguments(); ++i) {
      auto binding = argBinding(op, i);
      const int index = static_cast<int>(binding.getIndex());
      if (binding.getKind() == aten::BindingKind::Param) {
        variant.backwardReads[index] = true;
        continue;
      }
      const size_t position = input++;
      if (binding.getKind() != aten::BindingKind::Input)
        continue;
      const int64_t bytes = backward.slotBytes(backward.inputs[position]);
      variant.savesInput[index] = true;
      variant.savedInputBytes += bytes;
      if (llvm::is_contained(kind.inputGradients, index))
        consumed[position] = bytes;
    }
    finishBackward(consumed);
    return variant;
  }

private:
  void measureForward(int numOutputs) {
    variant.forwardPeakBytes =
        plan::profileFunction(forward,
                              std::vector<int64_t>(forward.inputs.size(), 0))
            .peakTotalBytes;
    std::set<int> owned;
    for (int slot : forward.inputs)
      owned.insert(forward.slots[slot].base);
    for (int slot : forward.params)
      owned.insert(forward.slots[slot].base);
    for (size_t i = 0; i < forward.outputs.size(); ++i) {
      const int base = forward.slots[forward.outputs[i]].base;
      const bool first = owned.insert(base).second;
      if (first && static_cast<int>(i) >= numOutputs)
        variant.savedBytes += forward.slotBytes(base);
    }
    variant.forwardSeconds = secondsOf(forward, target);
    variant.compiledForwardSeconds = variant.forwardSeconds;
    variant.forwardOps = launches(forward);
  }

  /// Saved values, tangents and inputs with a gradient are given up to the
  /// backward, each storage charged to the argument that holds it longest.
  void measureBackward(func::FuncOp op) {
    std::vector<int64_t> consumed(backward.inputs.size(), 0);
    variant.backwardReads.assign(forward.params.size(), false);
    std::map<int, std::vector<size_t>> holders; // forward storage -> arguments
    size_t input = 0;
    for (unsigned i = 0; i < op.getNumArguments(); ++i) {
      auto binding = argBinding(op, i);
      const int index = static_cast<int>(binding.getIndex());
      if (binding.getKind() == aten::BindingKind::Param) {
        variant.backwardReads[index] = true;
        continue;
      }
      const size_t position = input++;
      if (binding.getKind() == aten::BindingKind::Input) {
        variant.savesInput[index] = true;
        variant.savedInputBytes +=
            backward.slotBytes(backward.inputs[position]);
        if (llvm::is_contained(kind.inputGradients, index) &&
            !llvm::is_contained(kind.sharedInputs, index))
          holders[forward.slots[forward.inputs[index]].base].push_back(
              position);
      } else if (binding.getKind() == aten::BindingKind::Output) {
        variant.savesOutput[index] = true;
      } else if (binding.getKind() == aten::BindingKind::Saved) {
        const int slot = forward.outputs[variant.savesOutput.size() + index];
        holders[forward.slots[slot].base].push_back(position);
      } else if (!kind.loss || binding.getKind() == aten::BindingKind::Carry) {
        // The loss's own tangent is an input of the program, which stays.
        consumed[position] = backward.slotBytes(backward.inputs[position]);
      }
    }
    for (const auto &[storage, positions] : holders)
      consumed[lastUsed(positions)] = forward.slotBytes(storage);
    finishBackward(consumed);
  }

  void finishBackward(const std::vector<int64_t> &consumed) {
    const plan::FunctionProfile profile =
        plan::profileFunction(backward, consumed);
    variant.backwardPeakBytes = variant.backwardPeakFreshBytes =
        variant.backwardPeakAddedBytes = profile.peakTotalBytes;
    variant.backwardSeconds = secondsOf(backward, target);
    variant.compiledBackwardSeconds = variant.backwardSeconds;
    variant.backwardOps = launches(backward);
  }

  size_t lastUsed(const std::vector<size_t> &positions) const {
    size_t best = positions.front();
    int latest = -1;
    for (size_t position : positions) {
      const int base = backward.inputs[position];
      int death = -1;
      for (size_t i = 0; i < backward.instructions.size(); ++i)
        for (int slot : backward.instructions[i].frees)
          if (backward.slots[slot].base == base)
            death = static_cast<int>(i);
      if (death > latest) {
        latest = death;
        best = position;
      }
    }
    return best;
  }

  const SegmentKind &kind;
  const plan::Function &forward, &backward;
  const Target *target;
  SegmentVariant variant;
};

/// All modes of a chunked loss are the same.
LogicalResult addFused(func::FuncOp joint, const std::string &symbol,
                       aten::Device device, const Target *target,
                       ArrayRef<GradientMode> gradients, StringRef name,
                       SegmentKind &kind) {
  auto module = joint->getParentOfType<mlir::ModuleOp>();
  int counts[3] = {}; // inputs, parameters, outputs
  for (unsigned i = 0; i < joint.getNumArguments(); ++i) {
    auto argument = argBinding(joint, i).getKind();
    counts[0] += argument == aten::BindingKind::Input;
    counts[1] += argument == aten::BindingKind::Param;
  }
  for (unsigned i = 0; i < joint.getNumResults(); ++i)
    counts[2] +=
        joint.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr)
            .getKind() == aten::BindingKind::Output;
  if (failed(fuseLoss(joint)))
    return failure();
  auto op = module.lookupSymbol<func::FuncOp>(symbol + backwardSuffix.str());
  auto backward = exportFunction(op, gradients, device, Reuse::AnyDead);
  if (failed(backward))
    return failure();
  const plan::Function forward;
  kind.variants.push_back(
      AccelRunMemory(kind, forward, *backward, target)
          .runFused(name, op, counts[0], counts[2], counts[1]));
  op.erase();
  return success();
}

/// Makes and measures the variants of one joint function.
class AccelRunVariantMaker {
public:
  AccelRunVariantMaker(func::FuncOp joint, aten::Device device,
                       const Target *target, ArrayRef<GradientMode> gradients,
                       SegmentKind &kind)
      : joint(joint), module(joint->getParentOfType<mlir::ModuleOp>()),
        target(target), gradients(gradients), kind(kind) {
    setting.device = device;
    for (unsigned i = 0; i < joint.getNumArguments(); ++i)
      numInputs += argBinding(joint, i).getKind() == aten::BindingKind::Input;
    for (unsigned i = 0; i < joint.getNumResults(); ++i)
      numOutputs +=
          joint.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr)
              .getKind() == aten::BindingKind::Output;
  }

  LogicalResult addMode(CheckpointMode mode) {
    if (joint->hasAttr(fusedAttr)) {
      if (mode != CheckpointMode::None) {
        SegmentVariant same = kind.variants.front();
        same.name = stringifyCheckpointMode(mode).str();
        kind.variants.push_back(std::move(same));
        return success();
      }
      std::string symbol;
      func::FuncOp copy = copyJoint(symbol);
      return addFused(copy, symbol, setting.device, target, gradients,
                      stringifyCheckpointMode(mode), kind);
    }
    auto variant = make(stringifyCheckpointMode(mode), mode, {});
    if (failed(variant))
      return failure();
    if (mode == CheckpointMode::None)
      computedOnce = variant->backwardSeconds;
    return add(std::move(*variant));
  }

  LogicalResult addSolved(const SavedSetPlan &way) {
    SmallVector<int64_t> keep;
    for (size_t op = 0; op < way.saved.size(); ++op)
      if (way.saved[op])
        keep.push_back(static_cast<int64_t>(op));
    auto variant = make(way.name, CheckpointMode::Set, keep);
    if (failed(variant))
      return failure();
    variant->solved = true;
    variant->keeps.assign(keep.begin(), keep.end());
    return add(std::move(*variant));
  }

private:
  /// A copy to work on; `symbol` is its name without the suffix.
  func::FuncOp copyJoint(std::string &symbol) {
    symbol = (joint.getName().drop_back(jointSuffix.size()) + ".own").str();
    func::FuncOp copy = joint.clone();
    copy.setName(symbol + jointSuffix.str());
    module.insert(std::next(joint->getIterator()), copy);
    return copy;
  }

  LogicalResult add(SegmentVariant variant) {
    variant.recomputeSeconds =
        std::max(0.0, variant.backwardSeconds - computedOnce);
    kind.variants.push_back(std::move(variant));
    return success();
  }

  FailureOr<SegmentVariant> make(StringRef name, CheckpointMode mode,
                                 ArrayRef<int64_t> keep) {
    std::string symbol;
    func::FuncOp copy = copyJoint(symbol);
    MLIRContext *context = joint.getContext();
    auto how = sharding::CheckpointAttr::get(
        context, mode, sharding::BecauseAttr::get(context, ""), -1, keep);
    if (failed(decideSaved(copy, how, setting)) || failed(splitJoint(copy)))
      return failure();
    auto forwardOp =
        module.lookupSymbol<func::FuncOp>(symbol + forwardSuffix.str());
    auto backwardOp =
        module.lookupSymbol<func::FuncOp>(symbol + backwardSuffix.str());
    auto forward =
        exportFunction(forwardOp, {}, setting.device, Reuse::AnyDead);
    auto backward =
        exportFunction(backwardOp, gradients, setting.device, Reuse::AnyDead);
    if (failed(forward) || failed(backward))
      return failure();
    SegmentVariant variant = AccelRunMemory(kind, *forward, *backward, target)
                                 .run(name, backwardOp, numInputs, numOutputs);
    forwardOp.erase();
    backwardOp.erase();
    return variant;
  }

  func::FuncOp joint;
  mlir::ModuleOp module;
  const Target *target;
  ArrayRef<GradientMode> gradients;
  SegmentKind &kind;
  CheckpointSetting setting;
  int numInputs = 0, numOutputs = 0;
  double computedOnce = 0;
};

} // namespace

const std::vector<SegmentVariant> *
AccelRunVariantCache::find(func::FuncOp joint, const Setting &setting) const {
  for (const Entry &entry : entries) {
    func::FuncOp known = *entry.joint;
    if (known.getName() == joint.getName() && entry.setting == setting &&
        OperationEquivalence::isEquivalentTo(known, joint,
                                             OperationEquivalence::None))
      return &entry.variants;
  }
  return nullptr;
}

void AccelRunVariantCache::add(func::FuncOp joint, Setting setting,
                               const std::vector<SegmentVariant> &variants) {
  entries.push_back(
      {OwningOpRef<func::FuncOp>(joint.clone()), std::move(setting), variants});
}

LogicalResult addAccelRunVariants(func::FuncOp joint, aten::Device device,
                                  const Target *target,
                                  ArrayRef<GradientMode> gradients,
                                  ArrayRef<SavedSetPlan> solved,
                                  SegmentKind &kind,
                                  AccelRunVariantCache *cache) {
  AccelRunVariantCache::Setting setting;
  if (!solved.empty())
    cache = nullptr;
  if (cache) {
    setting = {device, kind.loss, llvm::to_vector(gradients),
               kind.inputGradients, kind.sharedInputs};
    if (const auto *known = cache->find(joint, setting)) {
      kind.variants = *known;
      return success();
    }
  }
  AccelRunVariantMaker maker(joint, device, target, gradients, kind);
  for (auto mode :
       {CheckpointMode::None, CheckpointMode::Pointwise, CheckpointMode::Full})
    if (failed(maker.addMode(mode)))
      return failure();
  if (cache)
    cache->add(joint, std::move(setting), kind.variants);
  if (joint->hasAttr(fusedAttr))
    return success();
  for (const SavedSetPlan &way : solved)
    if (failed(maker.addSolved(way)))
      return failure();
  return success();
}

} // namespace accel
