//===- Arg.cpp - How plan.json spells operator arguments ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Forms.h"

namespace accel::plan {

namespace {
void writeSlot(PlanText &out, int64_t slot) {
  out.raw("\"%");
  out.integer(slot);
  out.raw("\"");
}

/// "%12"; -1 if it is something else.
int slotNumber(const std::string &text) {
  if (text.size() < 2 || text.size() > 10 || text[0] != '%')
    return -1;
  int64_t number = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

int readSlot(const JsonNode &node) {
  const int result = slotNumber(node.string());
  if (result < 0)
    node.fail("expected a slot such as \"%3\", not " + node.shown());
  return result;
}
} // namespace

void writeForm(PlanText &out, const Arg &arg) {
  switch (arg.kind) {
  case Arg::Kind::None:
    out.raw("null");
    return;
  case Arg::Kind::Tensor:
    writeSlot(out, arg.slot);
    return;
  case Arg::Kind::Tensors:
    // All missing would read as something else.
    if (arg.ints.empty() ||
        arg.ints == std::vector<int64_t>(arg.ints.size(), -1)) {
      out.raw("{\"tensors\":");
      out.integers(arg.ints);
      out.raw("}");
      return;
    }
    out.list(arg.ints, [&](int64_t slot) {
      if (slot < 0)
        out.raw("null");
      else
        writeSlot(out, slot);
    });
    return;
  case Arg::Kind::Int:
    out.integer(arg.intValue);
    return;
  case Arg::Kind::Float:
    out.real(arg.floatValue);
    return;
  case Arg::Kind::Bool:
    out.raw(arg.intValue ? "true" : "false");
    return;
  case Arg::Kind::Ints:
    out.integers(arg.ints);
    return;
  case Arg::Kind::Bools:
    if (arg.ints.empty()) {
      out.raw("{\"bools\":[]}");
      return;
    }
    out.list(arg.ints,
             [&](int64_t value) { out.raw(value ? "true" : "false"); });
    return;
  case Arg::Kind::Type:
    out.raw("{\"dtype\":\"");
    out.raw(toString(arg.dtype));
    out.raw("\"}");
    return;
  case Arg::Kind::Wrapped:
    out.raw("{\"scalar\":");
    out.real(arg.floatValue);
    out.raw("}");
    return;
  case Arg::Kind::Key:
    out.raw("{\"key\":");
    out.integer(arg.intValue);
    if (!arg.axes.empty()) {
      out.raw(",\"axes\":");
      out.list(arg.axes, [&](const std::string &axis) { out.string(axis); });
    }
    out.raw("}");
    return;
  case Arg::Kind::Text:
    out.raw("{\"text\":");
    out.string(arg.text);
    out.raw("}");
    return;
  }
}

void readForm(const PlanNames &, const JsonNode &node, Arg &arg, const Rule &) {
  const nlohmann::json &value = node.value;
  if (value.is_null()) {
    arg.kind = Arg::Kind::None;
  } else if (value.is_boolean()) {
    arg.kind = Arg::Kind::Bool;
    arg.intValue = value.get<bool>();
  } else if (value.is_number_integer()) {
    arg.kind = Arg::Kind::Int;
    arg.intValue = node.integer(INT64_MIN, INT64_MAX);
  } else if (value.is_number()) {
    arg.kind = Arg::Kind::Float;
    arg.floatValue = node.real();
  } else if (value.is_string()) {
    const std::string &text = node.string();
    if (text == "inf" || text == "-inf" || text == "nan") {
      arg.kind = Arg::Kind::Float;
      arg.floatValue = text == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity();
      if (text[0] == '-')
        arg.floatValue = -arg.floatValue;
    } else {
      arg.kind = Arg::Kind::Tensor;
      arg.slot = readSlot(node);
    }
  } else if (value.is_array()) {
    bool tensors = false, bools = false;
    for (const nlohmann::json &item : value) {
      tensors |= item.is_string();
      bools |= item.is_boolean();
    }
    arg.kind = tensors ? Arg::Kind::Tensors
               : bools ? Arg::Kind::Bools
                       : Arg::Kind::Ints;
    node.items([&](const JsonNode &n) {
      if (tensors)
        arg.ints.push_back(n.value.is_null() ? -1 : readSlot(n));
      else if (bools)
        arg.ints.push_back(n.boolean());
      else
        arg.ints.push_back(n.integer(INT64_MIN, INT64_MAX));
    });
  } else {
    JsonFields fields(node);
    bool known = fields.optional("dtype", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Type;
      arg.dtype = readEnum<DType>(n);
    }) || fields.optional("scalar", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Wrapped;
      arg.floatValue = n.real();
    }) || fields.optional("tensors", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Tensors;
      arg.ints = n.integers(-1, -1);
    }) || fields.optional("key", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Key;
      arg.intValue = n.integer(0, INT64_MAX);
      fields.optional("axes", [&](const JsonNode &axes) {
        axes.items(
            [&](const JsonNode &axis) { arg.axes.push_back(axis.string()); });
      });
    }) || fields.optional("text", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Text;
      arg.text = n.string();
    }) || fields.optional("bools", [&](const JsonNode &n) {
      arg.kind = Arg::Kind::Bools;
      if (!n.integers(0, 0).empty())
        n.fail("expected an empty list");
    });
    if (!known)
      node.fail("unknown kind of argument");
    fields.close();
  }
}

Schema schemaOf(const Arg &, const Rule &) {
  const Schema tensor = {{"type", "string"}, {"pattern", "^%[0-9]+$"}};
  const Schema integer = {{"type", "integer"}}, boolean = {{"type", "boolean"}};
  auto list = [](Schema items) {
    return Schema{{"type", "array"}, {"items", std::move(items)}};
  };
  auto object = [](const char *key, Schema value) {
    return Schema{{"type", "object"},
                  {"properties", {{key, std::move(value)}}},
                  {"required", Schema::array({key})},
                  {"additionalProperties", false}};
  };
  Schema key = object("key", {{"type", "integer"}, {"minimum", 0}});
  key["properties"]["axes"] = list({{"type", "string"}});
  key["properties"]["axes"]["description"] =
      "Axes along which each rank draws other numbers; default: none";
  return {
      {"anyOf",
       Schema::array(
           {tensor,
            {{"enum", {"inf", "-inf", "nan"}}},
            {{"type", {"null", "boolean", "number"}}},
            list(integer),
            list(boolean),
            list({{"oneOf", Schema::array({tensor, {{"type", "null"}}})}}),
            object("dtype", dtypeSchema()),
            object("scalar", {{"type", "number"}}),
            key,
            object("text", {{"type", "string"}}),
            object("tensors", list({{"const", -1}})),
            object("bools", {{"type", "array"}, {"maxItems", 0}})})},
      {"description",
       "\"%3\" a tensor, [\"%3\", null] tensors, an int, a float (with a point "
       "or exponent), a bool, lists of ints or bools, null, a dtype, a Python "
       "scalar, the key of a random operator, a text"}};
}

} // namespace accel::plan
