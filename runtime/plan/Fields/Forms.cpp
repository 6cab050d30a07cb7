//===- Forms.cpp - What plan.json spells in a way of its own --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Fields/Forms.h"

#include <algorithm>
#include <charconv>

namespace accel::plan {

using nlohmann::json;

namespace {
Schema arrayOf(Schema items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}
Schema integerFrom(int64_t low) {
  return {{"type", "integer"}, {"minimum", low}};
}
Schema exactly(size_t count, Schema list) {
  list["minItems"] = count;
  list["maxItems"] = count;
  return list;
}
Schema closedObject(Schema properties, Schema required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}
/// A list of exactly these items; of the first `least` of them at least.
Schema tupleOf(Schema items, size_t least) {
  return {{"type", "array"},
          {"prefixItems", std::move(items)},
          {"items", false},
          {"minItems", least}};
}
Schema shapeSchema() {
  return arrayOf({{"type", "integer"}, {"minimum", 0}, {"maximum", maxSize}});
}

void expectObject(const JsonNode &node) {
  if (!node.value.is_object())
    node.fail("expected an object, not " + node.shown());
}
} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

int PlanNames::lookup(Named kind, const JsonNode &node) const {
  const auto &index = indices[static_cast<int>(kind)];
  auto found = index.find(node.string());
  if (found != index.end())
    return found->second;
  static const char *const what[] = {"",          "axis",     "unit",
                                     "parameter", "function", "program"};
  node.fail(std::string("there is no ") + what[static_cast<int>(kind)] + " '" +
            node.string() + "'");
}

void writeForm(PlanText &out, const Reference<const int> &reference) {
  const int index = reference.index;
  if (index < 0) {
    out.raw("null");
    return;
  }
  switch (reference.kind) {
  case Named::Unit:
    return out.string(out.plan.units.at(index).name);
  case Named::Parameter:
    return out.string(out.plan.parameters.at(index).fqn);
  case Named::Function:
    return out.string(out.plan.functions.at(index).name);
  case Named::Program:
    return out.string(out.plan.programs.at(index).name);
  case Named::Axis:
  case Named::Nothing:
    break;
  }
}

void readForm(const PlanNames &names, const JsonNode &node,
              Reference<int> &reference, const Rule &rule) {
  reference.index = rule.null && node.value.is_null()
                        ? -1
                        : names.lookup(reference.kind, node);
}

Schema schemaOf(const Reference<const int> &, const Rule &rule) {
  if (rule.null)
    return {{"type", {"string", "null"}}};
  return {{"type", "string"}};
}

namespace {
/// Neighbours of one unit, and of one way to write, share an item.
void writeRefs(PlanText &out, const std::vector<GradRef> &refs) {
  out.raw("[");
  for (size_t i = 0; i < refs.size();) {
    const GradRef head = refs[i];
    bool first = true;
    out.raw(i ? ",{" : "{");
    out.field(first, "unit", out.plan.units.at(head.unit).name);
    out.key(first, "fqn");
    out.raw("[");
    for (bool more = false; i < refs.size(); ++i, more = true) {
      if (refs[i].unit != head.unit || refs[i].accumulate != head.accumulate)
        break;
      out.raw(more ? "," : "");
      out.string(out.plan.parameters.at(refs[i].parameter).fqn);
    }
    out.raw("]");
    if (head.accumulate)
      out.flag(first, "accumulate", true);
    out.raw("}");
  }
  out.raw("]");
}

void readRefs(const PlanNames &names, const JsonNode &node,
              std::vector<GradRef> &refs) {
  node.items([&](const JsonNode &item) {
    JsonFields ref(item);
    const int unit = names.lookup(Named::Unit, ref["unit"]);
    bool accumulate = false;
    ref.optional("accumulate",
                 [&](const JsonNode &n) { accumulate = n.boolean(); });
    ref["fqn"].items([&](const JsonNode &name) {
      refs.push_back({unit, names.lookup(Named::Parameter, name), accumulate});
    });
    ref.close();
  });
}

Schema refsSchema(bool accumulates) {
  Schema properties = {
      {"unit", {{"type", "string"}}},
      {"fqn",
       {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}}};
  if (accumulates)
    properties["accumulate"] = {{"type", "boolean"}, {"default", false}};
  return arrayOf(closedObject(properties, {"unit", "fqn"}));
}
} // namespace

void writeForm(PlanText &out, const std::vector<ParamRef> &params) {
  std::vector<GradRef> refs;
  for (const ParamRef &param : params)
    refs.push_back({param.unit, param.parameter, false});
  writeRefs(out, refs);
}
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<ParamRef> &params, const Rule &) {
  std::vector<GradRef> refs;
  readRefs(names, node, refs);
  for (const GradRef &ref : refs) {
    if (ref.accumulate)
      node.fail("a parameter that is read cannot accumulate");
    params.push_back({ref.unit, ref.parameter});
  }
}
Schema schemaOf(const std::vector<ParamRef> &, const Rule &) {
  return refsSchema(false);
}

