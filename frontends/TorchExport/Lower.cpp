//===- Lower.cpp - Nodes as operations of the aten dialect ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Lower.h"

#include "frontends/TorchExport/Describe.h"
#include "frontends/TorchExport/DialectTable.h"
#include "frontends/TorchExport/LowerRandom.h"
#include "runtime/plan/Operators.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace accel;
using namespace accel::torchexport;
using Kind = Argument::Kind;

Lowering::Lowering(const Program &program, const Symbols &symbols,
                   func::FuncOp flat, DiagnosticEngine &diagnostics)
    : program(program), symbols(symbols), flat(flat), diagnostics(diagnostics),
      b(flat.getContext()) {}

const llvm::StringMap<Lowering::Rule> &torchexport::loweringRules() {
  static const llvm::StringMap<Lowering::Rule> rules = [] {
    llvm::StringMap<Lowering::Rule> all;
    addShapeRules(all);
    addJoinRules(all);
    addPointwiseRules(all);
    addRandomRules(all);
    addCompositeRules(all);
    addAttentionRules(all);
    addCreationRules(all);
    addIndexRules(all);
    addConvolutionRules(all);
    addReductionRules(all);
    addLossRules(all);
    return all;
  }();
  return rules;
}

LogicalResult Lowering::fail(const Node &node, std::string message,
                             std::string hint, bool unsupported) {
  Diagnostic d;
  d.code = unsupported ? notSupportedCode : "invalid-pt2";
  d.file = program.path;
  d.key = node.place;
  d.message = node.place + ": '" + printable(node.target) + "' " + message;
  d.hint = std::move(hint);
  diagnostics.report(std::move(d));
  return failure();
}

/// The dtype of the parameters is the compiler's to choose, so the model phase
/// is built as if it were f32.
RankedTensorType Lowering::typeOf(const TensorMeta &meta) {
  auto shape = symbols.valuesOf(meta.sizes);
  if (!shape)
    return {};
  plan::DType dtype =
      meta.dtype == parameterDtype(program) ? plan::DType::F32 : meta.dtype;
  return RankedTensorType::get(*shape, elementType(b, dtype));
}

RankedTensorType Lowering::resultType(const Call &call, size_t i) {
  SmallVector<const Argument *> flatResults;
  for (const Argument &output : call.node().outputs) {
    if (output.kind == Kind::List)
      for (const Argument &item : output.items)
        flatResults.push_back(&item);
    else
      flatResults.push_back(&output);
  }
  if (i >= flatResults.size() || flatResults[i]->kind != Kind::Tensor)
    return {};
  return typeOf(current->tensors.at(flatResults[i]->text));
}

//===----------------------------------------------------------------------===//
// Making operations
//===----------------------------------------------------------------------===//

Operation *Lowering::makeOp(StringRef name, ValueRange operands,
                            Attributes attributes) {
  for (Value operand : operands)
    if (!operand)
      return nullptr;
  MLIRContext *context = b.getContext();
  auto info = RegisteredOperationName::lookup(name, context);
  if (!info)
    return nullptr;
  OperationState state(b.getUnknownLoc(), name);
  state.addOperands(operands);
  for (auto [key, value] : attributes)
    if (value)
      state.addAttribute(key, value);
  DictionaryAttr dictionary = state.attributes.getDictionary(context);
  // What is wrong with operands is said where the node stands in the file.
  ScopedDiagnosticHandler silent(context,
                                 [](mlir::Diagnostic &) { return success(); });
  auto emitError = [&] { return mlir::emitError(state.location); };
  std::unique_ptr<char[]> storage;
  OpaqueProperties properties = nullptr;
  if (size_t bytes = info->getOpPropertyByteSize()) {
    storage = std::make_unique<char[]>(bytes + 64);
    properties = OpaqueProperties(reinterpret_cast<char *>(
        llvm::alignAddr(storage.get(), llvm::Align(64))));
    info->initOpProperties(properties, nullptr);
    if (failed(info->setOpPropertiesFromAttribute(*info, properties, dictionary,
                                                  emitError))) {
      info->destroyOpProperties(properties);
      return nullptr;
    }
  }
  auto *infer = info->getInterface<InferTypeOpInterface>();
  SmallVector<Type> types;
  LogicalResult inferred =
      infer ? infer->inferReturnTypes(context, state.location, operands,
                                      dictionary, properties, {}, types)
            : failure();
  if (storage)
    info->destroyOpProperties(properties);
  if (failed(inferred))
    return nullptr;
  state.addTypes(types);
  Operation *op = b.create(state);
  op->setAttr(stackAttr, b.getI64IntegerAttr(stack));
  if (failed(verify(op))) {
    op->erase();
    return nullptr;
  }
  // A value made of one that was cast up is wide too.
  Value from;
  for (Value operand : operands) {
    if (!isFloat(operand) || rank(operand) == 0)
      continue;
    auto found = castFrom.find(operand);
    if (found == castFrom.end()) {
      from = {};
      break;
    }
    from = found->second;
  }
  for (Value result : op->getResults())
    if (isFloat(result)) {
      if (from)
        castFrom[result] = from;
      if (llvm::any_of(operands, [&](Value v) { return trained.contains(v); }))
        trained.insert(result);
    }
  return op;
}

