//===- GraphReader.h - Graphs of model.json ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H
#define ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H

#include "frontends/TorchExport/JsonCursor.h"
#include "frontends/TorchExport/Program.h"

#include <set>

namespace accel::torchexport {

/// Reads a graph and those inside it. Throws FormatError.
class GraphReader {
public:
  explicit GraphReader(Program &program) : program(program) {}
  void read(const JsonCursor &json, Graph &graph);
  static TensorMeta tensorMeta(const JsonCursor &json);

private:
  Argument argument(const JsonCursor &json, bool defines);
  Argument reference(const JsonCursor &name, Argument::Kind kind, bool defines);
  Argument symbolic(const JsonCursor &json, Argument::Kind named);
  void list(const JsonCursor &json, Argument &result,
            Argument (GraphReader::*item)(const JsonCursor &, bool),
            bool defines);
  Argument tensor(const JsonCursor &json, bool defines);
  Argument optionalTensor(const JsonCursor &json, bool defines);
  Argument integer(const JsonCursor &json, bool);
  Argument number(const JsonCursor &json, bool);
  Argument boolean(const JsonCursor &json, bool);
  Argument symInt(const JsonCursor &json, bool);
  void node(const JsonCursor &json, Node &node);
  int stackOf(const JsonCursor &metadata);

  Program &program;
  Graph *graph = nullptr;                   // being read
  std::set<std::string> *defined = nullptr; // names with a value by now
  std::map<std::string, int> stackIndex;
  int depth = 0;
};

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_GRAPHREADER_H
