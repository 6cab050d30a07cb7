//===- Schedule.cpp - The schedule dialect ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Schedule/Schedule.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::schedule;

/// A keyword of an enum; says which ones there are.
template <typename Attr, typename Symbolize>
static ParseResult parseKeywordOf(OpAsmParser &parser, Attr &attr,
                                  Symbolize symbolize, StringRef what,
                                  unsigned last) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  auto value = symbolize(keyword);
  if (!value) {
    InFlightDiagnostic diagnostic = parser.emitError(loc)
                                    << "unknown " << what << " '" << keyword
                                    << "', expected ";
    using Enum = std::decay_t<decltype(*value)>;
    for (unsigned i = 0; i <= last; ++i)
      diagnostic << (i == 0      ? ""
                     : i == last ? " or "
                                 : ", ")
                 << stringifyEnum(static_cast<Enum>(i));
    return diagnostic;
  }
  attr = Attr::get(parser.getContext(), *value);
  return success();
}

static ParseResult parseRole(OpAsmParser &parser, RoleAttr &role) {
  return parseKeywordOf(
      parser, role, [](StringRef s) { return symbolizeRole(s); }, "role",
      getMaxEnumValForRole());
}
static void printRole(OpAsmPrinter &printer, Operation *, RoleAttr role) {
  printer << stringifyRole(role.getValue());
}
static ParseResult parseStream(OpAsmParser &parser, StreamAttr &stream) {
  return parseKeywordOf(
      parser, stream, [](StringRef s) { return symbolizeStream(s); }, "stream",
      getMaxEnumValForStream());
}
static void printStream(OpAsmPrinter &printer, Operation *, StreamAttr stream) {
  printer << stringifyStream(stream.getValue());
}

#include "dialects/Schedule/ScheduleDialect.cpp.inc"
#include "dialects/Schedule/ScheduleEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Schedule/ScheduleTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Schedule/ScheduleAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Schedule/ScheduleOps.cpp.inc"

void ScheduleDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Schedule/ScheduleTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Schedule/ScheduleAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Schedule/ScheduleOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// schedule.program @name inputs(%a as "name": type, ...)
//     carried(%b as role of "unit": type, ...)
//     persistent N peak N at N attributes {...} { ... }
//===----------------------------------------------------------------------===//

/// `keyword(%arg as "name": type, ...)`, or nothing; a carried buffer is
/// named as `role of "unit"`.
static ParseResult
parseArguments(OpAsmParser &parser, StringRef keyword,
               SmallVectorImpl<OpAsmParser::Argument> &arguments,
               ArrayAttr &names) {
  SmallVector<Attribute> attributes;
  if (succeeded(parser.parseOptionalKeyword(keyword))) {
    auto parseOne = [&]() -> ParseResult {
      OpAsmParser::Argument argument;
      Attribute name;
      if (parser.parseArgument(argument) || parser.parseKeyword("as"))
        return failure();
      std::string text;
      if (succeeded(parser.parseOptionalString(&text))) {
        name = parser.getBuilder().getStringAttr(text);
      } else {
        RoleAttr role;
        if (parseRole(parser, role) || parser.parseKeyword("of") ||
            parser.parseString(&text))
          return failure();
        name = CarriedAttr::get(parser.getContext(), text, role.getValue());
      }
      if (parser.parseColonType(argument.type))
        return failure();
      if (parser.parseOptionalLocationSpecifier(argument.sourceLoc))
        return failure();
      arguments.push_back(argument);
      attributes.push_back(name);
      return success();
    };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
      return failure();
  }
  names = parser.getBuilder().getArrayAttr(attributes);
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  ArrayAttr inputs, carried;
  int64_t persistent, peak, at;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parseArguments(parser, "inputs", arguments, inputs) ||
      parseArguments(parser, "carried", arguments, carried) ||
      parser.parseKeyword("persistent") || parser.parseInteger(persistent) ||
      parser.parseKeyword("peak") || parser.parseInteger(peak) ||
      parser.parseKeyword("at") || parser.parseInteger(at))
    return failure();
  for (Attribute attribute : inputs)
    if (!isa<StringAttr>(attribute))
      return parser.emitError(loc, "the name of an input must be a string");
  for (Attribute attribute : carried)
    if (!isa<CarriedAttr>(attribute))
      return parser.emitError(loc,
                              "a carried buffer is named by its role and unit");
  Builder &builder = parser.getBuilder();
  result.addAttribute(getInputsAttrName(result.name), inputs);
  result.addAttribute(getCarriedAttrName(result.name), carried);
  result.addAttribute(getPersistentBytesAttrName(result.name),
                      builder.getI64IntegerAttr(persistent));
  result.addAttribute(getPeakBytesAttrName(result.name),
                      builder.getI64IntegerAttr(peak));
  result.addAttribute(getPeakInstructionAttrName(result.name),
                      builder.getI64IntegerAttr(at));
  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  ProgramOp::ensureTerminator(*body, builder, result.location);
  return success();
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  Block &block = getBody().front();
  auto arguments = [&](StringRef keyword, ArrayAttr names, unsigned first) {
    if (names.empty())
      return;
    printer.printNewline();
    printer << "    " << keyword << '(';
    for (auto [i, name] : llvm::enumerate(names)) {
      if (first + i >= block.getNumArguments())
        break; // invalid, but must print for the error
      BlockArgument argument = block.getArgument(first + i);
      printer << (i ? ", " : "") << argument << " as ";
      if (auto carried = dyn_cast<CarriedAttr>(name)) {
        printer << stringifyRole(carried.getRole()) << " of ";
        printer.printString(carried.getUnit());
      } else {
        printer.printAttribute(name);
      }
      printer << ": " << argument.getType();
      printer.printOptionalLocationSpecifier(argument.getLoc());
    }
    printer << ')';
  };
  arguments("inputs", getInputs(), 0);
  arguments("carried", getCarried(), getInputs().size());
  printer.printNewline();
  // The getters are unsigned; the step may be -1.
  printer << "    persistent " << static_cast<int64_t>(getPersistentBytes())
          << " peak " << static_cast<int64_t>(getPeakBytes()) << " at "
          << static_cast<int64_t>(getPeakInstruction());
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getInputsAttrName(), getCarriedAttrName(),
       getPersistentBytesAttrName(), getPeakBytesAttrName(),
       getPeakInstructionAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/true);
}
