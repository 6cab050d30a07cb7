//===- Aten.cpp - The aten dialect ------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Custom assembly
//===----------------------------------------------------------------------===//

/// `2` is an integer, `2.0` a floating-point number. An attribute parser would
/// take the colon of the types behind it for its own.
static ParseResult parseScalar(OpAsmParser &parser, TypedAttr &value) {
  Builder &b = parser.getBuilder();
  bool negative = succeeded(parser.parseOptionalMinus());
  int64_t integer = 0;
  OptionalParseResult parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value()) {
    value = b.getI64IntegerAttr(negative ? -integer : integer);
    return *parsed;
  }
  double number = 0;
  if (parser.parseFloat(number))
    return failure();
  value = b.getF64FloatAttr(negative ? -number : number);
  return success();
}

static void printScalar(OpAsmPrinter &printer, Operation *, TypedAttr value) {
  printer.printAttributeWithoutType(value);
}

#include "dialects/Aten/AtenDialect.cpp.inc"
#include "dialects/Aten/AtenEnums.cpp.inc"
#include "dialects/Aten/AtenInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Aten/AtenAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Aten/AtenOps.cpp.inc"

void AtenDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Aten/AtenAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

OpFoldResult TOp::fold(FoldAdaptor) {
  if (auto inner = getSelf().getDefiningOp<TOp>())
    return inner.getSelf();
  return {};
}

OpFoldResult ViewOp::fold(FoldAdaptor) {
  if (getSelf().getType() == getType())
    return getSelf();
  // A view of a view is legal wherever both were: strides compose.
  if (auto inner = getSelf().getDefiningOp<ViewOp>()) {
    getSelfMutable().assign(inner.getSelf());
    return getResult();
  }
  return {};
}

OpFoldResult ToCopyOp::fold(FoldAdaptor) {
  if (getSelf().getType() == getType())
    return getSelf();
  return {};
}

OpFoldResult TypeAsOp::fold(FoldAdaptor) {
  if (getSelf().getType() == getType())
    return getSelf();
  return {};
}