Value Lowering::detach(Value value) {
  if (!value || !trained.contains(value))
    return value;
  auto op = aten::OpaqueOp::createAs(b, b.getUnknownLoc(), value.getType(),
                                     b.getStringAttr("aten::detach"), value,
                                     b.getArrayAttr(b.getStringAttr("%0")));
  op->setAttr(stackAttr, b.getI64IntegerAttr(stack));
  return op->getResult(0);
}

Value Lowering::full(ArrayRef<int64_t> size, Attribute number, Type type) {
  return make<aten::FullOp>({}, {{"size", integers(size)},
                                 {"fill_value", number},
                                 {"dtype", TypeAttr::get(type)}});
}

ArrayRef<int64_t> Lowering::elementsOf(Value constant) const {
  auto argument = dyn_cast<BlockArgument>(constant);
  if (!argument)
    return {};
  for (auto [number, input] : inputs)
    if (number == argument.getArgNumber()) {
      auto found = program.payloads.find(input->fqn);
      if (input->kind == InputSpec::Kind::Constant &&
          found != program.payloads.end())
        return found->second.values;
    }
  return {};
}

void Lowering::discard(Operation *op) {
  for (Value result : op->getResults()) {
    castFrom.erase(result);
    trained.erase(result);
    layout.forget(result);
  }
  op->erase();
}

Value Lowering::view(Value value, ArrayRef<int64_t> size) {
  if (!value || shape(value) == size)
    return value;
  return make<aten::ViewOp>(value, {{"size", integers(size)}});
}

Value Lowering::reshape(Value value, ArrayRef<int64_t> size) {
  if (!value)
    return {};
  int64_t numel = 1;
  for (int64_t dim : size)
    numel *= dim;
  if (numel != aten::tensorType(value).getNumElements())
    return {};
  if (shape(value) != size && !layout.viewStrides(value, size))
    value = make<aten::CloneOp>(value);
  return view(value, size);
}

Value Lowering::contiguous(Value value) {
  if (!value || layout.isContiguous(value))
    return value;
  return make<aten::CloneOp>(value);
}

Value Lowering::expand(Value value, ArrayRef<int64_t> size) {
  if (!value || shape(value) == size)
    return value;
  return make<aten::ExpandOp>(value, {{"size", integers(size)}});
}

Value Lowering::transpose(Value value, int64_t first, int64_t second) {
  if (!value)
    return {};
  return make<aten::TransposeIntOp>(
      value, {{"dim0", integer(first)}, {"dim1", integer(second)}});
}

