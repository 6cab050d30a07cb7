//===- Target.cpp - The machines that plans are made for ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Targets/Target.h"

#include "frontends/Yaml/Yaml.h"
#include "passes/Targets/LinearOperands.h"
#include "passes/Targets/ReadTarget.h"
#include "passes/Targets/ShippedTargets.h"

#include <algorithm>
#include <cmath>

namespace accel {

const char *toString(TargetKind kind) {
  return kind == TargetKind::Cuda ? "cuda" : "cpu";
}

const ComputeRate &Target::rate(plan::DType dtype) const {
  static const ComputeRate none;
  auto found = compute.find(dtype);
  if (found == compute.end())
    found = compute.find(plan::DType::F32);
  return found == compute.end() ? none : found->second;
}

double Target::flops(plan::DType dtype) const {
  const ComputeRate &r = rate(dtype);
  return r.peakFlops * r.matmulEfficiency;
}

double Target::attentionFlops(plan::DType dtype) const {
  const ComputeRate &r = rate(dtype);
  return r.peakFlops * r.attentionEfficiency;
}

double Target::peakFlops(plan::DType dtype) const {
  return rate(dtype).peakFlops;
}

int64_t Target::reservedBytes(int64_t peakBytes) const {
  const double idle =
      std::ceil(static_cast<double>(peakBytes) * allocatorOverhead);
  const int64_t bytes = peakBytes + static_cast<int64_t>(idle);
  return (bytes + allocatorGranularity - 1) / allocatorGranularity *
         allocatorGranularity;
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const ShippedTarget &shipped : shippedTargets)
    names.push_back(shipped.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> shippedTarget(const std::string &name) {
  for (const ShippedTarget &shipped : shippedTargets)
    if (name == shipped.name)
      return shipped.text;
  return std::nullopt;
}

std::optional<Target> parseTarget(const std::string &file,
                                  const std::string &text,
                                  DiagnosticEngine &engine) {
  engine.addSource(file, text);
  std::unique_ptr<yaml::Document> document =
      yaml::parseText(file, text, engine);
  if (!document)
    return std::nullopt;
  return readTarget(*document, engine);
}

/// The kinds of a device whose name was given alone ("h100"), else the name
/// that is spelled most like it.
static std::string meantTarget(const std::string &name) {
  std::string kinds;
  for (const std::string &known : targetNames())
    if (!name.empty() && known.starts_with(name + "-"))
      kinds += (kinds.empty() ? "'" : ", '") + known + "'";
  if (kinds.empty())
    return didYouMean(name, targetNames());
  if (const size_t last = kinds.rfind(", "); last != std::string::npos)
    kinds.replace(last, 2, " or ");
  return "did you mean " + kinds + "?";
}

std::optional<Target> loadTarget(const std::string &nameOrFile,
                                 DiagnosticEngine &engine) {
  if (std::optional<std::string> text = shippedTarget(nameOrFile))
    return parseTarget(nameOrFile + ".yaml", *text, engine);
  if (nameOrFile.find('/') != std::string::npos ||
      nameOrFile.ends_with(".yaml") || nameOrFile.ends_with(".yml")) {
    std::unique_ptr<yaml::Document> document =
        yaml::parseFile(nameOrFile, engine);
    if (!document)
      return std::nullopt;
    return readTarget(*document, engine);
  }
  std::string names;
  for (const std::string &name : targetNames())
    names += (names.empty() ? "" : ", ") + name;
  engine.error("unknown-target", "",
               "unknown target '" + printable(nameOrFile) + "'; there are " +
                   names + ", and any YAML file by its path",
               meantTarget(nameOrFile));
  return std::nullopt;
}

const ComputeRate *rateOfOperands(const Target &target,
                                  LinearOperands operands) {
  const std::optional<ComputeRate> &rate =
      operands == LinearOperands::Nvfp4 ? target.fp4 : target.fp8;
  return operands == LinearOperands::Computed || !rate ? nullptr : &*rate;
}

} // namespace accel
