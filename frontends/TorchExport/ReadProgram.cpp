//===- ReadProgram.cpp - What a .pt2 file says ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Archive.h"
#include "frontends/TorchExport/GraphReader.h"
#include "frontends/TorchExport/Program.h"
#include "runtime/plan/JsonParse.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace accel::torchexport {
namespace {

using Json = nlohmann::json;

/// A model of 405 billion parameters has 20 MB of JSON, stack traces included.
constexpr int64_t maxJsonBytes = int64_t(256) << 20;
constexpr int schemaMajor = 8;

/// What is wrong with the archive; JsonNode::fail says it of a value.
[[noreturn]] void fail(std::string message, std::string hint = "") {
  throw plan::JsonError{std::move(message), std::move(hint), false};
}

Json readJson(Archive &archive, const std::string &entry) {
  std::string error;
  std::optional<std::string> text = archive.read(entry, maxJsonBytes, error);
  if (!text)
    fail(error);
  // What only people read is left out.
  static const plan::JsonLimits limits = {
      .without = {"stack_trace", "torch_fn", "guards_code", "from_node",
                  "source_fn_stack"}};
  try {
    return plan::parseJson(*text, limits);
  } catch (const plan::JsonSyntaxError &problem) {
    fail(entry + ": not valid JSON: " + problem.message +
         (problem.byte ? ", at byte " + std::to_string(problem.byte) : ""));
  }
}

/// A short text entry without surrounding white space.
std::string readWord(Archive &archive, const std::string &entry) {
  std::string error;
  std::optional<std::string> text = archive.read(entry, 4096, error);
  if (!text)
    fail(error);
  size_t begin = text->find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return "";
  return text->substr(begin, text->find_last_not_of(" \t\r\n") - begin + 1);
}

class ProgramReader {
public:
  ProgramReader(Archive &archive, std::string path) : archive(archive) {
    program.path = std::move(path);
  }

  Program run() {
    checkFormat();
    const std::string entry = modelEntry();
    const std::string name =
        entry.substr(7, entry.size() - 7 - std::string(".json").size());
    {
      Json json = readJson(archive, entry);
      JsonNode root(json, entry.c_str());
      checkVersions(root);
      JsonNode graphModule = root["graph_module"];
      GraphReader reader(program);
      reader.read(graphModule["graph"], program.graph);
      readSignature(graphModule["signature"]);
      readBounds(root);
      JsonNode calls = graphModule["module_call_graph"];
      for (size_t i = 0; i < calls.size(); ++i)
        program.modules.push_back(calls.at(i)["fqn"].string());
    }
    readPayloads("data/weights/", name + "_weights_config.json", "weight");
    readPayloads("data/constants/", name + "_constants_config.json", "tensor");
    readNotes();
    checkWeights();
    return std::move(program);
  }

private:
  void checkFormat() {
    if (archive.entries().empty())
      fail("the file is empty, or a zip without entries in a folder",
           "tools/export-model MODEL -o FILE.pt2 writes one");
    if (!archive.has("archive_format"))
      fail(archive.has("constants.pkl") || archive.has("data.pkl")
               ? "this is a file of torch.save or TorchScript, not of "
                 "torch.export"
               : "the archive has no entry 'archive_format'",
           "torch.export.save(torch.export.export(model, inputs), FILE) writes "
           "one");
    std::string format = readWord(archive, "archive_format");
    if (format != "pt2")
      fail("archive_format: expected 'pt2', not '" + printable(format) + "'");
    std::string order = archive.has("byteorder")
                            ? readWord(archive, "byteorder")
                            : std::string("little");
    if (order != "little")
      throw plan::JsonError{"byteorder: values of byte order '" +
                                printable(order) + "' are not supported yet",
                            "", true};
  }

  std::string modelEntry() {
    std::string found;
    for (const auto &[name, entry] : archive.entries()) {
      if (name.rfind("models/", 0) != 0 || name.size() < 13 ||
          name.compare(name.size() - 5, 5, ".json") != 0)
        continue;
      if (!found.empty())
        throw plan::JsonError{"the archive holds several models ('" +
                                  printable(found) + "', '" + printable(name) +
                                  "')",
                              "save one program per file", true};
      found = name;
    }
    if (found.empty())
      fail("the archive has no entry 'models/NAME.json'");
    return found;
  }

