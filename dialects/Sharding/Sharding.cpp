//===- Sharding.cpp - The sharding dialect ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::sharding;

#include "dialects/Sharding/ShardingDialect.cpp.inc"
#include "dialects/Sharding/ShardingEnums.cpp.inc"

// "why" at "fsdp.yaml" : 9 : 3, or "why" alone.
static ParseResult parseReason(AsmParser &parser, std::string &why,
                               StringAttr &file, int64_t &line,
                               int64_t &column) {
  if (parser.parseString(&why))
    return failure();
  if (parser.parseOptionalKeyword("at"))
    return success();
  std::string name;
  if (parser.parseString(&name) || parser.parseColon() ||
      parser.parseInteger(line) || parser.parseColon() ||
      parser.parseInteger(column))
    return failure();
  file = parser.getBuilder().getStringAttr(name);
  return success();
}

static void printReason(AsmPrinter &printer, StringRef why, StringAttr file,
                        int64_t line, int64_t column) {
  printer.printString(why);
  if (!file)
    return;
  printer << " at ";
  printer.printString(file.getValue());
  printer << " : " << line << " : " << column;
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Sharding/ShardingAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Sharding/ShardingOps.cpp.inc"

void ShardingDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Sharding/ShardingAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Sharding/ShardingOps.cpp.inc"
      >();
}

std::string accel::sharding::joinFqn(StringRef path, StringRef name) {
  return path.empty() ? name.str() : (path + "." + name).str();
}

int64_t accel::sharding::chunksOf(GraphOp graph) {
  auto chunks = graph ? graph->getAttrOfType<IntegerAttr>(chunksAttr) : nullptr;
  return chunks ? chunks.getInt() : 1;
}

int64_t accel::sharding::stageOf(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>(stageAttr);
  return stage ? stage.getInt() : 0;
}

RequestOp accel::sharding::findRequest(mlir::ModuleOp module, StringRef what) {
  for (auto request : module.getOps<RequestOp>())
    if (request.getWhat() == what)
      return request;
  return {};
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringRef name, int64_t size) {
  if (name.empty())
    return emitError() << "a mesh axis needs a name";
  if (size < 1)
    return emitError() << "mesh axis '" << name << "' has size " << size
                       << ", expected at least 1";
  return success();
}

LogicalResult
PrecisionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      Type storage, Type compute, Type reduce, Type output,
                      BecauseAttr, Type gradient, Type state, bool autocast,
                      bool masterCopy) {
  for (auto [what, type] : {std::pair<const char *, Type>{"storage", storage},
                            {"compute", compute},
                            {"reduce", reduce},
                            {"output", output},
                            {"gradient", gradient ? gradient : storage},
                            {"state", state ? state : storage}})
    if (!isa<Float32Type, BFloat16Type, Float16Type, Float64Type>(type))
      return emitError() << what << " dtype is " << type
                         << ", expected f64, f32, bf16 or f16";
  return success();
}

LogicalResult
FrameworkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, StringRef torch, StringRef accelerate) {
  constexpr StringLiteral known[] = {"accel-run", "fsdp2",    "fsdp1", "ddp",
                                     "deepspeed", "megatron", "single"};
  if (llvm::is_contained(known, name))
    return success();
  // A trainer, over its usual executor or the one behind the slash.
  constexpr StringLiteral trainers[] = {
      "torchtitan", "llm-foundry",  "fms-fsdp",
      "torchtune",  "kempnerforge", "megatron-core-attention"};
  auto [trainer, executor] = name.split('/');
  if (llvm::is_contained(trainers, trainer) &&
      (trainer == name || llvm::is_contained(known, executor)))
    return success();
  return emitError() << "unknown framework '" << name
                     << "', expected accel-run, fsdp2, fsdp1, ddp, "
                        "deepspeed, megatron or single, or a trainer such as "
                        "torchtitan";
}

LogicalResult DdpAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t bucketBytes, int64_t firstBucketBytes,
                              bool, StringRef hook, BecauseAttr) {
  if (bucketBytes < 1 || firstBucketBytes < 1)
    return emitError() << "gradient buckets have no size";
  if (!hook.empty() && hook != "fp16" && hook != "bf16" && hook != "powersgd")
    return emitError() << "unknown communication hook '" << hook
                       << "', expected fp16, bf16 or powersgd";
  return success();
}

