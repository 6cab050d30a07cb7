//===- Forms.h - What plan.json spells in a way of its own ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A form has three functions: writeForm, readForm and schemaOf. Some are types
// of the plan, others name parts of a struct that are spelled together:
//
//   order     ["F0", "F1", "B0"]: forwards and backwards of micro-batches
//   slot      ["f32", [2, 512]] or, a view of slot 3, ["f32", [1024], 3]
//   params    [{"unit": ..., "fqn": [...]}], neighbours of one unit together
//   arg       "%3" a tensor, ["%3", "%4"] tensors, 1 an int, 1.0 a float,
//             "inf", "nan", true, [1, 2] ints, [true] bools, null,
//             {"dtype": "f32"}, {"scalar": 2.0} a Python scalar,
//             {"key": 1}, {"text": "tanh"}; {"tensors": []} and {"bools": []}
//             where nothing else tells the type
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_FIELDS_FORMS_H
#define ACCEL_RUNTIME_PLAN_FIELDS_FORMS_H

#include "runtime/plan/Fields/Enums.h"
#include "runtime/plan/Fields/Rule.h"
#include "runtime/plan/JsonReader.h"
#include "runtime/plan/JsonWriter.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <unordered_map>

namespace accel::plan {

/// The text of a plan as it is written.
struct PlanText : JsonWriter {
  explicit PlanText(const Plan &plan) : plan(plan) {}
  const Plan &plan;
};

/// A plan as it is read, with what has been named in it.
struct PlanNames {
  explicit PlanNames(const Plan &plan) : plan(plan) {}
  /// False if the name is taken.
  bool add(Named kind, const std::string &name, size_t index) {
    return indices[static_cast<int>(kind)].emplace(name, index).second;
  }
  int lookup(Named kind, const JsonNode &node) const;

  const Plan &plan;

private:
  std::unordered_map<std::string, int> indices[6];
};

/// Fails with what was expected, if `name` is none of `names`.
template <typename Names>
void expectName(const JsonNode &node, const char *what, const Names &names) {
  std::string all;
  size_t left = std::size(names);
  for (const char *name : names) {
    if (node.string() == name)
      return;
    if (*name)
      all += std::string(all.empty() ? "" : left > 1 ? ", " : " or ") + name;
    --left;
  }
  node.fail(std::string("unknown ") + what + " '" + node.string() +
            "'; expected " + all);
}
template <typename E> E readEnum(const JsonNode &node) {
  if (std::optional<E> found = enumNamed<E>(node.string()))
    return *found;
  expectName(node, EnumOf<E>::what, enumNames<E>());
  return {};
}

/// JSON Schema, in the order in which people read it.
using Schema = nlohmann::ordered_json;
inline Schema dtypeSchema() { return {{"$ref", "#/$defs/dtype"}}; }

/// [dtype, shape].
template <typename D, typename S> struct TensorType {
  D &dtype;
  S &shape;
};
template <typename D, typename S> TensorType(D &, S &) -> TensorType<D, S>;

/// [slot, name] of each.
template <typename I, typename S> struct NamedSlots {
  I &slots;
  S &names;
};
template <typename I, typename S> NamedSlots(I &, S &) -> NamedSlots<I, S>;

/// An index, as the name of what it is the index of.
template <typename I> struct Reference {
  Named kind;
  I &index;
};
template <typename I> Reference(Named, I &) -> Reference<I>;

/// Which of so many inputs are consumed, as a list of their positions.
template <typename B> struct Consumed {
  B &flags;
  size_t inputs;
};
template <typename B> Consumed(B &, size_t) -> Consumed<B>;

/// "shard" or "replicate" by axis. It follows from the parameter's unit, and
/// says it to people and to other programs.
struct Placements {
  const Parameter &parameter;
};

/// A dtype that this version has no other choice for.
struct SameDType {
  const DType &other;
  const char *name, *otherName;
};

/// All ranks run the same programs, or those of a stage theirs. It follows from
/// the programs, and says it to people and to other programs.
struct RankClasses {
  const Plan &plan;
};

void writeForm(PlanText &out, const Arg &arg);
void readForm(const PlanNames &names, const JsonNode &node, Arg &arg,
              const Rule &rule);
Schema schemaOf(const Arg &arg, const Rule &rule);

void writeForm(PlanText &out, const std::vector<Slot> &slots);
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<Slot> &slots, const Rule &rule);
Schema schemaOf(const std::vector<Slot> &slots, const Rule &rule);

void writeForm(PlanText &out, const Unit::GroupRange &range);
void readForm(const PlanNames &names, const JsonNode &node,
              Unit::GroupRange &range, const Rule &rule);
Schema schemaOf(const Unit::GroupRange &range, const Rule &rule);

void writeForm(PlanText &out, const Initializer &init);
void readForm(const PlanNames &names, const JsonNode &node, Initializer &init,
              const Rule &rule);