void writeForm(PlanText &out, const std::vector<GradRef> &gradients) {
  writeRefs(out, gradients);
}
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<GradRef> &gradients, const Rule &) {
  readRefs(names, node, gradients);
}
Schema schemaOf(const std::vector<GradRef> &, const Rule &) {
  return refsSchema(true);
}

//===----------------------------------------------------------------------===//
// Objects with any keys
//===----------------------------------------------------------------------===//

void writeForm(PlanText &out, const std::vector<InputLimit> &limits) {
  bool first = true;
  out.raw("{");
  for (const InputLimit &input : limits)
    out.field(first, input.name, input.limit);
  out.raw("}");
}
void readForm(const PlanNames &, const JsonNode &node,
              std::vector<InputLimit> &limits, const Rule &rule) {
  expectObject(node);
  for (const auto &[name, limit] : node.value.items())
    limits.push_back(
        {name,
         JsonNode(limit, &node, name.c_str()).integer(rule.low, rule.high)});
}
Schema schemaOf(const std::vector<InputLimit> &, const Rule &rule) {
  return {{"type", "object"}, {"additionalProperties", integerFrom(rule.low)}};
}

void writeForm(PlanText &out, const std::map<std::string, std::string> &map) {
  bool first = true;
  out.raw("{");
  for (const auto &[key, value] : map) {
    out.raw(first ? "" : ",");
    first = false;
    out.string(key);
    out.raw(":");
    out.string(value);
  }
  out.raw("}");
}
void readForm(const PlanNames &, const JsonNode &node,
              std::map<std::string, std::string> &map, const Rule &) {
  expectObject(node);
  for (const auto &[key, value] : node.value.items())
    map[key] = JsonNode(value, &node, key.c_str()).string();
}
Schema schemaOf(const std::map<std::string, std::string> &, const Rule &) {
  return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
}

//===----------------------------------------------------------------------===//
// Types and slots
//===----------------------------------------------------------------------===//

namespace {
void writeType(PlanText &out, DType dtype, const std::vector<int64_t> &shape,
               int base = -1) {
  out.raw("[\"");
  out.raw(toString(dtype));
  out.raw("\",");
  out.integers(shape);
  if (base >= 0) {
    out.raw(",");
    out.integer(base);
  }
  out.raw("]");
}

/// With a slot number behind it, if `base` is given, for a view.
void readType(const JsonNode &node, DType &dtype, std::vector<int64_t> &shape,
              int *base) {
  size_t at = 0;
  node.items([&](const JsonNode &item) {
    if (at == 0)
      dtype = readEnum<DType>(item);
    else if (at == 1)
      shape = item.integers(0, maxSize);
    else if (at == 2 && base)
      *base = item.integer(0, maxInt);
    else
      item.fail("unexpected item");
    ++at;
  });
  if (at < 2)
    node.fail("expected [dtype, shape]");
}
} // namespace

void writeForm(PlanText &out, const std::vector<Slot> &slots) {
  out.raw("[");
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot &slot = slots[i];
    out.raw(i ? "," : "");
    writeType(out, slot.dtype, slot.shape,
              slot.base == static_cast<int>(i) ? -1 : slot.base);
  }
  out.raw("]");
}
void readForm(const PlanNames &, const JsonNode &node, std::vector<Slot> &slots,
              const Rule &) {
  node.items([&](const JsonNode &item) {
    Slot &slot = slots.emplace_back();
    slot.base = static_cast<int>(slots.size()) - 1;
    readType(item, slot.dtype, slot.shape, &slot.base);
  });
}
Schema schemaOf(const std::vector<Slot> &, const Rule &) {
  Schema slot = tupleOf({dtypeSchema(), shapeSchema(), integerFrom(0)}, 2);
  slot["description"] =
      "[dtype, shape], and the slot that a view shares its storage with";
  return arrayOf(slot);
}