  void checkVersions(const JsonNode &root) {
    JsonNode version = root["schema_version"];
    const int64_t major = version["major"].integer();
    const int64_t minor = version["minor"].integer();
    if (root.has("torch_version"))
      program.torchVersion = root["torch_version"].string();
    if (major != schemaMajor)
      version.unsupported("schema version " + std::to_string(major) + "." +
                              std::to_string(minor) + " is not supported yet",
                          "versions 8.x are, which torch 2.5 and later write");
  }

  void readBounds(const JsonNode &root) {
    if (!root.has("range_constraints"))
      return;
    JsonNode ranges = root["range_constraints"];
    ranges.members([&](const std::string &symbol, const JsonNode &range) {
      Bound bound;
      if (range.has("min_val"))
        bound.least = range["min_val"].integer();
      if (range.has("max_val"))
        bound.most = range["max_val"].integer();
      if (bound.least && bound.most && *bound.least > *bound.most)
        range.fail("no size is from " + std::to_string(*bound.least) + " to " +
                   std::to_string(*bound.most));
      program.bounds[symbol] = bound;
    });
  }

  void readSignature(const JsonNode &signature) {
    JsonNode inputs = signature["input_specs"];
    for (size_t i = 0; i < inputs.size(); ++i)
      readInput(inputs.at(i));
    if (program.inputs.size() != program.graph.inputs.size())
      inputs.fail("describes " + std::to_string(program.inputs.size()) +
                  " of " + std::to_string(program.graph.inputs.size()) +
                  " inputs of the graph");
    std::set<std::string> names;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const InputSpec &input = program.inputs[i];
      const Argument &given = program.graph.inputs[i];
      if (!input.argument.empty() && (given.kind != Argument::Kind::Tensor ||
                                      given.text != input.argument))
        inputs.at(i).fail("describes '" + printable(input.argument) +
                          "', and input " + std::to_string(i) +
                          " of the graph is another");
      if (!input.fqn.empty() && !names.insert(input.fqn).second)
        inputs.at(i).fail("names '" + printable(input.fqn) + "' twice");
    }
    JsonNode outputs = signature["output_specs"];
    for (size_t i = 0; i < outputs.size(); ++i)
      readOutput(outputs.at(i));
    if (program.outputs.size() != program.graph.outputs.size())
      outputs.fail("describes " + std::to_string(program.outputs.size()) +
                   " of " + std::to_string(program.graph.outputs.size()) +
                   " outputs of the graph");
  }

  /// The only member of a tagged union.
  static std::string memberOf(const JsonNode &value) {
    const auto &object = value.object();
    if (object.size() != 1)
      value.fail("expected one member, not " + std::to_string(object.size()));
    return object.begin()->first;
  }

  const std::string &tensorName(const JsonNode &arg) const {
    const std::string &name = arg["name"].string();
    if (!program.graph.tensors.count(name))
      arg["name"].fail("'" + printable(name) + "' is no tensor of the graph");
    return name;
  }

  void readInput(const JsonNode &spec) {
    const std::string kind = memberOf(spec);
    JsonNode body = spec[kind.c_str()];
    InputSpec input;
    if (kind == "user_input") {
      JsonNode arg = body["arg"];
      const std::string member = memberOf(arg);
      if (member == "as_tensor")
        input.argument = tensorName(arg["as_tensor"]);
      else
        input.kind = InputSpec::Kind::Value;
    } else if (kind == "parameter") {
      input = {InputSpec::Kind::Parameter, tensorName(body["arg"]),
               body["parameter_name"].string()};
    } else if (kind == "buffer") {
      input = {InputSpec::Kind::Buffer, tensorName(body["arg"]),
               body["buffer_name"].string(), body["persistent"].boolean()};
    } else if (kind == "tensor_constant") {
      input = {InputSpec::Kind::Constant, tensorName(body["arg"]),
               body["tensor_constant_name"].string(), false};
    } else if (kind == "constant_input") {
      input.kind = InputSpec::Kind::Value;
    } else if (kind == "custom_obj" || kind == "token") {
      spec.unsupported("inputs of the kind '" + kind +
                       "' are not supported yet");
    } else {
      spec.fail("unknown kind of input '" + printable(kind) + "'");
    }
    program.inputs.push_back(std::move(input));
  }

