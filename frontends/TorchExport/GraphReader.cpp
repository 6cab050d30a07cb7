//===- GraphReader.cpp - Graphs of model.json -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/GraphReader.h"

#include "runtime/plan/ExportDType.h"

#include <cmath>

using namespace accel;
using namespace accel::torchexport;

using Kind = Argument::Kind;

namespace {
/// Elements of a tensor: bytes and sums of them stay far inside int64_t.
constexpr double maxElements = 1e15;
constexpr int maxGraphs = 20; // inside one another

Size sizeOf(const JsonNode &json, const char *what, bool negative) {
  Size size;
  const auto &object = json.object();
  if (object.size() != 1)
    json.fail("expected as_int or as_expr");
  if (json.has("as_int")) {
    size.value = json["as_int"].integer();
    if (size.value < 0 && !negative)
      json["as_int"].fail(std::string("a ") + what + " of " +
                          std::to_string(size.value) + " is negative");
    return size;
  }
  JsonNode expression = json["as_expr"];
  size.expression = expression["expr_str"].string();
  if (size.expression.empty())
    expression["expr_str"].fail("is empty");
  if (expression.has("hint")) {
    JsonNode hint = expression["hint"];
    if (hint.has("as_int"))
      size.value = hint["as_int"].integer();
  }
  return size;
}

plan::DType dtypeOf(const JsonNode &json) {
  const int64_t code = json.integer();
  if (auto dtype = plan::dtypeOfExport(code))
    return *dtype;
  // int8, complex, unsigned, float8: torch has them, the compiler does not.
  if (code == 2 || (code >= 9 && code <= 11) || (code >= 28 && code <= 35))
    json.unsupported("tensors of torch's dtype " + std::to_string(code) +
                     " are not supported yet");
  json.fail("no dtype has the number " + std::to_string(code));
}
} // namespace

TensorMeta GraphReader::tensorMeta(const JsonNode &json) {
  TensorMeta meta;
  meta.dtype = dtypeOf(json["dtype"]);
  JsonNode sizes = json["sizes"], strides = json["strides"];
  double elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    meta.sizes.push_back(sizeOf(sizes.at(i), "size", false));
    elements *= double(std::max<int64_t>(meta.sizes.back().value, 1));
  }
  if (elements > maxElements)
    sizes.fail("a tensor of more than 1e15 elements");
  for (size_t i = 0; i < strides.size(); ++i)
    meta.strides.push_back(sizeOf(strides.at(i), "stride", false));
  if (meta.strides.size() != meta.sizes.size())
    strides.fail("has " + std::to_string(meta.strides.size()) +
                 " strides for " + std::to_string(meta.sizes.size()) +
                 " dimensions");
  if (sizes.size() > 64)
    sizes.fail("a tensor has at most 64 dimensions");
  const int64_t layout = json["layout"].integer();
  if (layout != 7)
    json["layout"].unsupported("only strided tensors are supported");
  if (json.has("storage_offset"))
    sizeOf(json["storage_offset"], "storage offset", false);
  meta.requiresGrad = json["requires_grad"].boolean();
  meta.meta = json["device"]["type"].string() == "meta";
  return meta;
}

void GraphReader::read(const JsonNode &json, Graph &into) {
  if (++depth > maxGraphs)
    json.fail("graphs nest deeper than " + std::to_string(maxGraphs));
  Graph *outer = graph;
  std::set<std::string> *outerNames = defined;
  std::set<std::string> names;
  graph = &into;
  defined = &names;
  JsonNode tensors = json["tensor_values"];
  into.tensors.reserve(tensors.object().size());
  tensors.members([&](const std::string &name, const JsonNode &meta) {
    into.tensors.emplace(name, tensorMeta(meta));
  });
  JsonNode integers = json["sym_int_values"];
  integers.members([&](const std::string &name, const JsonNode &size) {
    into.integers.emplace(name, sizeOf(size, "symbolic integer", true));
  });
  JsonNode inputs = json["inputs"];
  for (size_t i = 0; i < inputs.size(); ++i)
    into.inputs.push_back(argument(inputs.at(i), /*defines=*/true));
  JsonNode nodes = json["nodes"];
  into.nodes.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    node(nodes.at(i), into.nodes[i]);
  JsonNode outputs = json["outputs"];
  for (size_t i = 0; i < outputs.size(); ++i)
    into.outputs.push_back(argument(outputs.at(i), /*defines=*/false));
  graph = outer;
  defined = outerNames;
  --depth;
}