LogicalResult ReshardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  bool afterForward, bool whole, BecauseAttr) {
  if (afterForward && whole)
    return emitError() << "parameters that every rank holds between steps are "
                          "not freed after the forward";
  return success();
}

LogicalResult ZeroAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stage, int64_t reduceBucket,
                               int64_t prefetchBucket,
                               int64_t persistenceThreshold, bool, BecauseAttr,
                               int64_t subGroup, ZeroPlusAttr) {
  if (stage < 0 || stage > 3)
    return emitError() << "ZeRO has the stages 0 to 3, not " << stage;
  if (reduceBucket < 0 || prefetchBucket < 0 || persistenceThreshold < 0)
    return emitError() << "a ZeRO buffer has a negative size";
  if (subGroup < 1)
    return emitError() << "ZeRO updates at least one element at a time, not "
                       << subGroup;
  return success();
}

LogicalResult MegatronAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   bool, bool, bool, int64_t chunks,
                                   BecauseAttr, int64_t experts,
                                   int64_t expertTensor, bool, bool, bool,
                                   int64_t lastLayers) {
  if (lastLayers < 0)
    return emitError() << "the last stage has layers, or 0 for as many as the "
                          "others, not "
                       << lastLayers;
  if (chunks < 1)
    return emitError() << "a stage has at least one chunk of layers, not "
                       << chunks;
  if (experts < 1 || expertTensor < 1)
    return emitError() << "experts are on at least one rank, not "
                       << std::min(experts, expertTensor);
  return success();
}

LogicalResult ZeroPlusAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t secondary, int64_t shard, bool, bool,
                                   BecauseAttr) {
  if (secondary < 0 || shard < 0)
    return emitError() << "a group of ranks has a negative size";
  if (secondary > 1 && shard > 0)
    return emitError() << "ZeRO++ and MiCS exclude each other";
  return success();
}

LogicalResult PrefetchAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t forward, int64_t backward,
                                   BecauseAttr) {
  if (forward < 0 || backward < 0)
    return emitError() << "prefetch depth is negative";
  return success();
}

LogicalResult GathersAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t held, BecauseAttr) {
  if (held < 0)
    return emitError() << "a negative number of gathers is held back";
  return success();
}

LogicalResult
ReductionsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       int64_t await, BecauseAttr) {
  if (await < 0)
    return emitError() << "a negative number of reductions is awaited";
  return success();
}

LogicalResult
CheckpointAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       CheckpointMode mode, BecauseAttr, int64_t bytes,
                       ArrayRef<int64_t> keep) {
  if (bytes < -1)
    return emitError() << "a budget of " << bytes << " bytes is negative";
  if (bytes >= 0 && mode != CheckpointMode::Budget)
    return emitError() << "only the mode 'budget' has bytes";
  if (!keep.empty() && mode != CheckpointMode::Set)
    return emitError() << "only the mode 'set' lists what is kept";
  return success();
}

LogicalResult
AccumulationAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t steps, AccumulationMode, BecauseAttr) {
  if (steps < 1)
    return emitError() << "accumulation over " << steps
                       << " micro-batches, expected at least 1";
  return success();
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               InitKind kind, FloatAttr value,
                               DenseF64ArrayAttr range, int64_t zeroRow) {
  const bool normal =
      kind == InitKind::Normal || kind == InitKind::TruncatedNormal;
  const bool takesValue =
      normal || kind == InitKind::Constant || kind == InitKind::Sinusoids;
  if (takesValue != static_cast<bool>(value))
    return emitError() << stringifyInitKind(kind)
                       << (takesValue ? " takes a value" : " takes no value");
  if (normal && value.getValueAsDouble() < 0)
    return emitError() << "negative standard deviation";
  if (kind == InitKind::Sinusoids && !(value.getValueAsDouble() > 0))
    return emitError() << "sinusoids need a positive wavelength";
  const bool takesRange =
      kind == InitKind::TruncatedNormal || kind == InitKind::Uniform;
  if (takesRange != static_cast<bool>(range))
    return emitError() << stringifyInitKind(kind)
                       << (takesRange ? " takes a range" : " takes no range");
  if (range && (range.size() != 2 || !(range[0] < range[1])))
    return emitError() << "the range must be two ascending numbers";
  if (zeroRow < -1)
    return emitError() << "negative zero_row";
  return success();
}

