//===- HuggingFaceDump.cpp - Prints what config.json makes ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// hf-dump CONFIG: the modules and parameters of a model, one a line, for
// test/parity/hf_names.py to compare with transformers. With --weights the
// safetensors of the folder are checked too. The exit code is the outcome of
// the diagnostics, which go to stderr.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/ModelConfig.h"
#include "frontends/HuggingFace/Safetensors.h"

#include <cstdio>
#include <cstring>

using namespace accel;
using namespace accel::huggingface;

static const char *initName(const plan::Initializer &init) {
  using Kind = plan::Initializer::Kind;
  switch (init.kind) {
  case Kind::Normal:
    return "normal";
  case Kind::Ones:
    return "ones";
  case Kind::Zeros:
    return "zeros";
  case Kind::TruncatedNormal:
    return "truncated_normal";
  case Kind::Uniform:
    return "uniform";
  case Kind::Constant:
    return "constant";
  case Kind::Sinusoids:
    return "sinusoids";
  }
  return "";
}

int main(int argc, char **argv) {
  bool weights = argc == 3 && std::strcmp(argv[2], "--weights") == 0;
  if (argc != 2 && !weights) {
    std::fprintf(stderr, "usage: hf-dump CONFIG [--weights]\n");
    return 64;
  }
  DiagnosticEngine diagnostics;
  auto config = readModelConfig(argv[1], diagnostics);
  if (config) {
    ModelInfo model = describeModel(*config);
    for (const ModuleInfo &module : model.modules)
      std::printf("module\t%s\t%s\n", module.fqn.c_str(),
                  module.className.c_str());
    for (const ParameterInfo &parameter : model.parameters) {
      std::printf("param\t%s\t", parameter.fqn.c_str());
      for (size_t i = 0; i < parameter.shape.size(); ++i)
        std::printf("%s%lld", i ? "," : "", (long long)parameter.shape[i]);
      const plan::Initializer &init = parameter.init;
      std::printf("\t%s\t%.17g %.17g %.17g %lld %d\t", initName(init),
                  init.value, init.low, init.high, (long long)init.zeroRow,
                  parameter.frozen ? 1 : 0);
      for (const std::string &alias : parameter.aliases)
        std::printf("%s ", alias.c_str());
      std::printf("\n");
    }
    if (weights)
      if (auto found = readWeights(argv[1], diagnostics))
        checkWeights(*found, model, argv[1], diagnostics);
  }
  std::fputs(renderText(diagnostics).c_str(), stderr);
  return int(diagnostics.outcome());
}