void GraphReader::node(const JsonNode &json, Node &node) {
  node.target = json["target"].string();
  node.place = json.path();
  JsonNode inputs = json["inputs"];
  node.inputs.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    JsonNode input = inputs.at(i);
    NamedArgument named;
    named.name = input["name"].string();
    if (input.has("kind")) {
      const int64_t kind = input["kind"].integer();
      if (kind < 0 || kind > 2)
        input["kind"].fail("no kind of argument has the number " +
                           std::to_string(kind));
      named.keyword = kind == 2;
    }
    named.value = argument(input["arg"], /*defines=*/false);
    node.inputs.push_back(std::move(named));
  }
  JsonNode outputs = json["outputs"];
  for (size_t i = 0; i < outputs.size(); ++i)
    node.outputs.push_back(argument(outputs.at(i), /*defines=*/true));
  node.stack = json.has("metadata") ? stackOf(json["metadata"]) : 0;
}

/// "key,fqn,class;key,fqn,class": the modules around a node, outermost first.
int GraphReader::stackOf(const JsonNode &metadata) {
  std::string text;
  if (metadata.has("nn_module_stack"))
    text = metadata["nn_module_stack"].string();
  auto [entry, isNew] = stackIndex.emplace(text, int(program.stacks.size()));
  if (!isNew)
    return entry->second;
  std::vector<ModuleCall> calls;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(';', begin);
    if (end == std::string::npos)
      end = text.size();
    std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = part.find(','), last = part.rfind(',');
    if (first == std::string::npos || last == first)
      metadata["nn_module_stack"].fail("expected KEY,NAME,CLASS, not '" +
                                       printable(part) + "'");
    calls.push_back({part.substr(0, first),
                     part.substr(first + 1, last - first - 1),
                     part.substr(part.rfind('.') + 1)});
    if (size_t dot = part.rfind('.'); dot < last || dot == std::string::npos)
      calls.back().className = part.substr(last + 1);
  }
  program.stacks.push_back(std::move(calls));
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Argument GraphReader::reference(const JsonNode &name, Argument::Kind kind,
                                bool defines) {
  Argument result;
  result.kind = kind;
  result.text = name.string();
  const std::string shown = "'" + printable(result.text) + "'";
  if (kind == Kind::Tensor && !graph->tensors.count(result.text))
    name.fail(shown + " has no entry in tensor_values");
  if (kind == Kind::SymInt && !graph->integers.count(result.text))
    name.fail(shown + " has no entry in sym_int_values");
  if (!defines) {
    if (!defined->count(result.text))
      name.fail(shown + " is read before any node defines it");
  } else if (!defined->insert(result.text).second) {
    name.fail(shown + " is defined twice");
  }
  return result;
}

Argument GraphReader::tensor(const JsonNode &json, bool defines) {
  JsonNode name = json["name"];
  // Results that nobody reads have no name.
  if (defines && name.string().empty())
    return {};
  return reference(name, Kind::Tensor, defines);
}

Argument GraphReader::optionalTensor(const JsonNode &json, bool defines) {
  if (json.has("as_tensor"))
    return tensor(json["as_tensor"], defines);
  if (json.object().count("as_none"))
    return {};
  json.fail("expected as_tensor or as_none");
}

Argument GraphReader::integer(const JsonNode &json, bool) {
  Argument result;
  result.kind = Kind::Int;
  result.integer = json.integer();
  return result;
}
Argument GraphReader::number(const JsonNode &json, bool) {
  Argument result;
  result.kind = Kind::Float;
  // Torch writes what JSON has no number for as strings.
  static const std::map<std::string, double> strings = {
      {"Infinity", HUGE_VAL}, {"-Infinity", -HUGE_VAL}, {"NaN", NAN}};
  if (json.value.is_string() && strings.count(json.string()))
    result.number = strings.at(json.string());
  else
    result.number = json.real();
  return result;
}
Argument GraphReader::boolean(const JsonNode &json, bool) {
  Argument result;
  result.kind = Kind::Bool;
  result.integer = json.boolean();
  return result;
}

