//===- TorchExportFixture.h - Programs to change ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The fuzzer's seeds are programs that torch wrote, or were made of one: the
// tests of the reader change them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_TORCHEXPORTFIXTURE_H
#define ACCEL_TEST_UNIT_TORCHEXPORTFIXTURE_H

#include "frontends/TorchExport/Program.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <functional>

namespace accel::torchexport {

using nlohmann::json;

/// The entries of a program that torch wrote: a linear layer and its loss.
struct Sample {
  json model, weights, constants, notes;
};

inline std::string readFile(const std::string &name) {
  std::ifstream in(std::string(ACCEL_PT2_CORPUS) + "/" + name,
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Sample sample(const std::string &name) {
  std::string text = readFile(name);
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c)
      parts.back() += c;
    else
      parts.emplace_back();
  return {json::parse(parts.at(0)), json::parse(parts.at(1)),
          json::parse(parts.at(2)), json::parse(parts.at(3))};
}

inline std::optional<Program> read(const Sample &s, DiagnosticEngine &engine,
                                   const std::string &format = "pt2") {
  return parseEntries(
      {{"archive_format", format},
       {"models/model.json", s.model.dump()},
       {"data/weights/model_weights_config.json", s.weights.dump()},
       {"data/weights/weight_0", std::string(24, '\0')},
       {"data/weights/weight_1", std::string(8, '\0')},
       {"data/weights/weight_2", std::string(4, '\0')},
       {"data/constants/tensor_0", std::string(16, '\0')},
       {"data/constants/model_constants_config.json", s.constants.dump()},
       {"extra/accel-opt.json", s.notes.dump()}},
      "m.pt2", engine);
}

/// The only error of the sample after a change.
inline std::string errorOf(const std::function<void(Sample &)> &change,
                           const char *from = "static") {
  Sample s = sample(from);
  change(s);
  DiagnosticEngine engine;
  EXPECT_FALSE(read(s, engine));
  EXPECT_EQ(engine.all().size(), 1u);
  return engine.all().empty() ? "" : engine.all().front().message;
}

inline json &graph(Sample &s) { return s.model["graph_module"]["graph"]; }

} // namespace accel::torchexport

#endif // ACCEL_TEST_UNIT_TORCHEXPORTFIXTURE_H
