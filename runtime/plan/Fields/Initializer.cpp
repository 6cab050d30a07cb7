//===- Initializer.cpp - How plan.json spells first values ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Forms.h"

namespace accel::plan {

using Kind = Initializer::Kind;

void writeForm(PlanText &out, const Initializer &init) {
  if (init.kind == Kind::Ones && init.zeroRow < 0) {
    out.string("ones");
    return;
  }
  bool first = true;
  out.raw("{");
  switch (init.kind) {
  case Kind::Zeros: // left out
    break;
  case Kind::Ones:
    out.field(first, "constant", 1.0);
    break;
  case Kind::Normal:
    out.field(first, "normal", init.value);
    break;
  case Kind::TruncatedNormal:
    out.field(first, "truncated_normal", init.value);
    break;
  case Kind::Uniform:
    out.flag(first, "uniform", true);
    break;
  case Kind::Constant:
    out.field(first, "constant", init.value);
    break;
  case Kind::Sinusoids:
    out.field(first, "sinusoids", init.value);
    break;
  }
  if (init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform) {
    out.field(first, "low", init.low);
    out.field(first, "high", init.high);
  }
  if (init.zeroRow >= 0)
    out.field(first, "zero_row", init.zeroRow);
  out.raw("}");
}

void readForm(const PlanNames &, const JsonNode &node, Initializer &init,
              const Rule &) {
  if (node.value.is_string()) {
    if (node.string() != "ones")
      node.fail("unknown initial value '" + node.string() + "'");
    init.kind = Kind::Ones;
    return;
  }
  JsonFields fields(node);
  auto number = [&](const char *name, double &into) {
    return fields.optional(name, [&](const JsonNode &n) { into = n.real(); });
  };
  int kinds = 0;
  for (auto [name, kind] : {std::pair("normal", Kind::Normal),
                            {"truncated_normal", Kind::TruncatedNormal},
                            {"constant", Kind::Constant},
                            {"sinusoids", Kind::Sinusoids}})
    if (number(name, init.value)) {
      init.kind = kind;
      ++kinds;
    }
  fields.optional("uniform", [&](const JsonNode &n) {
    if (!n.boolean())
      n.fail("expected true");
    init.kind = Kind::Uniform;
    ++kinds;
  });
  if (kinds != 1)
    node.fail("expected one of normal, truncated_normal, uniform, constant and "
              "sinusoids");
  const bool low = number("low", init.low), high = number("high", init.high);
  const bool ranged =
      init.kind == Kind::TruncatedNormal || init.kind == Kind::Uniform;
  if (low != ranged || high != ranged)
    node.fail(ranged ? "expected low and high" : "expected no low or high");
  fields.optional("zero_row", [&](const JsonNode &n) {
    init.zeroRow = n.integer(0, maxSize);
  });
  fields.close();
}

Schema schemaOf(const Initializer &, const Rule &) {
  auto number = [](const char *doc) {
    Schema schema = {{"type", "number"}};
    if (doc)
      schema["description"] = doc;
    return schema;
  };
  auto required = [](std::vector<const char *> keys) {
    return Schema{{"required", keys}};
  };
  Schema object = {
      {"type", "object"},
      {"properties",
       {{"normal", number("Standard deviation")},
        {"truncated_normal",
         number("Standard deviation; values are drawn again until they are in "
                "[low, high]")},
        {"uniform", {{"const", true}, {"description", "In [low, high)"}}},
        {"constant", number(nullptr)},
        {"sinusoids", number("Whisper's table of positions; the longest "
                             "wavelength over 2 pi")},
        {"low", number(nullptr)},
        {"high", number(nullptr)},
        {"zero_row",
         {{"type", "integer"},
          {"minimum", 0},
          {"maximum", maxSize},
          {"description",
           "This row is zero all the same: an embedding's padding"}}}}},
      {"oneOf",
       Schema::array({required({"normal"}),
                      required({"truncated_normal", "low", "high"}),
                      required({"uniform", "low", "high"}),
                      required({"constant"}), required({"sinusoids"})})},
      {"additionalProperties", false}};
  return {{"oneOf", Schema::array({{{"const", "ones"}}, object})}};
}

} // namespace accel::plan
