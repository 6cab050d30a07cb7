//===- Precision.cpp - The dtypes of each unit ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Quantize/QuantizedAttr.h"
#include "runtime/plan/Optimizers.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace accel {
#define GEN_PASS_DEF_PRECISIONPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

plan::DType toDType(Type type) {
  if (type.isF64())
    return plan::DType::F64;
  if (type.isF32())
    return plan::DType::F32;
  if (type.isBF16())
    return plan::DType::BF16;
  return plan::DType::F16;
}

struct PrecisionPass : accel::impl::PrecisionPassBase<PrecisionPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "precision");
    auto asked = [&](StringRef name) -> Type {
      auto attr =
          request ? request.getValue().getAs<TypeAttr>(name) : TypeAttr();
      return attr ? attr.getValue() : Type();
    };
    for (StringRef name : {"param", "reduce", "output", "mixed"})
      if (Attribute given = request ? request.getValue().get(name) : nullptr)
        if (!isa_and_present<Float64Type, Float32Type, BFloat16Type,
                             Float16Type>(asked(name))) {
          request.emitOpError() << "asks for the " << name << " dtype " << given
                                << ", expected f64, f32, bf16 or f16";
          return signalPassFailure();
        }
    const frameworks::Framework &framework = frameworkOf(module);
    const frameworks::Versions versions = versionsOf(module);
    frameworks::PrecisionAsked wanted;
    for (auto [name, to] : {std::pair<StringRef, std::optional<plan::DType> *>{
                                "param", &wanted.param},
                            {"reduce", &wanted.reduce},
                            {"output", &wanted.output},
                            {"mixed", &wanted.mixed}})
      if (Type type = asked(name))
        *to = toDType(type);
    if (const auto *optimizer = optimizerOf(module))
      wanted.masterCopies = optimizer->masterCopy;
    wanted.autocast = request && request.getValue().get("autocast");
    bool upcast = request && request.getValue().get("upcast");
    bool upcastFrozen = request && request.getValue().get("upcast_frozen");
    auto why = request ? request.getBecause()
                       : sharding::BecauseAttr::get(
                             &getContext(),
                             "default: the dtype of the checkpoint throughout");
    llvm::StringMap<sharding::ParamOp> params;
    for (auto param : module.getOps<sharding::ParamOp>())
      params[param.getFqn()] = param;
    for (auto unit : module.getOps<sharding::UnitOp>()) {
      Type storage;
      sharding::PrecisionAttr precision;
      bool frozen = false;
      for (auto fqn : unit.getParams().getAsRange<StringAttr>()) {
        auto it = params.find(fqn.getValue());
        if (it == params.end()) {
          unit.emitOpError()
              << "holds '" << fqn.getValue() << "', which is no sharding.param";
          return signalPassFailure();
        }
        Type element = it->second.getTensorType().getElementType();
        frozen = it->second.getFrozen();
        if (upcast && (!frozen || upcastFrozen))
          element = Float32Type::get(&getContext());
        if (storage == element)
          continue;
        // DeepSpeed casts all parameters to one dtype.
        auto own = attribute(
            framework.precision(wanted, toDType(element), versions), why);
        if (precision && precision != own) {
          reportMixed(unit, storage, element, !frozen, params);
          return signalPassFailure();
        }
        storage = element;
        precision = own;
      }
      if (precision)
        unit.setPrecisionAttr(precision);
    }
  }

private:
  /// A flat buffer has one dtype. FSDP2 shards each parameter by itself, and
  /// asks the trained ones of a unit for one (_init_mp_dtypes of
  /// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
  static void reportMixed(sharding::UnitOp unit, Type first, Type second,
                          bool trained,
                          const llvm::StringMap<sharding::ParamOp> &params) {
    const FrameworkKind kind =
        frameworkOf(unit->getParentOfType<mlir::ModuleOp>()).kind();
    const bool sharded = trained && kind == FrameworkKind::Fsdp2;
    InFlightDiagnostic error =
        mlir::emitError(unit.getLoc())
        << (unit.getName().empty() ? std::string("the root unit")
                                   : "unit '" + unit.getName().str() + "'")
        << (sharded ? " trains" : " has") << " parameters of " << wordFor(first)
        << " and " << wordFor(second);
    if (sharded)
      error << "; FSDP2 stops with \"FSDP expects uniform original parameter "
               "dtype\" [mixed-dtypes]";
    else if (kind == FrameworkKind::Fsdp1)
      error << "; FSDP1 stops with \"Must flatten tensors with uniform dtype\" "
               "[mixed-dtypes]";
    else if (kind == FrameworkKind::AccelRun)
      error << "; accel-run has one buffer of one dtype for a unit "
               "[not-supported]";
    else
      error << ", which is not modelled yet [not-supported]";
    const bool quantized = llvm::any_of(params, [](const auto &param) {
      return param.second->hasAttr(quantizedAttr);
    });
    error.attachNote(unit.getLoc())
        << (!sharded ? "load the model in fp32 (--dtype float32)"
            : quantized
                ? "call prepare_model_for_kbit_training before the adapter is "
                  "made, which turns what is not quantised into fp32 "
                  "(--quantize nf4,prepared)"
                : "accelerate from 1.14 on turns what is trained into fp32 "
                  "under mixed_precision: bf16; or load the model in fp32 "
                  "(--dtype float32)");
  }

  /// As diagnostics name dtypes.
  static StringRef wordFor(Type type) {
    switch (toDType(type)) {
    case plan::DType::F64:
      return "fp64";
    case plan::DType::F32:
      return "fp32";
    case plan::DType::BF16:
      return "bf16";
    default:
      return "fp16";
    }
  }

  Type typeOf(plan::DType dtype) { return floatType(&getContext(), dtype); }

  /// Dtypes that are the storage's are left out where that is the rule.
  sharding::PrecisionAttr attribute(const frameworks::Precision &p,
                                    sharding::BecauseAttr why) {
    auto unless = [&](plan::DType dtype) {
      return dtype == p.storage ? Type() : typeOf(dtype);
    };
    return sharding::PrecisionAttr::get(
        &getContext(), typeOf(p.storage), typeOf(p.compute), typeOf(p.reduce),
        typeOf(p.output), why, unless(p.gradient), unless(p.state), p.autocast,
        p.masterCopy);
  }
};

} // namespace
