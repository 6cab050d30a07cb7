//===- Aten.cpp - The aten dialect ------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Fused.h"
#include "dialects/Aten/Lora.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel::aten;

#include "dialects/Aten/AtenDialect.cpp.inc"
#include "dialects/Aten/AtenEnums.cpp.inc"
#include "dialects/Aten/AtenInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Aten/AtenAttrs.cpp.inc"

void AtenDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Aten/AtenAttrs.cpp.inc"
      >();
  registerAtenDialectOperations(this);
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenFused.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenLora.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenDropped.cpp.inc"
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
