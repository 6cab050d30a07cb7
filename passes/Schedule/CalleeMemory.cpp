//===- CalleeMemory.cpp - What calls of functions take --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/CalleeMemory.h"

#include "dialects/Sharding/Sharding.h"
#include "passes/Export/ExportFunction.h"

using namespace mlir;

namespace accel::schedule {

MeasuredCallee::MeasuredCallee(plan::Function function)
    : function(std::move(function)), deaths(plan::inputDeaths(this->function)) {
  dropped.assign(this->function.inputs.size(), false);
  for (const plan::Instruction &instruction : this->function.instructions)
    for (int slot : instruction.frees)
      for (auto [i, input] : llvm::enumerate(this->function.inputs))
        if (slot == input)
          dropped[i] = true;
}

const plan::FunctionProfile &
MeasuredCallee::profile(ArrayRef<int64_t> consumed) {
  auto [entry, added] = profiles.try_emplace(consumed.vec());
  if (added)
    entry->second = plan::profileFunction(function, entry->first);
  return entry->second;
}

CalleeMemory::CalleeMemory(Operation *module) : symbols(module) {
  auto job = sharding::findOnly<sharding::JobOp>(cast<ModuleOp>(module));
  device =
      job && job.getDevice() != "cpu" ? aten::Device::Cuda : aten::Device::Cpu;
}

MeasuredCallee *CalleeMemory::get(CallOp call) {
  auto [entry, added] = known.try_emplace(call.getCallee());
  std::unique_ptr<MeasuredCallee> &callee = entry->second;
  if (!added && callee)
    return callee.get();
  auto function = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!function) {
    call.emitOpError("calls '")
        << call.getCallee() << "', which is no function of the module";
    return nullptr;
  }
  FailureOr<plan::Function> exported = exportFunction(function, device);
  if (failed(exported))
    return nullptr;
  if (exported->inputs.size() != call.getInputs().size()) {
    InFlightDiagnostic diagnostic =
        call.emitOpError("passes ")
        << call.getInputs().size() << " activations to '" << call.getCallee()
        << "', which takes " << exported->inputs.size();
    diagnostic.attachNote(function.getLoc()) << "the function is here";
    return nullptr;
  }
  callee = std::make_unique<MeasuredCallee>(std::move(*exported));
  return callee.get();
}

} // namespace accel::schedule