//===----------------------------------------------------------------------===//
// The text of a spec
//===----------------------------------------------------------------------===//

/// The names behind `[`, up to and with `]`, and numbers of pieces.
static ParseResult parseAxes(AsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> names;
  if (failed(parser.parseOptionalRSquare())) {
    auto parseName = [&]() -> ParseResult {
      int64_t pieces = 0;
      OptionalParseResult number = parser.parseOptionalInteger(pieces);
      if (number.has_value()) {
        names.push_back(parser.getBuilder().getI64IntegerAttr(pieces));
        if (succeeded(parser.parseOptionalKeyword("mirrored")))
          names.push_back(parser.getBuilder().getUnitAttr());
        return *number;
      }
      std::string name;
      if (parser.parseString(&name))
        return failure();
      names.push_back(parser.getBuilder().getStringAttr(name));
      return success();
    };
    if (parser.parseCommaSeparatedList(parseName) || parser.parseRSquare())
      return failure();
  }
  axes = parser.getBuilder().getArrayAttr(names);
  return success();
}

// <["cp"], ["tp"], [] partial ["ep"] because <"why">>. MLIR's lexer has no
// semicolon, so the keyword alone ends the dimensions.
Attribute SpecAttr::parse(AsmParser &parser, Type) {
  SmallVector<ArrayAttr> dims;
  ArrayAttr partial;
  BecauseAttr because;
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parseAxes(parser, dims.emplace_back()))
      return {};
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseLSquare() || parseAxes(parser, dims.emplace_back()))
        return {};
  }
  if (succeeded(parser.parseOptionalKeyword("partial")) &&
      (parser.parseLSquare() || parseAxes(parser, partial)))
    return {};
  if (succeeded(parser.parseOptionalKeyword("because"))) {
    because = dyn_cast_or_null<BecauseAttr>(BecauseAttr::parse(parser, {}));
    if (!because)
      return {};
  }
  if (parser.parseGreater())
    return {};
  if (partial && partial.empty())
    partial = {};
  return parser.getChecked<SpecAttr>(parser.getContext(), dims, partial,
                                     because);
}

void SpecAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getDims(), printer, [&](ArrayAttr axes) {
    printer << '[';
    bool first = true;
    for (Attribute axis : axes) {
      if (isa<UnitAttr>(axis)) {
        printer << " mirrored";
        continue;
      }
      printer << (first ? "" : ", ");
      first = false;
      if (auto pieces = dyn_cast<IntegerAttr>(axis))
        printer << pieces.getInt();
      else
        printer << axis;
    }
    printer << ']';
  });
  if (getPartial())
    printer << (getDims().empty() ? "" : " ") << "partial " << getPartial();
  if (getBecause()) {
    printer << (getDims().empty() && !getPartial() ? "" : " ") << "because ";
    getBecause().print(printer);
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// MeshOp, JobOp, ParamOp, UnitOp
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  llvm::StringSet<> seen;
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    if (!seen.insert(axis.getName()).second)
      return emitOpError() << "has two axes named '" << axis.getName() << "'";
  return success();
}

int64_t MeshOp::axisSize(StringRef name) {
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName() == name)
      return axis.getSize();
  return 1;
}

int64_t MeshOp::numRanks() {
  int64_t n = 1;
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    n *= axis.getSize();
  return n;
}

LogicalResult JobOp::verify() {
  if (static_cast<int64_t>(getMicroBatch()) < 1)
    return emitOpError() << "needs a micro-batch of at least 1";
  if (static_cast<int64_t>(getSequenceLength()) < 0)
    return emitOpError() << "has a negative sequence length";
  if (getDevice() != "cpu" && getDevice() != "cuda")
    return emitOpError() << "has device '" << getDevice()
                         << "', expected 'cpu' or 'cuda'";
  return success();
}

RankedTensorType ParamOp::getTensorType() {
  return cast<RankedTensorType>(getType());
}