  void readOutput(const JsonNode &spec) {
    const std::string kind = memberOf(spec);
    JsonNode body = spec[kind.c_str()];
    OutputSpec output;
    output.member = kind;
    size_t index = program.outputs.size();
    if (index < program.graph.outputs.size())
      output.argument = program.graph.outputs[index];
    if (kind == "user_output") {
      output.kind = OutputSpec::Kind::User;
    } else if (kind == "loss_output") {
      output.kind = OutputSpec::Kind::Loss;
    } else if (kind == "buffer_mutation") {
      output.kind = OutputSpec::Kind::BufferMutation;
      output.fqn = body["buffer_name"].string();
    } else if (kind == "gradient_to_parameter" ||
               kind == "gradient_to_user_input") {
      spec.unsupported("this program holds its own backward, which is not "
                       "supported",
                       "export the forward: accel-opt differentiates it");
    } else if (kind == "user_input_mutation" || kind == "token" ||
               kind == "parameter_mutation") {
      spec.unsupported("outputs of the kind '" + kind +
                       "' are not supported yet");
    } else {
      spec.fail("unknown kind of output '" + printable(kind) + "'");
    }
    program.outputs.push_back(std::move(output));
  }

  void readPayloads(const std::string &folder, const std::string &file,
                    const char *what) {
    const std::string entry = folder + file;
    if (!archive.has(entry))
      return;
    Json json = readJson(archive, entry);
    JsonNode root(json, entry.c_str());
    JsonNode config = root["config"];
    config.members([&](const std::string &fqn, const JsonNode &payload) {
      Payload result;
      result.entry = folder + payload["path_name"].string();
      result.pickled = payload["use_pickle"].boolean();
      if (payload.has("tensor_meta"))
        result.meta = GraphReader::tensorMeta(payload["tensor_meta"]);
      if (!result.pickled && !archive.has(result.entry))
        payload["path_name"].fail("the archive has no entry '" +
                                  printable(result.entry) + "'");
      if (!result.pickled && !result.meta.meta)
        checkBytes(payload, result, what);
      readValues(result);
      program.payloads[fqn] = std::move(result);
    });
  }

  /// An entry holds the elements of a tensor's storage.
  void checkBytes(const JsonNode &payload, const Payload &p, const char *what) {
    const int64_t have = archive.entries().at(p.entry).bytes;
    __int128 need = 0;
    for (size_t i = 0; i < p.meta.sizes.size(); ++i) {
      const int64_t size = p.meta.sizes[i].value;
      if (p.meta.sizes[i].symbolic())
        payload.fail(std::string("a ") + what + " of symbolic size");
      if (size == 0)
        return;
      need += __int128(size - 1) *
              (i < p.meta.strides.size() ? p.meta.strides[i].value : 0);
    }
    JsonNode meta = payload["tensor_meta"];
    if (meta.has("storage_offset")) {
      JsonNode offset = meta["storage_offset"];
      if (!offset.has("as_int"))
        offset.fail(std::string("a ") + what + " of symbolic place");
      need += offset["as_int"].integer();
    }
    need = (need + 1) * plan::itemSize(p.meta.dtype);
    if (have != 0 && need > have)
      payload.fail(
          "needs " +
          std::to_string(int64_t(std::min<__int128>(need, INT64_MAX))) +
          " bytes, and entry '" + printable(p.entry) + "' has " +
          std::to_string(have));
  }

