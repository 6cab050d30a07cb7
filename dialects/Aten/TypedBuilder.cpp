//===- TypedBuilder.cpp - One builder for every aten operation ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/TypedBuilder.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace accel::aten {

Attribute BuildArgument::asAttribute(MLIRContext *context) const {
  Builder b(context);
  struct Visitor {
    Builder &b;
    Attribute operator()(std::monostate) { return {}; }
    Attribute operator()(bool held) { return b.getBoolAttr(held); }
    Attribute operator()(int64_t held) { return b.getI64IntegerAttr(held); }
    Attribute operator()(double held) { return b.getF64FloatAttr(held); }
    Attribute operator()(const llvm::APFloat &held) {
      return b.getFloatAttr(b.getF64Type(), held);
    }
    Attribute operator()(StringRef held) { return b.getStringAttr(held); }
    Attribute operator()(Type held) { return TypeAttr::get(held); }
    Attribute operator()(ArrayRef<int64_t> held) {
      return b.getDenseI64ArrayAttr(held);
    }
    Attribute operator()(ArrayRef<bool> held) {
      return b.getDenseBoolArrayAttr(held);
    }
  };
  return attribute ? attribute : std::visit(Visitor{b}, scalar);
}

/// A rule that builds an operation with other arguments than it has.
[[noreturn]] static void reportBadBuild(OperationState &state,
                                        const Twine &what) {
  llvm::report_fatal_error("building '" + state.name.getStringRef() +
                           "': " + what);
}

void buildByArguments(OperationState &state, ArrayRef<StringRef> names,
                      ArrayRef<BuildArgument> arguments,
                      std::optional<TypeRange> results) {
  std::optional<RegisteredOperationName> info = state.name.getRegisteredInfo();
  MLIRContext *context = state.getContext();
  if (arguments.size() > names.size())
    reportBadBuild(state, "more arguments than it has");
  NamedAttrList attributes;
  const auto isAttribute = [&](StringRef name) {
    return llvm::is_contained(info->getAttributeNames(), name);
  };
  SmallVector<int32_t> segments;
  for (auto [argument, name] : llvm::zip(arguments, names)) {
    if (argument.isOperand == isAttribute(name))
      reportBadBuild(state, "'" + name + "' is of another kind");
    if (argument.isOperand) {
      size_t before = state.operands.size();
      if (argument.isRange)
        state.addOperands(argument.range);
      else if (argument.value)
        state.addOperands(argument.value);
      segments.push_back(state.operands.size() - before);
    } else if (Attribute attribute = argument.asAttribute(context)) {
      attributes.append(name, attribute);
    }
  }
  if (info->hasTrait<OpTrait::AttrSizedOperandSegments>())
    attributes.append("operandSegmentSizes",
                      DenseI32ArrayAttr::get(context, segments));
  if (OpaqueProperties properties = state.getRawProperties()) {
    auto emitError = [&] { return mlir::emitError(state.location); };
    if (failed(info->setOpPropertiesFromAttribute(
            state.name, properties, attributes.getDictionary(context),
            emitError)))
      reportBadBuild(state, "an attribute of another kind");
    info->populateDefaultProperties(properties);
  } else if (!attributes.empty()) {
    reportBadBuild(state, "attributes that it does not have");
  }
  if (results) {
    state.addTypes(*results);
    return;
  }
  auto *infer = info->getInterface<InferTypeOpInterface>();
  if (!infer)
    reportBadBuild(state, "result types cannot be inferred");
  SmallVector<Type, 2> types;
  if (failed(infer->inferReturnTypes(context, state.location, state.operands,
                                     state.attributes.getDictionary(context),
                                     state.getRawProperties(), state.regions,
                                     types)))
    mlir::detail::reportFatalInferReturnTypesError(state);
  state.addTypes(types);
}

} // namespace accel::aten
