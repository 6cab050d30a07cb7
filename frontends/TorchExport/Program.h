//===- Program.h - What a .pt2 file says ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch.export's serialised program (torch/_export/serde/schema.py, schema
// version 8), checked as far as it can be without knowing operators: every
// union has one known member, every name that is read is defined before, sizes
// and dtypes are ones that a tensor can have.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_PROGRAM_H
#define ACCEL_FRONTENDS_TORCHEXPORT_PROGRAM_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace accel::torchexport {

class Archive;

/// A size: a number, or an expression over symbols ("2*s0").
struct Size {
  int64_t value = 0;
  std::string expression; // empty: a number
  bool symbolic() const { return !expression.empty(); }
};

/// The values that a symbol may have (range_constraints).
struct Bound {
  std::optional<int64_t> least, most;
};

struct TensorMeta {
  plan::DType dtype = plan::DType::F32;
  std::vector<Size> sizes, strides;
  bool requiresGrad = false;
  bool meta = false; // on the meta device: it has no values
};

struct Graph;

/// One argument of a node, or a place where a node leaves a result.
struct Argument {
  enum class Kind {
    None,
    Tensor, // text: its name
    List,   // items
    Int,
    Float,
    Bool,
    String,
    SymInt, // text: the name of a symbolic integer
    SymFloat,
    SymBool,
    ScalarType, // integer: ScalarType's number
    MemoryFormat,
    Layout,
    Device, // text: its type
    Graph,
    Other, // text: the union's member, such as as_custom_obj
  } kind = Kind::None;
  std::string text;
  int64_t integer = 0; // Int, Bool, ScalarType, MemoryFormat, Layout
  double number = 0;   // Float
  std::vector<Argument> items;
  std::shared_ptr<Graph> graph;
};

struct NamedArgument {
  std::string name;
  bool keyword = false;
  Argument value;
};

/// One module that a node was called in: the key tells calls apart ("@1").
struct ModuleCall {
  std::string key, fqn, className;
};

struct Node {
  std::string target; // "torch.ops.aten.add.Tensor"
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  int stack = 0;     // Program::stacks
  std::string place; // "graph_module.graph.nodes[12]"
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::unordered_map<std::string, TensorMeta> tensors;
  std::unordered_map<std::string, Size> integers;
};

/// What an input of the graph stands for.
struct InputSpec {
  enum class Kind {
    User,
    Parameter,
    Buffer,
    Constant,
    Value,
    Other
  } kind = Kind::User;
  std::string argument; // tensor name; empty for a Value
  std::string fqn;      // parameter, buffer, constant
  bool persistent = true;
};

struct OutputSpec {
  enum class Kind { User, Loss, BufferMutation, Other } kind = Kind::User;
  Argument argument;
  std::string fqn;    // of a mutated buffer
  std::string member; // as the file spells the kind
};

/// Where the values of a parameter, buffer or constant are.
struct Payload {
  std::string entry; // "data/weights/weight_0"
  bool pickled = false;
  TensorMeta meta;
  /// The elements, of a constant of at most maxConstant integers.
  std::vector<int64_t> values;
  static constexpr size_t maxConstant = 64;
};

/// What tools/export-model adds in extra/accel-opt.json.
struct ExportNotes {
  std::vector<std::vector<std::string>> ties; // FQNs of one tensor each
  std::map<std::string, plan::Initializer> initial;
  std::string base, inputEmbedding, outputEmbedding;
  std::vector<std::string> noSplit;
  std::map<std::string, std::string> classes; // of modules that compute nothing
  std::map<std::string, std::vector<std::string>> stored; // in checkpoints
  int64_t maxPositions = 0, vocabulary = 0;
};

struct Program {
  std::string path; // of the file
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> modules; // FQNs, in the order of named_modules()
  std::vector<std::vector<ModuleCall>> stacks;
  std::unordered_map<std::string, Payload> payloads; // by FQN
  std::map<std::string, Bound> bounds;               // by symbol
  ExportNotes notes;
  std::string torchVersion;
  /// True if the parameters' values are in the file.
  bool hasWeights = false;
};

/// Reads a .pt2 file; what is wrong is reported with the archive entry and the
/// JSON path.
std::optional<Program> readProgram(const std::string &path,
                                   DiagnosticEngine &diagnostics);
/// The same for bytes in memory; `path` is for messages.
std::optional<Program> parseProgram(std::string_view bytes,
                                    const std::string &path,
                                    DiagnosticEngine &diagnostics);

/// The same for the entries of an archive.
std::optional<Program> parseEntries(std::map<std::string, std::string> entries,
                                    const std::string &path,
                                    DiagnosticEngine &diagnostics);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_PROGRAM_H