std::optional<SmallVector<int64_t>>
Lowering::completeSize(Value value, ArrayRef<int64_t> size) {
  SmallVector<int64_t> result(size);
  int64_t known = 1, open = -1;
  for (auto [i, dim] : llvm::enumerate(result)) {
    if (dim == -1 && open < 0)
      open = int64_t(i);
    else if (dim < 0)
      return std::nullopt;
    else if (__builtin_mul_overflow(known, dim, &known))
      return std::nullopt;
  }
  const int64_t numel = aten::tensorType(value).getNumElements();
  if (open >= 0) {
    if (known == 0 || numel % known != 0)
      return std::nullopt;
    result[open] = numel / known;
  } else if (known != numel) {
    return std::nullopt;
  }
  return result;
}

Value Lowering::cast(Value value, Type type) {
  if (!value || !type)
    return {};
  Type own = aten::tensorType(value).getElementType();
  if (!isa<FloatType>(own) || !isa<FloatType>(type)) {
    if (own == type)
      return value;
    return make<aten::ToCopyOp>(value, {{"dtype", TypeAttr::get(type)}});
  }
  // Casts between floating-point types stay, since the type of parameters and
  // activations is not known before precision is decided.
  Type parameters = elementType(b, parameterDtype(program));
  auto from = castFrom.find(value);
  if (from != castFrom.end() && type == parameters)
    return make<aten::TypeAsOp>({value, from->second});
  if (type == parameters && !type.isF32())
    return value;
  Value wide = make<aten::ToCopyOp>(value, {{"dtype", TypeAttr::get(type)}});
  if (wide && from == castFrom.end())
    castFrom[wide] = value;
  return wide;
}

Value Lowering::beforeCast(Value value) const {
  for (const auto &[asking, casts] : identities)
    for (const Identity &cast : casts)
      if (cast.wide == value)
        return cast.operand;
  return value;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

LogicalResult Lowering::run() {
  SmallVector<Type> types;
  Values values;
  for (const InputSpec &input : program.inputs) {
    if (input.argument.empty())
      continue;
    RankedTensorType type = typeOf(program.graph.tensors.at(input.argument));
    if (!type) {
      diagnostics.error("invalid-pt2", program.path,
                        "the size of '" + printable(input.argument) +
                            "' cannot be evaluated");
      return failure();
    }
    inputs.push_back({unsigned(types.size()), &input});
    types.push_back(type);
  }
  flat.setFunctionType(b.getFunctionType(types, {}));
  Block *body = flat.addEntryBlock();
  b.setInsertionPointToEnd(body);
  for (auto [number, input] : inputs) {
    Value argument = body->getArgument(number);
    values[input->argument] = argument;
    if (input->kind == InputSpec::Kind::Parameter &&
        program.graph.tensors.at(input->argument).requiresGrad)
      trained.insert(argument);
  }
  for (const OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::Kind::BufferMutation)
      return failBuffer(output.fqn);
  if (failed(lowerGraph(program.graph, values)))
    return failure();
  return findLoss(values);
}

LogicalResult Lowering::failBuffer(const std::string &fqn) {
  diagnostics.error(notSupportedCode, program.path,
                    "the program changes its buffer '" + printable(fqn) +
                        "' in each step, which is not supported yet",
                    "batch norm does so in training; freeze its statistics "
                    "(module.eval()) or use a group norm");
  return failure();
}

LogicalResult Lowering::failWrite(const Node &node, Value written) {
  for (Operation *op = written.getDefiningOp(); op && op->getNumOperands();
       op = written.getDefiningOp())
    written = op->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(written))
    for (auto [number, spec] : inputs)
      if (number == argument.getArgNumber() &&
          spec->kind == InputSpec::Kind::Buffer)
        return failBuffer(spec->fqn);
  return fail(node,
              "changes a parameter or an input in place, which is not "
              "supported yet",
              "program.run_decompositions({}) makes such programs functional",
              true);
}