/// as_name, or a plain value.
Argument GraphReader::symbolic(const JsonNode &json, Argument::Kind named) {
  if (json.has("as_name")) {
    Argument result;
    result.kind = named;
    result.text = json["as_name"].string();
    return result;
  }
  if (json.has("as_int"))
    return integer(json["as_int"], false);
  if (json.has("as_float"))
    return number(json["as_float"], false);
  if (json.has("as_bool"))
    return boolean(json["as_bool"], false);
  json.fail("expected as_name or a value");
}

Argument GraphReader::symInt(const JsonNode &json, bool defines) {
  if (json.has("as_name"))
    return reference(json["as_name"], Kind::SymInt, defines);
  return symbolic(json, Kind::SymInt);
}

void GraphReader::list(const JsonNode &json, Argument &result,
                       Argument (GraphReader::*item)(const JsonNode &, bool),
                       bool defines) {
  result.kind = Kind::List;
  result.items.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i)
    result.items.push_back((this->*item)(json.at(i), defines));
}

Argument GraphReader::argument(const JsonNode &json, bool defines) {
  const auto &object = json.object();
  if (object.size() != 1)
    json.fail("expected one member, not " + std::to_string(object.size()));
  const std::string &member = object.begin()->first;
  JsonNode body = json[member.c_str()];
  Argument result;
  auto plain = [&](Kind kind) {
    result.kind = kind;
    result.integer = body.integer();
    return result;
  };
  if (member == "as_none")
    return result;
  if (member == "as_tensor")
    return tensor(body, defines);
  if (member == "as_optional_tensor")
    return optionalTensor(body, defines);
  if (member == "as_tensors")
    list(body, result, &GraphReader::tensor, defines);
  else if (member == "as_optional_tensors")
    list(body, result, &GraphReader::optionalTensor, defines);
  else if (member == "as_int")
    return integer(body, false);
  else if (member == "as_ints")
    list(body, result, &GraphReader::integer, false);
  else if (member == "as_float")
    return number(body, false);
  else if (member == "as_floats")
    list(body, result, &GraphReader::number, false);
  else if (member == "as_bool")
    return boolean(body, false);
  else if (member == "as_bools")
    list(body, result, &GraphReader::boolean, false);
  else if (member == "as_sym_int")
    return symInt(body, defines);
  else if (member == "as_sym_ints")
    list(body, result, &GraphReader::symInt, defines);
  else if (member == "as_sym_float")
    return symbolic(body, Kind::SymFloat);
  else if (member == "as_sym_bool")
    return symbolic(body, Kind::SymBool);
  else if (member == "as_scalar_type") {
    plain(Kind::ScalarType);
    dtypeOf(body);
  } else if (member == "as_memory_format")
    plain(Kind::MemoryFormat);
  else if (member == "as_layout")
    plain(Kind::Layout);
  else if (member == "as_string") {
    result.kind = Kind::String;
    result.text = body.string();
  } else if (member == "as_device") {
    result.kind = Kind::Device;
    result.text = body["type"].string();
  } else if (member == "as_graph") {
    result.kind = Kind::Graph;
    result.graph = std::make_shared<Graph>();
    read(body["graph"], *result.graph);
  } else if (member == "as_custom_obj" || member == "as_operator" ||
             member == "as_complex" || member == "as_nested_tensors" ||
             member == "as_int_lists" || member == "as_float_lists" ||
             member == "as_strings" || member == "as_string_to_argument" ||
             member == "as_sym_bools" || member == "as_sym_floats") {
    result.kind = Kind::Other;
    result.text = member;
  } else {
    json.fail("unknown kind of argument '" + printable(member) + "'");
  }
  return result;
}
