//===- Segments.cpp - A flat function as segments -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Segments.h"

#include "dialects/Aten/InPlace.h"
#include "frontends/TorchExport/LowerRandom.h"

#include "dialects/Sharding/Sharding.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;

namespace {

/// "layer@1" is the second call of "layer".
std::string withoutCall(const std::string &fqn) {
  return fqn.substr(0, fqn.find('@'));
}

/// What operations of one stack of modules belong to.
struct Place {
  std::string key;       // of the call of the segment's module; empty: none
  std::string path;      // its FQN
  std::string className; // of the segment's module
  std::string module;    // FQN of the innermost module
};

/// Operations in a row that belong to one call of a module.
struct Run {
  const Place *place = nullptr;
  std::vector<Operation *> ops; // live ones, views of other runs among them
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Value> outputs;
  func::FuncOp function;
};

class Segmenter {
public:
  Segmenter(OpBuilder &builder, const Program &program,
            const huggingface::ModelInfo &info, func::FuncOp flat,
            ArrayRef<std::pair<unsigned, const InputSpec *>> arguments)
      : b(builder), program(program), flat(flat) {
    for (auto [number, input] : arguments)
      specs[flat.getArgument(number)] = input;
    for (const huggingface::ParameterInfo &parameter : info.parameters) {
      auto &all = names[parameter.fqn];
      all.push_back(parameter.fqn);
      all.insert(all.end(), parameter.aliases.begin(), parameter.aliases.end());
      for (const std::string &alias : parameter.aliases)
        canonical[alias] = parameter.fqn;
      canonical[parameter.fqn] = parameter.fqn;
    }
  }