LogicalResult Lowering::findLoss(const Values &values) {
  Value loss;
  for (const OutputSpec &output : program.outputs) {
    auto found = values.find(output.argument.text);
    if (output.argument.kind != Kind::Tensor || found == values.end())
      continue;
    Value value = found->second;
    bool scalar =
        isFloat(value) && aten::tensorType(value).getNumElements() == 1;
    if (scalar && (!loss || output.kind == OutputSpec::Kind::Loss))
      loss = value;
  }
  if (loss && rank(loss) != 0)
    loss = reshape(loss, {});
  if (!loss || !dependsOnParameters(loss)) {
    diagnostics.error(
        "export-loss", program.path,
        loss ? "the loss does not depend on any parameter"
             : "the program returns no loss: none of its outputs is a single "
               "floating-point number",
        "export a module whose forward returns the loss; tools/export-model "
        "does so");
    return failure();
  }
  func::ReturnOp::create(b, b.getUnknownLoc(), loss);
  flat.setFunctionType(
      b.getFunctionType(flat.getFunctionType().getInputs(), loss.getType()));
  return success();
}

bool Lowering::dependsOnParameters(Value value) {
  return trained.contains(value);
}

LogicalResult Lowering::lowerGraph(const Graph &graph, Values &values) {
  const Graph *outer = current;
  current = &graph;
  for (const Node &node : graph.nodes)
    if (failed(lowerNode(node, graph, values)))
      return failure();
  current = outer;
  return success();
}

/// A subgraph of a higher-order operator that only changes a mode.
LogicalResult Lowering::inlineGraph(const Node &node, const Graph &graph,
                                    Values &values) {
  const bool gradMode = StringRef(node.target).ends_with("set_grad_enabled");
  const Argument *body = nullptr;
  SmallVector<Value> operands;
  bool enabled = true;
  for (const NamedArgument &input : node.inputs) {
    if (input.value.kind == Kind::Graph) {
      body = &input.value;
    } else if (!body) {
      if (input.value.kind == Kind::Bool)
        enabled = input.value.integer;
    } else if (input.value.kind == Kind::Tensor) {
      auto found = values.find(input.value.text);
      if (found == values.end())
        return fail(node, "reads a result that was not computed", "", true);
      operands.push_back(found->second);
    } else {
      return fail(node, "passes something else than tensors to its graph", "",
                  true);
    }
  }
  if (!gradMode || !body)
    return fail(node, "is a higher-order operator that is not supported yet",
                "export without it: control flow and autocast regions are not "
                "imported",
                true);
  if (!enabled)
    for (Value &operand : operands)
      operand = detach(operand);
  Values inside;
  size_t next = 0;
  for (const Argument &input : body->graph->inputs) {
    if (input.kind != Kind::Tensor || next == operands.size())
      return fail(node, "passes " + std::to_string(operands.size()) +
                            " tensors to a graph with " +
                            std::to_string(body->graph->inputs.size()) +
                            " inputs");
    inside[input.text] = operands[next++];
  }
  if (failed(lowerGraph(*body->graph, inside)))
    return failure();
  current = &graph;
  SmallVector<Value> results;
  for (const Argument &output : body->graph->outputs) {
    if (output.kind != Kind::Tensor)
      return fail(node, "returns something else than tensors", "", true);
    auto found = inside.find(output.text);
    results.push_back(found == inside.end() ? Value() : found->second);
  }
  return bindResults(node, graph, results, values);
}

static bool onlyChecks(StringRef target) {
  return target.contains("_assert_") || target.contains("sym_constrain") ||
         target.contains("aten._assert");
}

static bool onlySymbols(const Node &node) {
  for (const Argument &output : node.outputs)
    if (output.kind == Kind::Tensor || output.kind == Kind::List)
      return false;
  return true;
}

