//===- TorchExportBadInputTest.cpp - What the reader of .pt2 refuses ------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The unions of torch's schema, member by member, the exporter's notes, open
// sizes and damaged archives: each refusal names its place in the file.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Describe.h"
#include "frontends/TorchExport/Symbols.h"
#include "test/unit/TorchExportFixture.h"

using namespace accel;
using namespace accel::torchexport;

namespace {

void has(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

json &signatureOf(Sample &s) { return s.model["graph_module"]["signature"]; }

//===----------------------------------------------------------------------===//
// torch/_export/serde/schema.py
//===----------------------------------------------------------------------===//

TEST(TorchExportSchema, EveryKindOfArgumentIsRead) {
  DiagnosticEngine engine;
  auto program = read(sample("arguments"), engine);
  ASSERT_TRUE(program) << renderText(engine);
  const Node &node = program->graph.nodes.back();
  // Members of the union Argument in schema version 8.20.
  EXPECT_EQ(node.inputs.size(), 31u);
  std::map<std::string, Argument::Kind> kinds;
  for (const NamedArgument &input : node.inputs)
    kinds[input.name] = input.value.kind;
  EXPECT_EQ(kinds.size(), 31u);
  using Kind = Argument::Kind;
  EXPECT_EQ(kinds["as_optional_tensors"], Kind::List);
  EXPECT_EQ(kinds["as_sym_int"], Kind::Int); // a value, not a name
  EXPECT_EQ(kinds["as_device"], Kind::Device);
  EXPECT_EQ(kinds["as_graph"], Kind::Graph);
  // What no operator of the dialect takes is kept by name, to refuse the
  // operator that has it.
  for (const char *member :
       {"as_custom_obj", "as_operator", "as_complex", "as_nested_tensors",
        "as_int_lists", "as_float_lists", "as_strings", "as_string_to_argument",
        "as_sym_bools", "as_sym_floats"})
    EXPECT_EQ(kinds[member], Kind::Other) << member;
}

TEST(TorchExportSchema, UnknownKindsOfArgumentsAreErrors) {
  auto argument = [](const json &value) {
    return errorOf(
        [&](Sample &s) { graph(s)["nodes"][1]["inputs"][0]["arg"] = value; });
  };
  const std::string place = "graph_module.graph.nodes[1].inputs[0].arg: ";
  has(argument({{"as_future", 1}}),
      place + "unknown kind of argument 'as_future'");
  has(argument({{"as_int", 1}, {"as_bool", true}}),
      place + "expected one member, not 2");
  has(argument(json::object()), place + "expected one member, not 0");
  has(argument(7), place + "expected an object, not 7");
  has(argument({{"as_int", 1.5}}), "expected an integer, not");
  has(argument({{"as_int", UINT64_MAX}}), "is too large");
  has(argument({{"as_float", "big"}}), "expected a number, not \"big\"");
  has(argument({{"as_bool", 1}}), "expected true or false, not 1");
  has(argument({{"as_tensors", {{{"name", "gone"}}}}}),
      "as_tensors[0].name: 'gone' has no entry in tensor_values");
  has(argument({{"as_sym_int", {{"as_name", "s9"}}}}),
      "'s9' has no entry in sym_int_values");
  has(argument({{"as_scalar_type", 44}}), "no dtype has the number 44");
  has(argument({{"as_optional_tensor", {{"as_int", 1}}}}),
      "expected as_tensor or as_none");
}

TEST(TorchExportSchema, KindsOfInputsAndOutputs) {
  DiagnosticEngine engine;
  auto program = read(sample("signature"), engine);
  ASSERT_TRUE(program) << renderText(engine);
  std::map<InputSpec::Kind, int> inputs;
  for (const InputSpec &input : program->inputs)
    ++inputs[input.kind];
  EXPECT_EQ(inputs[InputSpec::Kind::Parameter], 2);
  EXPECT_EQ(inputs[InputSpec::Kind::Buffer], 1);
  EXPECT_EQ(inputs[InputSpec::Kind::User], 2);
  EXPECT_EQ(inputs[InputSpec::Kind::Constant], 1);
  EXPECT_EQ(inputs[InputSpec::Kind::Value], 2);
  ASSERT_EQ(program->outputs.size(), 3u);
  EXPECT_EQ(program->outputs[0].kind, OutputSpec::Kind::BufferMutation);
  EXPECT_EQ(program->outputs[0].fqn, "scale");
  EXPECT_EQ(program->outputs[1].kind, OutputSpec::Kind::Loss);
}

/// The outcome of a sample whose input or output is of another kind.
Outcome kindOf(const char *list, const char *kind, std::string &message) {
  Sample s = sample("static");
  json &specs = signatureOf(s)[list];
  specs.back() = {{kind, {{"arg", {{"name", "x"}}}}}};
  DiagnosticEngine engine;
  EXPECT_FALSE(read(s, engine));
  message = engine.all().empty() ? "" : engine.all().front().message;
  return engine.outcome();
}

TEST(TorchExportSchema, OtherKindsOfInputsAndOutputsAreRefused) {
  std::string message;
  for (const char *kind : {"custom_obj", "token"}) {
    EXPECT_EQ(kindOf("input_specs", kind, message), Outcome::NotSupported);
    has(message, std::string("signature.input_specs[4]: inputs of the kind '") +
                     kind + "' are not supported yet");
  }
  EXPECT_EQ(kindOf("input_specs", "odd", message), Outcome::Invalid);
  has(message, "signature.input_specs[4]: unknown kind of input 'odd'");
  for (const char *kind :
       {"user_input_mutation", "token", "parameter_mutation"}) {
    EXPECT_EQ(kindOf("output_specs", kind, message), Outcome::NotSupported);
    has(message, std::string("output_specs[0]: outputs of the kind '") + kind +
                     "' are not supported yet");
  }
  for (const char *kind : {"gradient_to_parameter", "gradient_to_user_input"}) {
    EXPECT_EQ(kindOf("output_specs", kind, message), Outcome::NotSupported);
    has(message, "output_specs[0]: this program holds its own backward");
  }
  EXPECT_EQ(kindOf("output_specs", "odd", message), Outcome::Invalid);
  has(message, "output_specs[0]: unknown kind of output 'odd'");
}

TEST(TorchExportSchema, ContradictionsAreErrors) {
  has(errorOf([](Sample &s) { signatureOf(s)["input_specs"].erase(4); }),
      "signature.input_specs: describes 4 of 5 inputs of the graph");
  has(errorOf([](Sample &s) {
        std::swap(signatureOf(s)["input_specs"][0],
                  signatureOf(s)["input_specs"][1]);
      }),
      "input_specs[0]: describes 'p_fc_bias', and input 0 of the graph is "
      "another");
  has(errorOf([](Sample &s) {
        signatureOf(s)["input_specs"][1]["parameter"]["parameter_name"] =
            "fc.weight";
      }),
      "input_specs[1]: names 'fc.weight' twice");
  has(errorOf(
          [](Sample &s) { signatureOf(s)["output_specs"] = json::array(); }),
      "output_specs: describes 0 of 1 outputs of the graph");
  has(errorOf([](Sample &s) {
        graph(s)["outputs"][0]["as_tensor"]["name"] = "gone";
      }),
      "graph.outputs[0].as_tensor.name: 'gone' has no entry in tensor_values");
  has(errorOf([](Sample &s) { s.model.erase("graph_module"); }),
      "models/model.json: 'graph_module' is missing");
  has(errorOf([](Sample &s) { s.model = json::array(); }),
      "models/model.json: expected an object, not a list");
  has(errorOf([](Sample &s) { s.model["schema_version"]["major"] = "8"; }),
      "schema_version.major: expected an integer, not \"8\"");
  has(errorOf([](Sample &s) {
        json *inner = &graph(s);
        for (int i = 0; i < 20; ++i) { // graphs inside one another
          json node = (*inner)["nodes"][0];
          json &body = node["inputs"][1]["arg"]["as_graph"]["graph"];
          body["nodes"] = json::array({node});
          (*inner)["nodes"] = json::array({node});
          inner =
              &(*inner)["nodes"][0]["inputs"][1]["arg"]["as_graph"]["graph"];
        }
      }),
      "nest deeper");
}

TEST(TorchExportSchema, ImpossibleTensorsAreErrors) {
  auto tensor = [](const char *key, const json &value) {
    return errorOf(
        [&](Sample &s) { graph(s)["tensor_values"]["x"][key] = value; });
  };
  const std::string place = "graph_module.graph.tensor_values.x.";
  auto sizes = [](std::initializer_list<int64_t> list) {
    json result = json::array();
    for (int64_t size : list)
      result.push_back({{"as_int", size}});
    return result;
  };
  has(tensor("strides", sizes({3, -1})),
      place + "strides[1].as_int: a stride of -1 is negative");
  has(tensor("strides", sizes({3})),
      place + "strides: has 1 strides for 2 dimensions");
  has(tensor("storage_offset", {{"as_int", -1}}),
      place + "storage_offset.as_int: a storage offset of -1 is negative");
  has(tensor("sizes", sizes({1 << 30, 1 << 30})),
      place + "sizes: a tensor of more than 1e15 elements");
  has(tensor("sizes", {{{"as_float", 1.0}}}), "sizes[0]: 'as_expr' is missing");
  has(tensor("sizes", {{{"as_expr", {{"expr_str", ""}}}}}),
      "sizes[0].as_expr.expr_str: is empty");
  has(tensor("layout", 1), place + "layout: only strided tensors");
  has(tensor("dtype", "float"), place + "dtype: expected an integer");
  for (int future : {14, 27, 36, 200, -1})
    has(tensor("dtype", future),
        place + "dtype: no dtype has the number " + std::to_string(future));
  for (int known : {2, 10, 28, 35})
    has(tensor("dtype", known), place + "dtype: tensors of torch's dtype " +
                                    std::to_string(known) +
                                    " are not supported yet");
}

TEST(TorchExportSchema, StoredTensorsMustFit) {
  auto weight = [](const char *key, const json &value) {
    return errorOf([&](Sample &s) {
      s.weights["config"]["fc.weight"]["tensor_meta"][key] = value;
    });
  };
  has(weight("storage_offset", {{"as_int", 1}}),
      "data/weights/model_weights_config.json: config.fc.weight: needs 28 "
      "bytes, and entry 'data/weights/weight_0' has 24");
  has(weight("strides", {{{"as_int", INT64_MAX}}, {{"as_int", 1}}}),
      "config.fc.weight: needs 9223372036854775807 bytes");
  has(weight("sizes", {{{"as_int", 1}}, {{"as_int", 3}}}),
      "'fc.weight' is stored with another shape than the graph reads it");
  has(weight("dtype", 6),
      "'fc.weight' is stored with another dtype than the graph reads it");
  has(errorOf([](Sample &s) { s.weights = 3; }),
      "data/weights/model_weights_config.json: expected an object");
  has(errorOf([](Sample &s) {
        s.weights["config"]["fc.weight"].erase("tensor_meta");
      }),
      "config.fc.weight: 'tensor_meta' is missing");
}

//===----------------------------------------------------------------------===//
// Notes of the exporter
//===----------------------------------------------------------------------===//

TEST(TorchExportNotes, InitialAndStored) {
  DiagnosticEngine engine;
  auto program = read(sample("notes"), engine);
  ASSERT_TRUE(program) << renderText(engine);
  huggingface::ModelInfo info = describe(*program);
  std::map<std::string, huggingface::ParameterInfo> parameters;
  for (const auto &parameter : info.parameters)
    parameters[parameter.fqn] = parameter;
  using Kind = plan::Initializer::Kind;
  auto init = [&](const char *fqn) { return parameters.at(fqn).init; };
  EXPECT_EQ(init("fc.weight").kind, Kind::Normal);
  EXPECT_EQ(init("fc.weight").value, 0.5);
  EXPECT_EQ(init("fc.bias").kind, Kind::Zeros);
  EXPECT_EQ(init("experts.down").kind, Kind::Ones);
  EXPECT_EQ(init("con").kind, Kind::Constant);
  EXPECT_EQ(init("con").value, 2.65);
  EXPECT_EQ(init("pos").kind, Kind::Sinusoids);
  EXPECT_EQ(init("table").zeroRow, 0);
  EXPECT_EQ(init("tn").kind, Kind::TruncatedNormal);
  EXPECT_EQ(init("tn").high, 2.0);
  EXPECT_EQ(init("uni").kind, Kind::Uniform);
  EXPECT_EQ(init("uni").low, -0.5);
  EXPECT_EQ(parameters.at("experts.down").stored,
            std::vector<std::string>{"experts.*.w2.weight"});
  EXPECT_EQ(parameters.at("tn").stored, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parameters.at("con").stored.empty());
  EXPECT_EQ(info.anatomy.noSplit, std::vector<std::string>{"Tiny"});
  EXPECT_EQ(program->notes.vocabulary, 7);
}

TEST(TorchExportNotes, WithoutANoteTheKindFollowsTheShape) {
  Sample s = sample("notes");
  s.notes.erase("initial");
  s.notes.erase("stored");
  DiagnosticEngine engine;
  auto program = read(s, engine);
  ASSERT_TRUE(program) << renderText(engine);
  for (const auto &parameter : describe(*program).parameters) {
    using Kind = plan::Initializer::Kind;
    EXPECT_EQ(parameter.init.kind, parameter.fqn == "fc.bias"    ? Kind::Zeros
                                   : parameter.shape.size() == 1 ? Kind::Ones
                                                                 : Kind::Normal)
        << parameter.fqn;
    EXPECT_TRUE(parameter.stored.empty());
  }
}

TEST(TorchExportNotes, WrongNotesSayWhere) {
  auto note = [](const char *fqn, const json &value) {
    return errorOf([&](Sample &s) { s.notes["initial"][fqn] = value; },
                   "notes");
  };
  const std::string place = "extra/accel-opt.json: initial.";
  has(note("con", 3), place + "con: expected an object, not 3");
  has(note("con", {{"kind", "odd"}}),
      place + "con.kind: unknown initial value 'odd', expected normal");
  has(note("con", {{"kind", "constant"}}), place + "con: 'value' is missing");
  has(note("con", {{"kind", "constant"}, {"value", "NaN"}}),
      place + "con.value: expected a number");
  has(note("con", {{"kind", "normal"}, {"stddev", -1}}),
      place + "con.stddev: expected a number of at least 0");
  has(note("con", {{"kind", "normal"}, {"stddev", "Infinity"}}),
      place + "con.stddev: expected a number, not \"Infinity\"");
  has(note("con", {{"kind", "uniform"}, {"low", 1}, {"high", 1}}),
      place + "con.high: expected more than 'low'");
  has(note("tn", {{"kind", "truncated_normal"},
                  {"stddev", 1},
                  {"low", 1},
                  {"high", 2}}),
      place + "tn.high: expected a range with 0 in it");
  has(note("con", {{"kind", "ones"}, {"zero_row", 0}}),
      place + "con.zero_row: 'con' has no row 0");
  has(note("table", {{"kind", "ones"}, {"zero_row", 4}}),
      place + "table.zero_row: 'table' has no row 4");
  has(note("table", {{"kind", "ones"}, {"zero_row", -1}}),
      place + "table.zero_row: expected the number of a row");
  has(note("table", {{"kind", "sinusoids"}, {"value", 10}}),
      place + "table.kind: 'table' is no table of an even number of columns");
  auto stored = [](const json &value) {
    return errorOf([&](Sample &s) { s.notes["stored"] = value; }, "notes");
  };
  has(stored(json::array()),
      "extra/accel-opt.json: stored: expected an object, not a list");
  has(stored({{"con", "x"}}), "stored.con: expected a list, not \"x\"");
  has(stored({{"con", {1}}}), "stored.con[0]: expected a string, not 1");
}

//===----------------------------------------------------------------------===//
// Open sizes
//===----------------------------------------------------------------------===//

class OpenSizes : public testing::Test {
protected:
  OpenSizes() : program(read(sample("bounds"), engine)) {}

  std::map<std::string, int64_t>
  resolve(std::vector<std::pair<std::string, int64_t>> named) {
    return resolveDims(*program, named, engine)
        .value_or(std::map<std::string, int64_t>());
  }
  std::string error() {
    std::string text;
    for (const Diagnostic &d : engine.all())
      text += d.message + " / " + d.hint + "\n";
    return text;
  }
  bool bind(std::map<std::string, int64_t> dims, int64_t batch) {
    Sizes sizes;
    sizes.microBatch = batch;
    sizes.dims = std::move(dims);
    return Symbols::bind(*program, sizes, engine).has_value();
  }

  DiagnosticEngine engine;
  std::optional<Program> program;
};

TEST_F(OpenSizes, BoundsAreRead) {
  ASSERT_TRUE(program);
  EXPECT_EQ(program->bounds.at("s17").most, 512);
  EXPECT_EQ(program->bounds.at("s15").least, 3);
  EXPECT_FALSE(program->bounds.at("s15").most);
}

TEST_F(OpenSizes, NamesAreSymbolsPlacesAndBatch) {
  using Dims = std::map<std::string, int64_t>;
  EXPECT_EQ(resolve({{"s15", 5}}), (Dims{{"s15", 5}}));
  EXPECT_EQ(resolve({{"x.1", 5}, {"batch", 4}}),
            (Dims{{"s15", 5}, {"s17", 4}}));
  EXPECT_EQ(resolve({{"y.0", 4}, {"x.0", 4}}), (Dims{{"s17", 4}}));
  EXPECT_FALSE(engine.hasErrors());
}

TEST_F(OpenSizes, UnknownNamesSayWhichAreOpen) {
  resolve({{"bacth", 4}});
  has(error(), "--dim bacth=4: the program has no open size of this name");
  has(error(),
      "did you mean 'batch'? open are x.0 (s17), x.1 (s15), y.0 (s17)");
}

TEST_F(OpenSizes, ContradictionsAreErrors) {
  resolve({{"x.0", 4}, {"s17", 5}});
  has(error(), "--dim s17=5: dimension 0 of 'x', 's17', is given as 4 too");
}

TEST_F(OpenSizes, WhatIsStillOpenIsAskedFor) {
  EXPECT_FALSE(bind({}, 2));
  has(error(), "dimension 1 of 'x' is open: 's15' / --dim x.1=N says what");
}

TEST_F(OpenSizes, BoundsHold) {
  EXPECT_TRUE(bind({{"s15", 3}}, 512));
  EXPECT_FALSE(bind({{"s15", 3}}, 513));
  has(error(), "dimension 0 of 'x', 's17', is 513, and was exported as at "
               "most 512");
  EXPECT_FALSE(bind({{"s15", 2}}, 1));
  has(error(), "'s15', is 2, and was exported as at least 3");
}

TEST(TorchExportSizes, FixedOnesHaveNoOtherValue) {
  DiagnosticEngine engine;
  auto program = read(sample("static"), engine);
  ASSERT_TRUE(program);
  EXPECT_TRUE(resolveDims(*program, {{"batch", 4}}, engine));
  EXPECT_FALSE(resolveDims(*program, {{"batch", 2}}, engine));
  has(engine.all().front().message,
      "--dim batch=2: dimension 0 of 'x' was exported as 4");
}

TEST(TorchExportSizes, BoundsThatNothingFits) {
  has(errorOf([](Sample &s) {
        s.model["range_constraints"]["s15"] = {{"min_val", 9}, {"max_val", 3}};
      }),
      "models/model.json: range_constraints.s15: no size is from 9 to 3");
  has(errorOf([](Sample &s) { s.model["range_constraints"] = 1; }),
      "range_constraints: expected an object, not 1");
}

//===----------------------------------------------------------------------===//
// The zip
//===----------------------------------------------------------------------===//

std::string zipError(std::string zip) {
  DiagnosticEngine engine;
  EXPECT_FALSE(parseProgram(zip, "m.pt2", engine));
  return engine.all().empty() ? "" : engine.all().front().message;
}

TEST(TorchExportZip, DamagedEntriesAreNamed) {
  std::string zip = readFile("zip.pt2");
  size_t at = zip.find("cross_entropy_loss");
  ASSERT_NE(at, std::string::npos);
  zip[at] = 'C'; // the checksum is that of another text
  has(zipError(zip), "models/");
  has(zipError(zip), "is damaged");
}

TEST(TorchExportZip, OtherFilesAreTold) {
  has(zipError(""), "the file is empty, or a zip without entries");
  has(zipError(readFile("zip.pt2").substr(0, 4000)),
      "no zip archive that can be read");
  DiagnosticEngine engine;
  EXPECT_FALSE(
      parseEntries({{"data.pkl", ""}, {"version", "3"}}, "m.pt2", engine));
  has(engine.all().front().message, "a file of torch.save or TorchScript");
  DiagnosticEngine several;
  EXPECT_FALSE(parseEntries({{"archive_format", "pt2"},
                             {"models/a.json", "{}"},
                             {"models/b.json", "{}"}},
                            "m.pt2", several));
  EXPECT_EQ(several.outcome(), Outcome::NotSupported);
  has(several.all().front().message, "several models ('models/a.json', ");
  DiagnosticEngine order;
  EXPECT_FALSE(parseEntries({{"archive_format", "pt2"}, {"byteorder", "big"}},
                            "m.pt2", order));
  has(order.all().front().message, "byteorder: values of byte order 'big'");
}

TEST(TorchExportZip, JsonSaysWhereItBreaks) {
  DiagnosticEngine engine;
  EXPECT_FALSE(parseEntries(
      {{"archive_format", "pt2"}, {"models/m.json", "{\"graph_module\": [1,}"}},
      "m.pt2", engine));
  has(engine.all().front().message, "models/m.json: not valid JSON: ");
  has(engine.all().front().message, ", at byte 21");
}

} // namespace
