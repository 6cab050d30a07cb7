//===- GraphReader.h - Graphs of model.json ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H
#define ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H

#include "frontends/TorchExport/Program.h"
#include "runtime/plan/JsonReader.h"

#include <set>

namespace accel::torchexport {

using plan::JsonNode;

/// Reads a graph and those inside it. Throws JsonError.
class GraphReader {
public:
  explicit GraphReader(Program &program) : program(program) {}
  void read(const JsonNode &json, Graph &graph);
  static TensorMeta tensorMeta(const JsonNode &json);

private:
  Argument argument(const JsonNode &json, bool defines);
  Argument reference(const JsonNode &name, Argument::Kind kind, bool defines);
  Argument symbolic(const JsonNode &json, Argument::Kind named);
  void list(const JsonNode &json, Argument &result,
            Argument (GraphReader::*item)(const JsonNode &, bool),
            bool defines);
  Argument tensor(const JsonNode &json, bool defines);
  Argument optionalTensor(const JsonNode &json, bool defines);
  Argument integer(const JsonNode &json, bool);
  Argument number(const JsonNode &json, bool);
  Argument boolean(const JsonNode &json, bool);
  Argument symInt(const JsonNode &json, bool);
  void node(const JsonNode &json, Node &node);
  int stackOf(const JsonNode &metadata);

  Program &program;
  Graph *graph = nullptr;                   // being read
  std::set<std::string> *defined = nullptr; // names with a value by now
  std::map<std::string, int> stackIndex;
  int depth = 0;
};

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H
