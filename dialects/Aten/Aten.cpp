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

static ParseResult parseScalar(OpAsmParser &parser, TypedAttr &value) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute attr;
  if (parser.parseAttribute(attr))
    return failure();
  value = dyn_cast<TypedAttr>(attr);
  if (!value || !(value.getType().isF64() || value.getType().isInteger(64)))
    return parser.emitError(loc)
           << "expected an integer or a floating-point number";
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