void writeForm(
    PlanText &out,
    const TensorType<const DType, const std::vector<int64_t>> &type) {
  writeType(out, type.dtype, type.shape);
}
void readForm(const PlanNames &, const JsonNode &node,
              TensorType<DType, std::vector<int64_t>> &type, const Rule &) {
  readType(node, type.dtype, type.shape, nullptr);
}
Schema schemaOf(const TensorType<const DType, const std::vector<int64_t>> &,
                const Rule &) {
  return tupleOf({dtypeSchema(), shapeSchema()}, 2);
}

void writeForm(PlanText &out, const WrittenSlots &slots) {
  out.raw("[");
  for (size_t i = 0; i < slots.slots.size(); ++i) {
    out.raw(i ? ",[" : "[");
    out.integer(slots.slots[i]);
    out.raw(",");
    out.string(slots.names.at(i));
    out.raw("]");
  }
  out.raw("]");
}
void readForm(const PlanNames &, const JsonNode &node, ReadSlots &slots,
              const Rule &) {
  node.items([&](const JsonNode &pair) {
    size_t at = 0;
    pair.items([&](const JsonNode &item) {
      if (at == 0)
        slots.slots.push_back(item.integer(0, maxInt));
      else if (at == 1)
        slots.names.push_back(item.string());
      ++at;
    });
    if (at != 2)
      pair.fail("expected [slot, name]");
  });
}
Schema schemaOf(const WrittenSlots &, const Rule &) {
  return arrayOf(tupleOf({integerFrom(0), {{"type", "string"}}}, 2));
}

