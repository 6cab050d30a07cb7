//===- TorchExportTest.cpp - Reading .pt2 archives ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/AtenSchemas.h"
#include "frontends/TorchExport/Describe.h"
#include "frontends/TorchExport/Symbols.h"
#include "test/unit/TorchExportFixture.h"

#include <minizip/zip.h>

#include <filesystem>

using namespace accel;
using namespace accel::torchexport;

namespace {

TEST(TorchExport, ReadsWhatTorchWrote) {
  DiagnosticEngine engine;
  auto program = read(sample("static"), engine);
  ASSERT_TRUE(program) << renderText(engine);
  EXPECT_TRUE(program->hasWeights);
  auto info = describe(*program);
  ASSERT_EQ(info.parameters.size(), 2u);
  EXPECT_EQ(info.parameters[0].fqn, "fc.weight");
  EXPECT_EQ(info.parameters[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(info.parameters[0].init.value, 0.5);
  EXPECT_EQ(info.parameters[1].init.kind, plan::Initializer::Kind::Zeros);
  ASSERT_EQ(info.modules.size(), 2u);
  EXPECT_EQ(info.modules[0].className, "Tiny");
  EXPECT_EQ(info.modules[1].className, "Linear");
  EXPECT_EQ(exportedSizes(*program).microBatch, 4);
}

TEST(TorchExport, TiesBySharedStorage) {
  Sample s = sample("static");
  json &specs = s.model["graph_module"]["signature"]["input_specs"];
  json &inputs = graph(s)["inputs"];
  specs.push_back(
      {{"parameter",
        {{"arg", {{"name", "p_again"}}}, {"parameter_name", "again.weight"}}}});
  inputs.push_back({{"as_tensor", {{"name", "p_again"}}}});
  graph(s)["tensor_values"]["p_again"] =
      graph(s)["tensor_values"]["p_fc_weight"];
  s.weights["config"]["again.weight"] = s.weights["config"]["fc.weight"];
  DiagnosticEngine engine;
  auto program = read(s, engine);
  ASSERT_TRUE(program) << renderText(engine);
  auto info = describe(*program);
  ASSERT_EQ(info.parameters.size(), 2u);
  EXPECT_EQ(info.parameters[0].aliases,
            std::vector<std::string>{"again.weight"});
}

TEST(TorchExport, ErrorsSayWhere) {
  auto has = [](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(errorOf([](Sample &s) { s.model["schema_version"]["major"] = 9; }),
      "models/model.json: schema_version: schema version 9.");
  has(errorOf([](Sample &s) { graph(s)["nodes"][1].erase("target"); }),
      "models/model.json: graph_module.graph.nodes[1]: 'target' is missing");
  has(errorOf([](Sample &s) {
        graph(s)["nodes"][1]["inputs"][0]["arg"]["as_tensor"]["name"] = "gone";
      }),
      "'gone' has no entry in tensor_values");
  has(errorOf([](Sample &s) { // a cycle: the last node's result first
        graph(s)["nodes"][1]["inputs"][0]["arg"]["as_tensor"]["name"] =
            "cross_entropy_loss";
      }),
      "nodes[1].inputs[0].arg.as_tensor.name: 'cross_entropy_loss' is read "
      "before any node defines it");
  has(errorOf([](Sample &s) {
        graph(s)["nodes"][2]["outputs"][0]["as_tensor"]["name"] = "x";
      }),
      "'x' is defined twice");
  has(errorOf([](Sample &s) {
        graph(s)["tensor_values"]["x"]["sizes"][0]["as_int"] = -4;
      }),
      "tensor_values.x.sizes[0].as_int: a size of -4 is negative");
  has(errorOf([](Sample &s) { graph(s)["tensor_values"]["x"]["dtype"] = 99; }),
      "tensor_values.x.dtype: no dtype has the number 99");
  has(errorOf([](Sample &s) { graph(s)["tensor_values"]["x"]["dtype"] = 29; }),
      "tensors of torch's dtype 29 are not supported yet");
  has(errorOf([](Sample &s) { graph(s)["nodes"] = 3; }),
      "graph_module.graph.nodes: expected a list, not 3");
  has(errorOf([](Sample &s) {
        s.weights["config"]["fc.weight"]["path_name"] = "weight_7";
      }),
      "has no entry 'data/weights/weight_7'");
  has(errorOf([](Sample &s) {
        s.weights["config"]["fc.weight"]["tensor_meta"]["sizes"][0]["as_int"] =
            1000;
      }),
      "bytes, and entry 'data/weights/weight_0' has 24");
  has(errorOf([](Sample &s) { s.notes["initial"]["fc.bias"]["kind"] = "odd"; }),
      "extra/accel-opt.json: initial.fc.bias.kind: unknown initial value "
      "'odd'");
}

TEST(TorchExport, UnsupportedIsNotInvalid) {
  Sample s = sample("static");
  s.model["schema_version"]["major"] = 9;
  DiagnosticEngine engine;
  EXPECT_FALSE(read(s, engine));
  EXPECT_EQ(engine.outcome(), Outcome::NotSupported);
  DiagnosticEngine other;
  EXPECT_FALSE(read(sample("static"), other, "zip"));
  EXPECT_EQ(other.outcome(), Outcome::Invalid);
}

TEST(TorchExport, DeepJsonIsRefused) {
  DiagnosticEngine engine;
  EXPECT_FALSE(
      parseEntries({{"archive_format", "pt2"},
                    {"models/model.json", std::string(2'000'000, '[')}},
                   "m.pt2", engine));
  EXPECT_NE(engine.all().front().message.find("nest deeper"),
            std::string::npos);
}

TEST(TorchExport, ZipIsReadAndTruncatedOnesAreRefused) {
  const std::string zip = readFile("zip.pt2");
  DiagnosticEngine engine;
  EXPECT_TRUE(parseProgram(zip, "m.pt2", engine)) << renderText(engine);
  size_t refused = 0;
  for (size_t size = 0; size < zip.size(); size += 97) {
    DiagnosticEngine cut;
    refused +=
        !parseProgram(std::string_view(zip).substr(0, size), "m.pt2", cut) &&
        cut.hasErrors();
  }
  EXPECT_EQ(refused, (zip.size() + 96) / 97);
}

TEST(TorchExport, ZipBombIsNotUnpacked) {
  auto path = std::filesystem::temp_directory_path() / "accel-opt-bomb.pt2";
  std::filesystem::remove(path);
  zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  ASSERT_TRUE(zip);
  const std::string zeros(64 << 20, ' '), format = "pt2";
  for (auto [name, text] : {std::pair("m/archive_format", &format),
                            {"m/models/model.json", &zeros}}) {
    ASSERT_EQ(zipOpenNewFileInZip64(zip, name, nullptr, nullptr, 0, nullptr, 0,
                                    nullptr, Z_DEFLATED, 6, 0),
              ZIP_OK);
    ASSERT_EQ(zipWriteInFileInZip(zip, text->data(), unsigned(text->size())),
              ZIP_OK);
    ASSERT_EQ(zipCloseFileInZip(zip), ZIP_OK);
  }
  ASSERT_EQ(zipClose(zip, nullptr), ZIP_OK);
  DiagnosticEngine engine;
  EXPECT_FALSE(readProgram(path.string(), engine));
  EXPECT_NE(engine.all().front().message.find("as no file of torch does"),
            std::string::npos)
      << renderText(engine);
  std::filesystem::remove(path);
}

TEST(TorchExport, SymbolicSizes) {
  std::map<std::string, int64_t> values = {{"s0", 6}, {"s1", 5}};
  auto value = [&](const char *text) {
    return evaluateExpression(text, values);
  };
  EXPECT_EQ(value("Symbol('s0', positive=True, integer=True)"), 6);
  EXPECT_EQ(value("Mul(Integer(2), Symbol('s0', integer=True), s1)"), 60);
  EXPECT_EQ(value("Add(s0, Mul(Integer(-1), s1))"), 1);
  EXPECT_EQ(value("2*s0 + s1**2 - 1"), 36);
  EXPECT_EQ(value("FloorDiv(s0, 4)"), 1);
  EXPECT_EQ(value("Max(1, s0 // 4, Mod(s1, 3))"), 2);
  EXPECT_EQ(value("Pow(s1, Integer(2))"), 25);
  EXPECT_EQ(value("s0 / 4"), std::nullopt); // no integer
  EXPECT_EQ(value("s0 // 0"), std::nullopt);
  EXPECT_EQ(value("s7"), std::nullopt);
  EXPECT_EQ(value("9223372036854775807 + 1"), std::nullopt);
  EXPECT_EQ(value(std::string(5000, '(').c_str()), std::nullopt);
}

TEST(TorchExport, OpenSizesTakeTheJobs) {
  DiagnosticEngine engine;
  auto program = read(sample("open"), engine);
  ASSERT_TRUE(program) << renderText(engine);
  EXPECT_TRUE(exportedSizes(*program).openBatch);
  Sizes sizes;
  sizes.microBatch = 7;
  auto symbols = Symbols::bind(*program, sizes, engine);
  ASSERT_TRUE(symbols);
  EXPECT_EQ(symbols->valuesOf(program->graph.tensors.at("x").sizes),
            (std::vector<int64_t>{7, 3}));
  DiagnosticEngine fixed;
  auto closed = read(sample("static"), fixed);
  EXPECT_FALSE(Symbols::bind(*closed, sizes, fixed));
  EXPECT_NE(fixed.all().front().message.find("was exported as 4"),
            std::string::npos);
}

TEST(TorchExport, SignaturesHaveDefaults) {
  const AtenSchema *schema = findSchema("aten::sum.dim_IntList");
  ASSERT_TRUE(schema);
  ASSERT_EQ(schema->parameters.size(), 4u);
  EXPECT_EQ(schema->parameters[2].name, "keepdim");
  EXPECT_EQ(schema->parameters[2].defaultValue.kind, Argument::Kind::Bool);
  EXPECT_TRUE(findSchema("aten::relu_.default")->parameters[0].mutated);
  EXPECT_FALSE(findSchema("aten::no_such"));
}

} // namespace
