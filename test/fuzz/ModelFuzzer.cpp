//===- ModelFuzzer.cpp - Any text as a model's or adapter's config --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads the input as config.json and as adapter_config.json. Beside crashes, it
// looks for refusals without a reason or outside of the file, for models whose
// parameters cannot be counted, and for adapters that are not read back as they
// were written.
//
//===----------------------------------------------------------------------===//

#include "frontends/HuggingFace/ModelConfig.h"
#include "frontends/HuggingFace/ModelInfo.h"
#include "frontends/Job/AdapterConfig.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

using namespace accel;

static void require(bool holds, const char *what, const std::string &text) {
  if (holds)
    return;
  std::fprintf(stderr, "%s: %s\n", what, text.c_str());
  std::abort();
}

static void checkFindings(const DiagnosticEngine &engine, bool accepted,
                          const std::string &text) {
  int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n') +
                               std::count(text.begin(), text.end(), '\r')) +
              1;
  require(accepted != engine.hasErrors(),
          "accepted with errors, or refused "
          "without",
          accepted ? "accepted" : "refused");
  for (const Diagnostic &d : engine.all()) {
    require(!d.code.empty() && !d.message.empty(), "says nothing", d.code);
    require(d.line >= 0 && d.line <= lines, "stands outside", d.message);
  }
}

/// Layers whose parameters are yet to be listed.
static int64_t layersOf(const huggingface::ModelConfig &config) {
  return std::visit(
      [](const auto &c) -> int64_t {
        if constexpr (requires { c.decoderLayers; })
          return c.layers + c.decoderLayers;
        else if constexpr (requires { c.encoder.layers; })
          return c.encoder.layers + c.decoder.layers;
        else if constexpr (requires { c.layers; })
          return c.layers;
        else
          return 0;
      },
      config.family);
}

static void readModel(const std::string &text) {
  DiagnosticEngine engine;
  auto config = huggingface::parseModelConfig(text, "config.json", engine);
  checkFindings(engine, config.has_value(), text);
  if (!config)
    return;
  require(!config->hasTokens() || config->vocabSize() > 0, "no vocabulary", "");
  require(config->defaultLength() <= 4096, "too long by default", "");
  // Thousands of layers take the time of the run, and find nothing more.
  if (layersOf(*config) > 40)
    return;
  huggingface::ModelInfo info = huggingface::describeModel(*config);
  std::set<std::string> names;
  for (const huggingface::ParameterInfo &parameter : info.parameters) {
    require(names.insert(parameter.fqn).second, "twice", parameter.fqn);
    require(parameter.numel() > 0, "no elements", parameter.fqn);
  }
  require(info.numel() > 0, "no parameters", "");
}

/// Matching is exponential in the number of repetitions of an expression.
static bool isCheap(const std::string &text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
           return c == '*' || c == '+' || c == '{' || c == '?';
         }) <= 3;
}

static void readAdapter(const std::string &text) {
  DiagnosticEngine engine;
  auto config = parseAdapterConfig(text, "adapter_config.json", engine);
  checkFindings(engine, config.has_value(), text);
  if (!config)
    return;
  std::string written = adapterConfigText(*config, config->baseModel);
  DiagnosticEngine again;
  auto copy = parseAdapterConfig(written, "again.json", again);
  require(copy.has_value(), "is not read back",
          again.all().empty() ? "" : again.all()[0].message);
  require(adapterConfigText(*copy, copy->baseModel) == written, "changes",
          written);
  if (!isCheap(text))
    return;
  for (const char *name : {"lm_head", "model.layers.11.self_attn.q_proj"}) {
    bool targeted = config->targets(name, true, false);
    require(targeted == copy->targets(name, true, false), "matches otherwise",
            name);
    require(config->rankOf(name) >= 1, "no rank", name);
    config->saves(name);
    config->scaleOf(name);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  readModel(text);
  readAdapter(text);
  return 0;
}