void writeForm(PlanText &out,
               const Consumed<const std::vector<bool>> &consumed) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < consumed.flags.size(); ++i)
    if (consumed.flags[i])
      positions.push_back(i);
  out.integers(positions);
}
void readForm(const PlanNames &, const JsonNode &node,
              Consumed<std::vector<bool>> &consumed, const Rule &) {
  clear(consumed);
  node.items([&](const JsonNode &item) {
    consumed.flags[item.integer(0, int64_t(consumed.inputs) - 1)] = true;
  });
}
Schema schemaOf(const Consumed<const std::vector<bool>> &, const Rule &) {
  return arrayOf(integerFrom(0));
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// By Part.
static constexpr std::string_view partLetters = "FBSUW";

void writeForm(PlanText &out, const std::vector<StageAction> &order) {
  out.list(order, [&](const StageAction &action) {
    out.string(partLetters[static_cast<size_t>(action.part)] +
               std::to_string(action.microBatch) +
               (action.chunk > 0 ? "." + std::to_string(action.chunk) : ""));
  });
}
void readForm(const PlanNames &, const JsonNode &node,
              std::vector<StageAction> &order, const Rule &) {
  order.clear();
  node.items([&](const JsonNode &item) {
    const std::string &text = item.string();
    StageAction &action = order.emplace_back();
    const char *end = text.data() + text.size();
    const size_t part =
        text.empty() ? partLetters.npos : partLetters.find(text[0]);
    auto [at, wrong] = std::from_chars(text.data() + 1, end, action.microBatch);
    if (wrong == std::errc() && at != end && *at == '.') {
      const auto chunk = std::from_chars(at + 1, end, action.chunk);
      at = chunk.ptr;
      wrong = chunk.ec;
    }
    if (text.size() < 2 || part == partLetters.npos || wrong != std::errc() ||
        at != end || action.microBatch < 0 || action.chunk < 0)
      item.fail(
          "expected F, B, S, U or W and the number of a micro-batch, and of "
          "a further chunk its number: F2, B2.1");
    action.part = static_cast<Part>(part);
  });
}
Schema schemaOf(const std::vector<StageAction> &, const Rule &) {
  return arrayOf(
      {{"type", "string"}, {"pattern", "^[FBSUW][0-9]+(\\.[0-9]+)?$"}});
}

//===----------------------------------------------------------------------===//
// Parameters and units
//===----------------------------------------------------------------------===//

void writeForm(PlanText &out, const Unit::GroupRange &range) {
  out.integers(std::vector<int64_t>{range.group, range.begin, range.end});
}
void readForm(const PlanNames &, const JsonNode &node, Unit::GroupRange &range,
              const Rule &) {
  const std::vector<int64_t> read = node.integers(0, maxSize);
  if (read.size() != 3 || read[0] > maxInt)
    node.fail("expected [group, begin, end]");
  range = {static_cast<int>(read[0]), read[1], read[2]};
}
Schema schemaOf(const Unit::GroupRange &, const Rule &) {
  return exactly(3, arrayOf(integerFrom(0)));
}

namespace {
const char *placementOn(const Parameter &parameter, const Unit &unit,
                        const Axis &axis) {
  if (std::any_of(
          parameter.split.begin(), parameter.split.end(),
          [&](const AxisSplit &split) { return split.axis == axis.name; }))
    return "split";
  return std::find(unit.shardAxes.begin(), unit.shardAxes.end(), axis.name) !=
                 unit.shardAxes.end()
             ? "shard"
         : axis.name == pipelineAxis ? "stage"
                                     : "replicate";
}
} // namespace

void writeForm(PlanText &out, const Placements &placements) {
  const Unit &unit = out.plan.units.at(placements.parameter.unit);
  bool first = true;
  out.raw("{");
  for (const Axis &axis : out.plan.axes)
    out.field(first, axis.name,
              std::string_view(placementOn(placements.parameter, unit, axis)));
  out.raw("}");
}
void readForm(const PlanNames &names, const JsonNode &node,
              const Placements &placements, const Rule &) {
  const Unit &unit = names.plan.units[placements.parameter.unit];
  JsonFields axes(node);
  for (const Axis &axis : names.plan.axes) {
    JsonNode placement = axes[axis.name.c_str()];
    const char *expected = placementOn(placements.parameter, unit, axis);
    if (placement.string() != expected)
      placement.fail("'" + placement.string() + "' does not fit its unit ('" +
                     expected + "')");
  }
  axes.close();
}
Schema schemaOf(const Placements &, const Rule &) {
  return {{"type", "object"},
          {"additionalProperties",
           {{"enum", {"shard", "replicate", "split", "stage"}}}}};
}

void writeForm(PlanText &out, const SameDType &same) {
  out.string(toString(same.other));
}
void readForm(const PlanNames &, const JsonNode &node, const SameDType &same,
              const Rule &) {
  if (readEnum<DType>(node) != same.other)
    node.fail(std::string("a ") + same.name + " dtype other than the " +
              same.otherName + " dtype is not known to this version");
}
Schema schemaOf(const SameDType &, const Rule &) { return dtypeSchema(); }

namespace {
/// From, up to (not included): the outermost axis is the pipeline's, so that
/// the ranks of a stage are neighbours.
std::vector<int64_t> ranksOf(const Plan &plan, int stage) {
  const int64_t each = plan.ranks() / plan.numStages();
  return {stage * each, (stage + 1) * each};
}
std::vector<std::string> programsOf(const Plan &plan, int stage) {
  std::vector<std::string> names;
  for (const Program &program : plan.programs)
    if (program.stage == stage)
      names.push_back(program.name);
  return names;
}
} // namespace

void writeForm(PlanText &out, const RankClasses &classes) {
  const Plan &plan = classes.plan;
  out.raw("[");
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    const std::vector<int64_t> ranks = ranksOf(plan, stage);
    out.raw(stage ? ", {\"ranks\": [" : "{\"ranks\": [");
    out.integer(ranks[0]);
    out.raw(", ");
    out.integer(ranks[1]);
    out.raw("], \"programs\": ");
    out.list(programsOf(plan, stage),
             [&](const std::string &name) { out.string(name); });
    out.raw("}");
  }
  out.raw("]");
}
void readForm(const PlanNames &, const JsonNode &node,
              const RankClasses &classes, const Rule &) {
  const Plan &plan = classes.plan;
  int stage = 0;
  node.items([&](const JsonNode &n) {
    JsonFields fields(n);
    JsonNode ranks = fields["ranks"];
    if (stage >= plan.numStages() ||
        ranks.integers(0, maxInt) != ranksOf(plan, stage))
      ranks.fail(plan.stages.empty()
                     ? "expected one class of all " +
                           std::to_string(plan.ranks()) + " ranks"
                     : "expected a class of equally many ranks for each of " +
                           std::to_string(plan.numStages()) + " stages");
    JsonNode names = fields["programs"];
    if (names.strings() != programsOf(plan, stage))
      names.fail("expected the names of all programs in their order");
    fields.close();
    ++stage;
  });
  if (stage != plan.numStages())
    node.fail(plan.stages.empty() ? "expected one class of ranks"
                                  : "expected a class of ranks for each stage");
}
Schema schemaOf(const RankClasses &, const Rule &) {
  Schema ranks = exactly(2, arrayOf(integerFrom(0)));
  ranks["description"] = "From, up to (not included)";
  Schema classes = arrayOf(closedObject(
      {{"ranks", ranks}, {"programs", arrayOf({{"type", "string"}})}},
      {"ranks", "programs"}));
  classes["minItems"] = 1;
  return classes;
}

} // namespace accel::plan
