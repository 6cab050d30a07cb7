//===- PlanReader.h - The reader of plan.json -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PLANREADER_H
#define ACCEL_RUNTIME_PLAN_PLANREADER_H

#include "runtime/plan/JsonReader.h"
#include "runtime/plan/Plan.h"

#include <unordered_map>

namespace accel::plan {

constexpr int64_t maxInt = std::numeric_limits<int>::max();
/// Elements or bytes of one tensor: far above any, far below overflow.
constexpr int64_t maxSize = int64_t(1) << 45;

/// Fills a plan from a document; throws JsonError.
class PlanReader {
public:
  explicit PlanReader(Plan &plan) : plan(plan) {}
  void read(const nlohmann::json &document);

private:
  using Index = std::unordered_map<std::string, int>;

  DType dtype(const Node &node) const;
  std::vector<int64_t> shape(const Node &node) const {
    return node.integers(0, maxSize);
  }
  void type(const Node &node, DType &dtype, std::vector<int64_t> &shape,
            int *base) const;
  int lookup(const Index &index, const Node &node, const char *what) const;
  template <typename T, typename Each>
  void named(const Node &node, std::vector<T> &into, Index *index, Each each);

  void job(const Node &node);
  void data(const Node &node, Data &data);
  void mesh(const Node &node);
  void rankClasses(const Node &node);
  std::string parameter(const Node &node, Parameter &parameter);
  std::string unit(const Node &node, Unit &unit);
  std::string function(const Node &node, Function &function);
  void instruction(const Node &node, Instruction &instruction);
  Arg arg(const Node &node) const;
  std::string program(const Node &node, Program &program);
  void step(const Node &node, Step &step);
  void predicted(const Node &node);
  void decision(const Node &node, Decision &decision);
  void unitLayouts();

  Plan &plan;
  Index units, parameters, functions, programs;
};

template <typename T, typename Each>
void PlanReader::named(const Node &node, std::vector<T> &into, Index *index,
                       Each each) {
  node.items([&](const Node &item) {
    T &read = into.emplace_back();
    std::string name = each(item, read);
    if (index && !index->emplace(name, into.size() - 1).second)
      item.fail("the name '" + name + "' is used twice");
  });
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PLANREADER_H