  LogicalResult run() {
    findPlaces();
    cut();
    hoistShared();
    connect();
    for (Run &run : runs)
      addFunction(run);
    addGraph();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Cutting
  //===--------------------------------------------------------------------===//

  void findPlaces() {
    std::set<std::string> parents; // modules with modules of their own
    for (const std::string &fqn : program.modules)
      if (size_t dot = fqn.rfind('.'); dot != fqn.npos)
        parents.insert(fqn.substr(0, dot));
    for (const auto &stack : program.stacks) {
      Place place;
      for (const ModuleCall &call : stack) {
        std::string fqn = withoutCall(call.fqn);
        place.module = fqn;
        std::string last = fqn.substr(fqn.rfind('.') + 1);
        bool numbered =
            !last.empty() && last.find_first_not_of("0123456789") == last.npos;
        if (!place.key.empty() || !numbered || !parents.count(fqn))
          continue;
        place.key = call.key;
        place.path = fqn;
        place.className = call.className;
      }
      places.push_back(std::move(place));
    }
    if (places.empty())
      places.emplace_back();
  }

  const Place &placeOf(Operation *op) {
    auto attr = op->getAttrOfType<IntegerAttr>(stackAttr);
    size_t index = attr ? size_t(attr.getInt()) : 0;
    return places[std::min(index, places.size() - 1)];
  }

  void cut() {
    for (Operation &op : flat.getBody().front().without_terminator()) {
      const Place &place = placeOf(&op);
      if (runs.empty() || runs.back().place->key != place.key) {
        runs.emplace_back();
        runs.back().place = &place;
      }
      runs.back().ops.push_back(&op);
      runOf[&op] = runs.size() - 1;
    }
  }

  /// What a numbered module computes of parameters and positions alone and
  /// others read too (T5's biases) is a run of its own before it, so that the
  /// module is like its neighbours.
  void hoistShared() {
    llvm::DenseSet<Operation *> fixed, shared;
    for (Operation &op : flat.getBody().front().without_terminator()) {
      if (llvm::all_of(op.getOperands(), [&](Value operand) {
            Operation *maker = operand.getDefiningOp();
            return maker ? fixed.contains(maker)
                         : parameterOf(operand) || isBuffer(operand);
          }))
        fixed.insert(&op);
    }
    SmallVector<Operation *> work;
    for (Operation *op : fixed) {
      const size_t run = runOf.at(op);
      if (!runs[run].place->key.empty() &&
          llvm::any_of(op->getUsers(), [&](Operation *user) {
            auto found = runOf.find(user);
            return found != runOf.end() && found->second != run;
          }))
        work.push_back(op);
    }
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!shared.insert(op).second)
        continue;
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && runOf.at(maker) == runOf.at(op))
          work.push_back(maker);
    }
    if (shared.empty())
      return;
    std::vector<Run> before = std::move(runs);
    runs.clear();
    for (Run &run : before) {
      Run first;
      first.place = run.place;
      llvm::copy_if(run.ops, std::back_inserter(first.ops),
                    [&](Operation *op) { return shared.contains(op); });
      if (!first.ops.empty()) {
        llvm::erase_if(run.ops,
                       [&](Operation *op) { return shared.contains(op); });
        runs.push_back(std::move(first));
      }
      if (!run.ops.empty())
        runs.push_back(std::move(run));
    }
    for (size_t i = 0; i < runs.size(); ++i)
      for (Operation *op : runs[i].ops)
        runOf[op] = i;
  }

  /// From the last run to the first: what later runs need of each, and what it
  /// needs itself.
  void connect() {
    llvm::SetVector<Value> needed;
    needed.insert(flat.getBody().front().getTerminator()->getOperand(0));
    for (size_t i = runs.size(); i-- > 0;) {
      Run &run = runs[i];
      llvm::DenseSet<Operation *> live;
      SmallVector<Operation *> work;
      auto need = [&](Value value) {
        Operation *op = value.getDefiningOp();
        if (op && (runOf.at(op) == i || (aten::isView(op) && !isResult(op)))) {
          if (live.insert(op).second)
            work.push_back(op);
          return;
        }
        run.inputs.insert(value);
      };
      for (Value value : needed)
        if (Operation *op = value.getDefiningOp(); op && runOf.at(op) == i) {
          run.outputs.insert(value);
          if (live.insert(op).second)
            work.push_back(op);
        }
      while (!work.empty())
        for (Value operand : work.pop_back_val()->getOperands())
          need(operand);
      for (Value value : run.inputs)
        if (value.getDefiningOp())
          needed.insert(value);
      std::vector<Operation *> ordered(live.begin(), live.end());
      llvm::sort(ordered, [](Operation *a, Operation *other) {
        return a->isBeforeInBlock(other);
      });
      run.ops = beforeFirstUse(ordered, live, i);
      sortInputs(run);
    }
    llvm::erase_if(runs, [](const Run &run) { return run.outputs.empty(); });
  }

  /// True for a view that is what a run computes in the shape that others read:
  /// of a value of its own that they do not read otherwise.
  bool isResult(Operation *op) const {
    auto view = dyn_cast<aten::ViewOp>(op);
    Operation *maker = view ? view.getSelf().getDefiningOp() : nullptr;
    if (!maker || aten::isView(maker) || runOf.at(maker) != runOf.at(op))
      return false;
    return llvm::all_of(view.getSelf().getUsers(), [&](Operation *user) {
      auto found = runOf.find(user);
      return found != runOf.end() && found->second == runOf.at(op);
    });
  }

  /// The operations of run `i`, with views of other runs just before what reads
  /// them first, wherever the program made them.
  std::vector<Operation *>
  beforeFirstUse(const std::vector<Operation *> &ordered,
                 const llvm::DenseSet<Operation *> &live, size_t i) {
    std::vector<Operation *> result;
    llvm::DenseSet<Operation *> done;
    std::function<void(Operation *)> add = [&](Operation *op) {
      if (!op || !live.contains(op) || !done.insert(op).second)
        return;
      for (Value operand : op->getOperands())
        add(operand.getDefiningOp());
      result.push_back(op);
    };
    for (Operation *op : ordered)
      if (runOf.at(op) == i)
        add(op);
    return result;
  }

  /// Inputs in the order of their first use, outputs in that of their making,
  /// so that equal segments get equal functions.
  void sortInputs(Run &run) {
    llvm::SetVector<Value> inputs, outputs;
    for (Operation *op : run.ops) {
      for (Value operand : op->getOperands())
        if (run.inputs.contains(operand))
          inputs.insert(operand);
      for (Value result : op->getResults())
        if (run.outputs.contains(result))
          outputs.insert(result);
    }
    run.inputs = std::move(inputs);
    run.outputs = std::move(outputs);
  }

  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  const InputSpec *parameterOf(Value value) const {
    auto found = specs.find(value);
    return found != specs.end() &&
                   found->second->kind == InputSpec::Kind::Parameter
               ? found->second
               : nullptr;
  }
  bool isBuffer(Value value) const {
    auto found = specs.find(value);
    return found != specs.end() &&
           (found->second->kind == InputSpec::Kind::Buffer ||
            found->second->kind == InputSpec::Kind::Constant);
  }

  /// The name of a parameter below `path`; empty if it has none there.
  std::string below(const InputSpec &parameter, StringRef path) const {
    const std::string &first = canonical.at(parameter.fqn);
    for (const std::string &name : names.at(first)) {
      if (path.empty())
        return name;
      StringRef rest = name;
      if (rest.consume_front(path) && rest.consume_front("."))
        return rest.str();
    }
    return "";
  }

  /// The path of a run's calls: that of its module, unless it reads parameters
  /// from elsewhere.
  std::string pathOf(const Run &run) const {
    const std::string &path = run.place->path;
    for (Value input : run.inputs)
      if (const InputSpec *parameter = parameterOf(input))
        if (below(*parameter, path).empty())
          return "";
    return path;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  /// Equal for runs that the same function computes.
  std::string structureOf(const Run &run, StringRef path) const {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::DenseMap<Value, unsigned> number;
    for (Value input : run.inputs) {
      number[input] = unsigned(number.size());
      os << input.getType().getAsOpaquePointer();
      if (const InputSpec *parameter = parameterOf(input))
        os << below(*parameter, path);
      else if (isBuffer(input))
        os << "=";
      os << ";";
    }
    for (Operation *op : run.ops) {
      os << op->getName().getAsOpaquePointer() << "(";
      for (Value operand : op->getOperands())
        os << number.lookup(operand) << ",";
      for (NamedAttribute attribute : op->getAttrDictionary())
        if (attribute.getName() != stackAttr)
          os << attribute.getName().getAsOpaquePointer()
             << attribute.getValue().getAsOpaquePointer();
      os << ")";
      for (Value result : op->getResults()) {
        number[result] = unsigned(number.size());
        os << result.getType().getAsOpaquePointer();
      }
    }
    for (Value output : run.outputs)
      os << "->" << number.lookup(output);
    return text;
  }

  std::string nameOf(const Run &run) {
    std::string name = run.place->className;
    if (name.empty())
      name = &run == &runs.front()  ? "Begin"
             : &run == &runs.back() ? "End"
                                    : "Between";
    int &count = taken[name];
    return ++count == 1 ? name : name + "_" + std::to_string(count - 1);
  }

  /// The module of an operation, with the segment's own number as `*`.
  Location locationOf(Operation *op, const Place &place) {
    std::string module = placeOf(op).module;
    if (StringRef rest = module;
        !place.path.empty() && rest.consume_front(place.path))
      module =
          place.path.substr(0, place.path.rfind('.') + 1) + "*" + rest.str();
    return NameLoc::get(b.getStringAttr(module));
  }

  void addFunction(Run &run) {
    const std::string path = pathOf(run);
    auto [known, isNew] =
        functions.try_emplace(structureOf(run, path), func::FuncOp());
    if (!isNew) {
      run.function = known->second;
      return;
    }
    SmallVector<Type> types, results;
    for (Value input : run.inputs)
      types.push_back(input.getType());
    for (Value output : run.outputs)
      results.push_back(output.getType());
    Location location = NameLoc::get(b.getStringAttr(path));
    auto function = func::FuncOp::create(b, location, nameOf(run),
                                         b.getFunctionType(types, results));
    function.setPrivate();
    Block *body = function.addEntryBlock();
    IRMapping mapping;
    for (auto [i, input] : llvm::enumerate(run.inputs)) {
      mapping.map(input, body->getArgument(unsigned(i)));
      if (const InputSpec *parameter = parameterOf(input))
        function.setArgAttr(unsigned(i), sharding::paramArgAttr,
                            b.getStringAttr(below(*parameter, path)));
      else if (isBuffer(input))
        function.setArgAttr(unsigned(i), aten::fixedTypeAttr, b.getUnitAttr());
    }
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    for (Operation *op : run.ops) {
      Operation *copy = inside.clone(*op, mapping);
      copy->removeAttr(stackAttr);
      copy->setLoc(locationOf(op, *run.place));
    }
    numberKeys(function);
    // Values between segments are contiguous.
    aten::LayoutAnalysis layout;
    SmallVector<Value> outputs;
    for (Value output : run.outputs) {
      Value value = mapping.lookup(output);
      if (!layout.isContiguous(value))
        value = aten::CloneOp::create(inside, value.getLoc(), value);
      outputs.push_back(value);
    }
    func::ReturnOp::create(inside, location, outputs);
    run.function = known->second = function;
  }

  //===--------------------------------------------------------------------===//
  // The graph
  //===--------------------------------------------------------------------===//

  /// What the model saves and nothing reads, as a frozen batch norm's counter:
  /// a trained model's checkpoint has it too.
  void addUnreadBuffers(ArrayRef<Value> read, Location location) {
    for (BlockArgument argument : flat.getArguments()) {
      auto found = specs.find(argument);
      if (found == specs.end() || llvm::is_contained(read, argument) ||
          found->second->kind != InputSpec::Kind::Buffer ||
          !found->second->persistent)
        continue;
      sharding::BufferOp::create(b, location, found->second->fqn,
                                 cast<RankedTensorType>(argument.getType()),
                                 true);
    }
  }

  void addGraph() {
    SmallVector<Value> inputs; // that any run reads
    for (BlockArgument argument : flat.getArguments())
      if (!parameterOf(argument) && llvm::any_of(runs, [&](const Run &run) {
            return run.inputs.contains(argument);
          }))
        inputs.push_back(argument);
    SmallVector<Attribute> argNames;
    Location location = NameLoc::get(b.getStringAttr("model"));
    for (Value input : inputs) {
      const InputSpec *spec = specs.at(input);
      argNames.push_back(
          b.getStringAttr(isBuffer(input) ? spec->fqn : spec->argument));
      if (isBuffer(input))
        sharding::BufferOp::create(b, location, spec->fqn,
                                   cast<RankedTensorType>(input.getType()),
                                   spec->persistent);
    }
    addUnreadBuffers(inputs, location);
    auto graph = sharding::GraphOp::create(
        b, location, b.getStringAttr("model"), b.getArrayAttr(argNames));
    Block *body = graph.getBody().empty() ? &graph.getBody().emplaceBlock()
                                          : &graph.getBody().front();
    llvm::DenseMap<Value, Value> values;
    for (Value input : inputs)
      values[input] = body->addArgument(input.getType(), location);
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    for (Run &run : runs) {
      SmallVector<Value> operands;
      for (Value input : run.inputs)
        if (!parameterOf(input))
          operands.push_back(values.lookup(input));
      std::string path = pathOf(run);
      auto call = sharding::CallOp::create(
          inside, NameLoc::get(b.getStringAttr(path)),
          run.function.getResultTypes(), run.function.getSymName(), operands,
          path, sharding::CheckpointAttr());
      for (auto [value, result] : llvm::zip(run.outputs, call.getResults()))
        values[value] = result;
    }
    Value loss = flat.getBody().front().getTerminator()->getOperand(0);
    sharding::ReturnOp::create(inside, location, values.lookup(loss));
  }

  OpBuilder &b;
  const Program &program;
  func::FuncOp flat;
  llvm::DenseMap<Value, const InputSpec *> specs;
  std::unordered_map<std::string, std::vector<std::string>> names;
  std::unordered_map<std::string, std::string> canonical;
  std::vector<Place> places; // by stack
  std::vector<Run> runs;
  llvm::DenseMap<Operation *, size_t> runOf;
  std::unordered_map<std::string, func::FuncOp> functions;
  std::map<std::string, int> taken;
};

} // namespace

LogicalResult torchexport::writeSegments(
    OpBuilder &builder, const Program &program,
    const huggingface::ModelInfo &info, func::FuncOp flat,
    ArrayRef<std::pair<unsigned, const InputSpec *>> arguments) {
  return Segmenter(builder, program, info, flat, arguments).run();
}