  /// The elements of a constant that an index may be.
  void readValues(Payload &p) {
    if (p.pickled || p.meta.meta || p.meta.dtype != plan::DType::I64 ||
        p.meta.sizes.size() > 1)
      return;
    const int64_t count = p.meta.sizes.empty() ? 1 : p.meta.sizes[0].value;
    const int64_t bytes = archive.entries().at(p.entry).bytes;
    if (count < 1 || count > int64_t(Payload::maxConstant) ||
        (count > 1 && p.meta.strides[0].value != 1) || bytes != count * 8)
      return;
    std::string error;
    std::optional<std::string> text = archive.read(p.entry, bytes, error);
    if (!text)
      fail(error);
    p.values.resize(size_t(count));
    std::memcpy(p.values.data(), text->data(), text->size());
  }

  void readNotes() {
    const std::string entry = "extra/accel-opt.json";
    if (!archive.has(entry))
      return;
    Json json = readJson(archive, entry);
    JsonNode root(json, entry.c_str());
    ExportNotes &notes = program.notes;
    if (root.has("ties")) {
      JsonNode ties = root["ties"];
      for (size_t i = 0; i < ties.size(); ++i)
        notes.ties.push_back(ties.at(i).strings());
    }
    if (root.has("initial")) {
      JsonNode initial = root["initial"];
      initial.members([&](const std::string &fqn, const JsonNode &member) {
        notes.initial[fqn] = initializer(member);
        checkInitializer(member, fqn, notes.initial[fqn]);
      });
    }
    if (root.has("classes")) {
      JsonNode classes = root["classes"];
      classes.members([&](const std::string &fqn, const JsonNode &name) {
        notes.classes[fqn] = name.string();
      });
    }
    if (root.has("stored")) {
      JsonNode stored = root["stored"];
      stored.members([&](const std::string &fqn, const JsonNode &names) {
        notes.stored[fqn] = names.strings();
      });
    }
    for (auto [key, into] : {std::pair("base", &notes.base),
                             {"input_embedding", &notes.inputEmbedding},
                             {"output_embedding", &notes.outputEmbedding}})
      if (root.has(key))
        *into = root[key].string();
    if (root.has("no_split"))
      notes.noSplit = root["no_split"].strings();
    if (root.has("max_positions"))
      notes.maxPositions = root["max_positions"].integer();
    if (root.has("vocabulary"))
      notes.vocabulary = root["vocabulary"].integer();
  }

  static plan::Initializer initializer(const JsonNode &value) {
    using Kind = plan::Initializer::Kind;
    static const std::map<std::string, Kind> kinds = {
        {"normal", Kind::Normal},
        {"ones", Kind::Ones},
        {"zeros", Kind::Zeros},
        {"truncated_normal", Kind::TruncatedNormal},
        {"uniform", Kind::Uniform},
        {"constant", Kind::Constant},
        {"sinusoids", Kind::Sinusoids}};
    plan::Initializer result;
    const std::string &kind = value["kind"].string();
    auto found = kinds.find(kind);
    if (found == kinds.end())
      value["kind"].fail("unknown initial value '" + printable(kind) +
                         "', expected normal, truncated_normal, uniform, "
                         "constant, sinusoids, ones or zeros");
    result.kind = found->second;
    auto number = [&](const char *key, double least) {
      const double x = value[key].real();
      if (!(x >= least && x < 1e30))
        value[key].fail(least == 0 ? "expected a number of at least 0"
                                   : "expected a number");
      return x;
    };
    if (result.kind == Kind::Normal || result.kind == Kind::TruncatedNormal)
      result.value = number("stddev", 0);
    if (result.kind == Kind::Constant)
      result.value = number("value", -1e30);
    if (result.kind == Kind::Sinusoids)
      result.value = number("value", 0);
    if (result.kind == Kind::TruncatedNormal || result.kind == Kind::Uniform) {
      result.low = number("low", -1e30);
      result.high = number("high", -1e30);
      if (!(result.low < result.high))
        value["high"].fail("expected more than 'low'");
      // Nearly all would be drawn again.
      if (result.kind == Kind::TruncatedNormal &&
          (result.low > 0 || result.high < 0 || result.value <= 0))
        value["high"].fail("expected a range with 0 in it, and a deviation");
    }
    if (value.has("zero_row")) {
      result.zeroRow = value["zero_row"].integer();
      if (result.zeroRow < 0)
        value["zero_row"].fail("expected the number of a row");
    }
    return result;
  }