int64_t ParamOp::numel() { return getTensorType().getNumElements(); }

LogicalResult ParamOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || !isa<FloatType>(type.getElementType()))
    return emitOpError() << "'" << getFqn() << "' has type " << getType()
                         << ", expected a floating-point tensor of static "
                            "shape";
  if (getFqn().empty())
    return emitOpError() << "needs a name";
  if (SpecAttr spec = getSpecAttr())
    return verifySpec(
        spec, type,
        findOnly<MeshOp>(cast<mlir::ModuleOp>((*this)->getParentOp())),
        [&] { return emitOpError() << "'" << getFqn() << "' "; });
  return success();
}

LogicalResult UnitOp::verify() {
  if (getParams().empty())
    return emitOpError() << "'" << getName() << "' has no parameters";
  llvm::StringSet<> axes;
  for (ArrayAttr list : {getShardAxes(), getReplicateAxes()})
    for (auto axis : list.getAsRange<StringAttr>())
      if (!axes.insert(axis.getValue()).second)
        return emitOpError() << "'" << getName() << "' uses the axis '"
                             << axis.getValue() << "' twice";
  return success();
}

//===----------------------------------------------------------------------===//
// GraphOp
//===----------------------------------------------------------------------===//

// sharding.graph @model(%input_ids: tensor<..>, %labels: tensor<..>) { ... }
ParseResult GraphOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, "sym_name", result.attributes))
    return failure();
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  SmallVector<Attribute> names;
  for (auto &arg : args)
    names.push_back(
        parser.getBuilder().getStringAttr(arg.ssaName.name.drop_front()));
  result.addAttribute("arg_names", parser.getBuilder().getArrayAttr(names));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, args))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void GraphOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument arg) { printer.printRegionArgument(arg); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"sym_name", "arg_names"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void GraphOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  for (auto [arg, name] :
       llvm::zip(region.getArguments(), getArgNames().getAsRange<StringAttr>()))
    setName(arg, name.getValue());
}

LogicalResult GraphOp::verify() {
  if (getArgNames().size() != getBody().getNumArguments())
    return emitOpError() << "names " << getArgNames().size() << " of "
                         << getBody().getNumArguments() << " arguments";
  auto ret = cast<ReturnOp>(getBody().front().getTerminator());
  if (ret.getNumOperands() != 1)
    return emitOpError() << "returns " << ret.getNumOperands()
                         << " values, expected the loss alone";
  auto type = cast<RankedTensorType>(ret.getOperand(0).getType());
  if (type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return emitOpError() << "returns " << type
                         << ", expected a 0-d floating-point loss";
  auto experts = (*this)->getAttrOfType<ExpertsAttr>(expertsAttr);
  if (experts && (experts.getAxes().empty() ||
                  !llvm::all_of(experts.getAxes(), llvm::IsaPred<StringAttr>)))
    return emitOpError() << "shares experts over " << experts.getAxes()
                         << ", expected names of axes";
  return success();
}

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

std::string CallOp::bindParam(StringRef name) {
  return joinFqn(getPath(), name);
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *callee = symbols.lookupNearestSymbolFrom(*this, getCalleeAttr());
  auto function = dyn_cast_or_null<FunctionOpInterface>(callee);
  if (!function)
    return emitOpError() << "calls '" << getCallee()
                         << "', which is no function of this module";
  SmallVector<Type> inputs;
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
    if (!function.getArgAttr(i, paramArgAttr))
      inputs.push_back(function.getArgumentTypes()[i]);
  if (inputs.size() != getOperands().size())
    return emitOpError() << "passes " << getOperands().size()
                         << " operands to '" << getCallee() << "', which takes "
                         << inputs.size();
  for (auto [i, pair] : llvm::enumerate(llvm::zip(inputs, getOperandTypes())))
    if (std::get<0>(pair) != std::get<1>(pair))
      return emitOpError() << "operand " << i << " is " << std::get<1>(pair)
                           << ", but '" << getCallee() << "' takes "
                           << std::get<0>(pair);
  if (function.getResultTypes() !=
      ArrayRef<Type>(llvm::to_vector(getResultTypes())))
    return emitOpError() << "result types differ from those of '" << getCallee()
                         << "'";
  return success();
}