LogicalResult Lowering::lowerNode(const Node &node, const Graph &graph,
                                  Values &values) {
  StringRef target = node.target;
  enterStack(node.stack, values);
  if (onlyChecks(target))
    return success();
  if (target.contains("higher_order"))
    return inlineGraph(node, graph, values);
  // Arithmetic of sizes: their values are in the file.
  if (onlySymbols(node) && !node.outputs.empty())
    return success();
  if (!target.consume_front("torch.ops."))
    return fail(node, "is no operator of ATen", "", true);
  // transformers has an operator of its own where torch has no kernel.
  if (target == "transformers.grouped_mm_fallback.default")
    target = "aten._grouped_mm";
  if (!target.consume_front("aten."))
    return fail(node, "is a custom operator, which accel-run cannot call",
                "export the model with PyTorch's own operators", true);
  std::string name = ("aten::" + target).str();
  const AtenSchema *schema = findSchema(name);
  if (!schema)
    return fail(node, "is no operator that torch 2.15 has", "", true);
  Value mutated;
  if (!schema->parameters.empty() && schema->parameters[0].mutated &&
      schema->name != "aten::detach_") {
    // relu_ computes relu; what shares memory with its operand is that then.
    auto [base, overload] = target.split('.');
    base.consume_back("_");
    name = ("aten::" + base + (overload.empty() ? "" : "." + overload)).str();
    schema = findSchema(name);
    auto self = node.inputs.empty() ? values.end()
                                    : values.find(node.inputs[0].value.text);
    if (schema && self != values.end())
      mutated = self->second;
    if (!mutated)
      return fail(node, "writes to what is no tensor of the graph", "", true);
  }
  std::string error;
  auto call = Call::read(node, *schema, graph, symbols, values, error);
  if (!call)
    return fail(node, error);
  if (SmallVector<Value> others = call->written(); !others.empty())
    return failWrite(node, others.front());
  std::optional<Results> results;
  auto rule = loweringRules().find(StringRef(schema->name));
  if (rule != loweringRules().end())
    results = rule->second(*this, *call);
  auto complete = [&] {
    return results && !results->empty() && results->front();
  };
  if (!complete())
    results = lowerByTable(*call);
  if (!complete() && drawsNumbers(*call))
    return fail(node,
                "draws random numbers, which is supported for dropout alone "
                "(of attention weights: without a mask)",
                "export with a probability of 0; tools/export-model does "
                "without --dropout",
                true);
  if (!complete() && !plan::mayCall(schema->name))
    return fail(node,
                "calls an operator that a plan may not call: it reads files, "
                "makes tensors of addresses, or trusts what it is given",
                "", true);
  if (!complete())
    results = lowerOpaque(*call);
  if (!complete())
    return fail(node, "has arguments that are not supported yet", "", true);
  if (failed(bindResults(node, graph, *results, values)))
    return failure();
  if (mutated && !writeBack(mutated, results->front(), values)) {
    return failWrite(node, mutated);
  }
  // Torch returned the operand itself here.
  if (results->size() == 1 && node.outputs.size() == 1)
    if (auto copy = results->front().getDefiningOp<aten::ToCopyOp>())
      if (RankedTensorType type = resultType(*call, 0);
          type && call->tensor(call->at(0)) == copy.getSelf() &&
          sameDtype(node, graph))
        identities[stack].push_back(
            {node.outputs[0].text, results->front(), copy.getSelf()});
  return success();
}

LogicalResult Lowering::bindResults(const Node &node, const Graph &graph,
                                    ValueRange results, Values &values) {
  SmallVector<const Argument *> outputs;
  for (const Argument &output : node.outputs) {
    if (output.kind == Kind::List)
      for (const Argument &item : output.items)
        outputs.push_back(&item);
    else
      outputs.push_back(&output);
  }
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (output->kind != Kind::Tensor)
      continue;
    // A norm by running statistics has empty results that nobody reads.
    if (i >= results.size() && !isRead(graph, output->text))
      continue;
    if (i >= results.size())
      return fail(node, "has " + std::to_string(outputs.size()) +
                            " results, and the operator returns " +
                            std::to_string(results.size()));
    if (!results[i])
      continue; // a result that only a backward would read
    RankedTensorType want = typeOf(graph.tensors.at(output->text));
    auto have = aten::tensorType(results[i]);
    if (!want || want.getShape() != have.getShape())
      return fail(node, "makes a tensor of another shape than the file says "
                        "of '" +
                            printable(output->text) + "'");
    if (want.getElementType() != have.getElementType() &&
        !(isa<FloatType>(want.getElementType()) &&
          isa<FloatType>(have.getElementType())))
      return fail(node, "makes a tensor of another dtype than the file says "
                        "of '" +
                            printable(output->text) + "'");
    values[output->text] = results[i];
  }
  return success();
}