  /// What only some shapes can have.
  void checkInitializer(const JsonNode &value, const std::string &fqn,
                        const plan::Initializer &init) const {
    const bool table = init.kind == plan::Initializer::Kind::Sinusoids;
    if (init.zeroRow < 0 && !table)
      return;
    for (const InputSpec &input : program.inputs) {
      if (input.kind != InputSpec::Kind::Parameter || input.fqn != fqn)
        continue;
      const auto &sizes = program.graph.tensors.at(input.argument).sizes;
      if (init.zeroRow >= 0 &&
          (sizes.size() < 2 || init.zeroRow >= sizes[0].value))
        value["zero_row"].fail("'" + printable(fqn) + "' has no row " +
                               std::to_string(init.zeroRow));
      if (table && (sizes.size() != 2 || sizes[1].value % 2 != 0 ||
                    sizes[1].value < 4 || init.value <= 0))
        value["kind"].fail("'" + printable(fqn) +
                           "' is no table of an even number of columns");
    }
  }

  /// The stored tensor is what the graph reads.
  void checkShape(const InputSpec &input, const TensorMeta &stored) const {
    const TensorMeta &read = program.graph.tensors.at(input.argument);
    bool same = stored.sizes.size() == read.sizes.size();
    for (size_t i = 0; same && i < read.sizes.size(); ++i)
      same = read.sizes[i].symbolic() ||
             read.sizes[i].value == stored.sizes[i].value;
    if (!same || stored.dtype != read.dtype)
      fail("'" + printable(input.fqn) + "' is stored with another " +
           (same ? "dtype" : "shape") + " than the graph reads it");
  }

  /// Weights are there if each parameter has bytes.
  void checkWeights() {
    program.hasWeights = true;
    for (const InputSpec &input : program.inputs) {
      auto found = program.payloads.find(input.fqn);
      if (!input.argument.empty() && found != program.payloads.end() &&
          !found->second.pickled)
        checkShape(input, found->second.meta);
      if (input.kind != InputSpec::Kind::Parameter)
        continue;
      if (found == program.payloads.end() || found->second.pickled ||
          found->second.meta.meta ||
          archive.entries().at(found->second.entry).bytes == 0)
        program.hasWeights = false;
    }
  }

  Archive &archive;
  Program program;
};

std::optional<Program> readFrom(std::optional<Archive> archive,
                                const std::string &path,
                                const std::string &error,
                                DiagnosticEngine &diagnostics) {
  Diagnostic diagnostic;
  diagnostic.code = "invalid-pt2";
  diagnostic.file = path;
  if (!archive) {
    diagnostic.message = error;
    diagnostics.report(std::move(diagnostic));
    return std::nullopt;
  }
  try {
    return ProgramReader(*archive, path).run();
  } catch (const plan::JsonError &e) {
    diagnostic.message = e.message;
    diagnostic.hint = e.hint;
    if (e.unsupported)
      diagnostic.code = notSupportedCode;
  } catch (const std::bad_alloc &) {
    diagnostic.message = "the program is too large for this machine's memory";
  }
  diagnostics.report(std::move(diagnostic));
  return std::nullopt;
}

} // namespace

std::optional<Program> readProgram(const std::string &path,
                                   DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<Archive> archive = Archive::open(path, error);
  return readFrom(std::move(archive), path, error, diagnostics);
}

std::optional<Program> parseProgram(std::string_view bytes,
                                    const std::string &path,
                                    DiagnosticEngine &diagnostics) {
  std::string error;
  std::optional<Archive> archive = Archive::openMemory(bytes, error);
  return readFrom(std::move(archive), path, error, diagnostics);
}

std::optional<Program> parseEntries(std::map<std::string, std::string> entries,
                                    const std::string &path,
                                    DiagnosticEngine &diagnostics) {
  return readFrom(Archive::ofEntries(std::move(entries)), path, "",
                  diagnostics);
}

} // namespace accel::torchexport
