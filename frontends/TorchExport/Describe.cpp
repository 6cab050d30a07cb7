//===- Describe.cpp - Modules and parameters of a program -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Describe.h"

#include "frontends/TorchExport/Symbols.h"

#include <algorithm>
#include <set>

namespace accel::torchexport {

namespace {

std::vector<int64_t> numbers(const std::vector<Size> &sizes) {
  std::vector<int64_t> result;
  for (const Size &size : sizes)
    result.push_back(size.value);
  return result;
}

/// What two names of one tensor have in common in the archive; empty where the
/// archive cannot tell.
std::string storageKey(const Program &program, const std::string &fqn) {
  auto found = program.payloads.find(fqn);
  if (found == program.payloads.end() || found->second.pickled ||
      found->second.meta.meta)
    return "";
  std::string key = found->second.entry;
  for (int64_t size : numbers(found->second.meta.sizes))
    key += "," + std::to_string(size);
  for (int64_t stride : numbers(found->second.meta.strides))
    key += ":" + std::to_string(stride);
  return key;
}

plan::Initializer defaultInitializer(const std::string &fqn, size_t rank) {
  const std::string last = fqn.substr(fqn.rfind('.') + 1);
  if (rank >= 2)
    return huggingface::normalInit(0.02);
  return last.find("bias") != std::string::npos ? huggingface::zerosInit()
                                                : huggingface::onesInit();
}

bool isNumber(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

} // namespace

std::unordered_map<std::string, std::string>
canonicalNames(const Program &program) {
  std::unordered_map<std::string, std::string> result, byStorage;
  std::unordered_map<std::string, size_t> group;
  for (size_t i = 0; i < program.notes.ties.size(); ++i)
    for (const std::string &fqn : program.notes.ties[i])
      group[fqn] = i;
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::Kind::Parameter)
      continue;
    std::string key = storageKey(program, input.fqn);
    if (auto tie = group.find(input.fqn); tie != group.end())
      key = "tie " + std::to_string(tie->second);
    if (key.empty())
      result.emplace(input.fqn, input.fqn);
    else
      result.emplace(input.fqn,
                     byStorage.emplace(key, input.fqn).first->second);
  }
  return result;
}

plan::DType parameterDtype(const Program &program) {
  std::map<plan::DType, size_t> count;
  for (const InputSpec &input : program.inputs)
    if (input.kind == InputSpec::Kind::Parameter)
      ++count[program.graph.tensors.at(input.argument).dtype];
  plan::DType best = plan::DType::F32;
  size_t most = 0;
  for (auto [dtype, n] : count)
    if (n > most) {
      best = dtype;
      most = n;
    }
  return best;
}

ExportedSizes exportedSizes(const Program &program) {
  ExportedSizes result;
  bool first = true;
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::Kind::User || input.argument.empty())
      continue;
    const TensorMeta &meta = program.graph.tensors.at(input.argument);
    if (meta.sizes.empty())
      continue;
    if (first) {
      result.openBatch = meta.sizes[0].symbolic();
      result.microBatch = result.openBatch ? 0 : meta.sizes[0].value;
      first = false;
    }
    if (meta.sizes.size() == 2 && meta.dtype == plan::DType::I64 &&
        !result.sequenceLength && !result.openSequence) {
      result.openSequence = meta.sizes[1].symbolic();
      result.sequenceLength = result.openSequence ? 0 : meta.sizes[1].value;
      auto bound = program.bounds.find(symbolOf(meta.sizes[1]));
      if (bound != program.bounds.end() && bound->second.most > 0)
        result.mostTokens = bound->second.most;
    }
  }
  return result;
}

/// What the data must have, unless it is what every text has.
static std::vector<huggingface::ModelInput> inputsOf(const Program &program) {
  std::vector<huggingface::ModelInput> inputs;
  bool text = true;
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::Kind::User || input.argument.empty())
      continue;
    text &= input.argument == "input_ids" || input.argument == "labels";
    inputs.push_back({input.argument});
  }
  if (text)
    inputs.clear();
  return inputs;
}

huggingface::ModelInfo describe(const Program &program) {
  huggingface::ModelInfo info;
  info.inputs = inputsOf(program);
  std::map<std::string, std::string> classes = program.notes.classes;
  for (const auto &stack : program.stacks)
    for (const ModuleCall &call : stack)
      classes.emplace(call.fqn, call.className);
  // A module that is never called has no class in the file; one whose children
  // are numbered is a list.
  std::set<std::string> lists;
  for (const std::string &fqn : program.modules)
    if (size_t dot = fqn.rfind('.'); dot != fqn.npos)
      if (isNumber(fqn.substr(dot + 1)))
        lists.insert(fqn.substr(0, dot));
  std::set<std::string> seen;
  for (const std::string &fqn : program.modules) {
    // "layer@1" is the second call of "layer".
    if (fqn.find('@') != fqn.npos || !seen.insert(fqn).second)
      continue;
    auto found = classes.find(fqn);
    info.module(fqn, found != classes.end() ? found->second
                     : lists.count(fqn)     ? "ModuleList"
                                            : "Module");
  }
  auto canonical = canonicalNames(program);
  std::unordered_map<std::string, size_t> index;
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::Kind::Parameter)
      continue;
    const std::string &name = canonical.at(input.fqn);
    if (auto found = index.find(name); found != index.end()) {
      info.parameters[found->second].aliases.push_back(input.fqn);
      continue;
    }
    index[name] = info.parameters.size();
    const TensorMeta &meta = program.graph.tensors.at(input.argument);
    auto initial = program.notes.initial.find(input.fqn);
    auto stored = program.notes.stored.find(input.fqn);
    info.parameter(input.fqn, numbers(meta.sizes),
                   initial != program.notes.initial.end()
                       ? initial->second
                       : defaultInitializer(input.fqn, meta.sizes.size()),
                   stored != program.notes.stored.end()
                       ? stored->second
                       : std::vector<std::string>());
    info.parameters.back().frozen = !meta.requiresGrad;
  }
  info.anatomy = {program.notes.base, program.notes.inputEmbedding,
                  program.notes.outputEmbedding, program.notes.noSplit};
  return info;
}

} // namespace accel::torchexport