Schema schemaOf(const Initializer &init, const Rule &rule);

void writeForm(PlanText &out, const std::vector<StageAction> &order);
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<StageAction> &order, const Rule &rule);
Schema schemaOf(const std::vector<StageAction> &order, const Rule &rule);

void writeForm(PlanText &out, const std::vector<ParamRef> &params);
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<ParamRef> &params, const Rule &rule);
Schema schemaOf(const std::vector<ParamRef> &params, const Rule &rule);

void writeForm(PlanText &out, const std::vector<GradRef> &gradients);
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<GradRef> &gradients, const Rule &rule);
Schema schemaOf(const std::vector<GradRef> &gradients, const Rule &rule);

void writeForm(PlanText &out, const std::vector<InputLimit> &limits);
void readForm(const PlanNames &names, const JsonNode &node,
              std::vector<InputLimit> &limits, const Rule &rule);
Schema schemaOf(const std::vector<InputLimit> &limits, const Rule &rule);

void writeForm(PlanText &out, const std::map<std::string, std::string> &map);
void readForm(const PlanNames &names, const JsonNode &node,
              std::map<std::string, std::string> &map, const Rule &rule);
Schema schemaOf(const std::map<std::string, std::string> &map,
                const Rule &rule);

void writeForm(PlanText &out,
               const TensorType<const DType, const std::vector<int64_t>> &type);
void readForm(const PlanNames &names, const JsonNode &node,
              TensorType<DType, std::vector<int64_t>> &type, const Rule &rule);
Schema schemaOf(const TensorType<const DType, const std::vector<int64_t>> &type,
                const Rule &rule);

using WrittenSlots =
    NamedSlots<const std::vector<int>, const std::vector<std::string>>;
using ReadSlots = NamedSlots<std::vector<int>, std::vector<std::string>>;
void writeForm(PlanText &out, const WrittenSlots &slots);
void readForm(const PlanNames &names, const JsonNode &node, ReadSlots &slots,
              const Rule &rule);
Schema schemaOf(const WrittenSlots &slots, const Rule &rule);

void writeForm(PlanText &out, const Reference<const int> &reference);
void readForm(const PlanNames &names, const JsonNode &node,
              Reference<int> &reference, const Rule &rule);
Schema schemaOf(const Reference<const int> &reference, const Rule &rule);

void writeForm(PlanText &out,
               const Consumed<const std::vector<bool>> &consumed);
void readForm(const PlanNames &names, const JsonNode &node,
              Consumed<std::vector<bool>> &consumed, const Rule &rule);
Schema schemaOf(const Consumed<const std::vector<bool>> &consumed,
                const Rule &rule);

void writeForm(PlanText &out, const Placements &placements);
void readForm(const PlanNames &names, const JsonNode &node,
              const Placements &placements, const Rule &rule);
Schema schemaOf(const Placements &placements, const Rule &rule);

void writeForm(PlanText &out, const SameDType &same);
void readForm(const PlanNames &names, const JsonNode &node,
              const SameDType &same, const Rule &rule);
Schema schemaOf(const SameDType &same, const Rule &rule);

void writeForm(PlanText &out, const RankClasses &classes);
void readForm(const PlanNames &names, const JsonNode &node,
              const RankClasses &classes, const Rule &rule);
Schema schemaOf(const RankClasses &classes, const Rule &rule);

template <typename T>
concept WrittenForm =
    requires(PlanText &out, const T &value) { writeForm(out, value); };
template <typename T>
concept ReadForm =
    requires(const PlanNames &names, const JsonNode &node, T &value,
             Rule rule) { readForm(names, node, value, rule); };

/// A struct with a list of fields.
template <typename V, typename T>
concept Listed = requires(V &v, Of<V, T> &value) { fields(v, value); };

//===----------------------------------------------------------------------===//
// Standard values of fields that can be left out
//===----------------------------------------------------------------------===//

template <typename T> bool isEmpty(const T &value) { return value == T(); }
inline bool isEmpty(const Initializer &init) {
  return init.kind == Initializer::Kind::Zeros;
}
template <typename B> bool isEmpty(const Consumed<B> &consumed) {
  for (bool flag : consumed.flags)
    if (flag)
      return false;
  return true;
}
template <typename T> void clear(T &value) { value = T(); }
inline void clear(Consumed<std::vector<bool>> &consumed) {
  consumed.flags.assign(consumed.inputs, false);
}

template <typename T, typename D>
bool isStandard(const T &value, const D &standard) {
  return value == standard;
}
template <typename I>
bool isStandard(const Reference<I> &reference, int standard) {
  return reference.index == standard;
}
template <typename T, typename D>
void setStandard(T &value, const D &standard) {
  value = standard;
}
inline void setStandard(Reference<int> &reference, int standard) {
  reference.index = standard;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_FIELDS_FORMS_H
