//===- FrozenParts.cpp - What freezing parameters does --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/FrozenParts.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Job/QuantizedRefusals.h"
#include "frontends/Lint/Subject.h"
#include "runtime/plan/UpdateLayout.h"

#include <map>

namespace accel {

namespace {

constexpr const char *frozenSuffix = "/frozen";

/// A unit as FSDP sees it: accel-run keeps its frozen part as one of its own.
struct Mixed {
  int64_t trained = 0, frozen = 0; // elements
};

std::string stemOf(const std::string &name) {
  return name.ends_with(frozenSuffix)
             ? name.substr(0, name.size() - std::string(frozenSuffix).size())
             : name;
}

void report(const PlanInputs &inputs, DiagnosticEngine &engine,
            Severity severity, const std::string &code, const Location &at,
            const std::string &key, std::string message, std::string hint) {
  engine.report(diagnosticAt(at, key, severity, code, std::move(message),
                             std::move(hint), inputs.job.file));
}

class FrozenReport {
public:
  FrozenReport(const plan::Plan &plan, const PlanInputs &inputs,
               DiagnosticEngine &engine)
      : plan(plan), inputs(inputs), engine(engine) {}

  bool run() {
    std::map<std::string, Mixed> units;
    int64_t trained = 0, all = 0, saved = 0;
    for (const plan::Unit &unit : plan.units) {
      Mixed &mixed = units[stemOf(unit.name)];
      for (int p : unit.parameters) {
        const plan::Parameter &parameter = plan.parameters[p];
        all += parameter.numel();
        (parameter.trainable ? mixed.trained : mixed.frozen) +=
            parameter.numel();
        if (parameter.trainable)
          trained += parameter.numel();
      }
      if (unit.trainable)
        continue;
      saved += trainedBytes(unit);
    }
    if (trained == all)
      return true;
    note(trained, all, saved);
    for (const auto &[name, unit] : units)
      if (!check(name, unit))
        return false;
    return true;
  }

private:
  /// What a rank would hold of a frozen unit's gradients and states, were it
  /// trained: in the framework's dtypes, which may not be the base's.
  int64_t trainedBytes(plan::Unit unit) const {
    const PrecisionPolicy &policy = inputs.job.precision.value;
    const plan::OptimizerRule rule(plan.job.optimizer);
    frameworks::PrecisionAsked asked;
    asked.param = policy.param;
    asked.reduce = policy.reduce;
    if (const MixedPrecision mixed = inputs.job.accelerate.mixedPrecision.value;
        mixed != MixedPrecision::No)
      asked.mixed =
          mixed == MixedPrecision::Fp16 ? plan::DType::F16 : plan::DType::BF16;
    asked.autocast = policy.autocast;
    asked.masterCopies = !rule.description || rule.description->masterCopy;
    const frameworks::Precision precision =
        frameworks::framework(inputs.executor)
            .precision(asked,
                       policy.upcast == Upcast::None ? unit.storage
                                                     : plan::DType::F32,
                       {});
    const auto &deepspeed = inputs.job.accelerate.deepspeed;
    const bool zero = inputs.executor == FrameworkKind::Deepspeed && deepspeed;
    const int64_t stage = zero ? *deepspeed->zeroStage : 0;
    // ZeRO shards states from stage 1 on, and gradients from stage 2 on.
    plan::Unit whole = unit;
    whole.shardAxes.clear();
    if (zero && stage < 1)
      unit.shardAxes.clear();
    unit.storage = precision.state;
    int64_t bytes = shardNumel(plan, zero && stage < 2 ? whole : unit) *
                    plan::itemSize(precision.masterCopy ? precision.reduce
                                                        : precision.gradient);
    if (precision.masterCopy &&
        (precision.compute != plan::DType::F32 || stage > 0))
      bytes += shardNumel(plan, unit) * plan::itemSize(plan::DType::F32);
    for (const plan::StateLayout &state : plan::stateLayouts(plan, unit))
      bytes += state.elements * plan::itemSize(state.dtype);
    return bytes;
  }

  Location place() const {
    const JobConfig &job = inputs.job;
    return job.trainable.written() ? job.trainable.at
           : inputs.adapter        ? inputs.adapter->place("target_modules")
                                   : Location();
  }

  void note(int64_t trained, int64_t all, int64_t saved) {
    report(inputs, engine, Severity::Note, "frozen-parameters", place(),
           inputs.job.trainable.written() ? "trainable" : "adapter",
           lint::countText(trained) + " of " + lint::countText(all) +
               " parameters are trained; gradients and optimizer states of the "
               "others would take " +
               lint::bytesText(static_cast<double>(saved)) + " on a rank",
           "");
  }

  bool check(const std::string &name, const Mixed &unit) {
    const AccelerateConfig &accelerate = inputs.job.accelerate;
    std::string subject =
        name.empty() ? "the root unit" : "unit '" + name + "'";
    if (inputs.executor != FrameworkKind::Fsdp1)
      return true;
    if (!unit.trained || !unit.frozen)
      return true;
    std::string counts = subject + " holds " + lint::countText(unit.trained) +
                         " trainable and " + lint::countText(unit.frozen) +
                         " frozen parameters";
    if (!accelerate.useOrigParams.value) {
      report(inputs, engine, Severity::Error, "mixed-trainable",
             accelerate.useOrigParams.at, "fsdp_config.fsdp_use_orig_params",
             counts + "; FSDP1 stops with \"Must flatten tensors with uniform "
                      "`requires_grad` when `use_orig_params=False`\"",
             "write fsdp_use_orig_params: true, or use fsdp_version: 2");
      return false;
    }
    if (!warned)
      report(inputs, engine, Severity::Warning, "mixed-trainable",
             accelerate.useOrigParams.at, "fsdp_config.fsdp_use_orig_params",
             counts + "; FSDP1 makes and reduces gradients for all of them",
             "use fsdp_version: 2, which reduces what is trained alone");
    warned = true;
    return true;
  }

  const plan::Plan &plan;
  const PlanInputs &inputs;
  DiagnosticEngine &engine;
  bool warned = false;
};

} // namespace

bool checkAdapterDtypes(const PlanInputs &inputs, DiagnosticEngine &engine) {
  plan::DType loaded = inputs.loadedDtype();
  const auto &base = inputs.job.quantization;
  if (!inputs.adapter || plan::itemSize(loaded) >= 4 ||
      (base && widensOthers(*base)))
    return true;
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  const std::string both =
      std::string("PEFT keeps the adapter in fp32, and the model is ") +
      plan::toString(loaded);
  bool plain = !inputs.job.precision.value.param &&
               accelerate.mixedPrecision.value == MixedPrecision::No;
  auto refuse = [&](const char *code, const Location &at, const char *key,
                    const std::string &why, const std::string &hint) {
    report(inputs, engine, Severity::Error, code, at, key, both + "; " + why,
           hint);
    return false;
  };
  const bool ownUnits = inputs.job.transformersTrainer.value;
  if (inputs.executor == FrameworkKind::Fsdp1 && !ownUnits)
    return refuse("mixed-dtypes", accelerate.useOrigParams.at,
                  "fsdp_config.fsdp_version",
                  "FSDP1 stops with \"Must flatten tensors with uniform "
                  "dtype\"",
                  base ? "wrap with PEFT's fsdp_auto_wrap_policy, as "
                         "transformers' Trainer does (--trainer-script)"
                       : "use fsdp_version: 2, wrap with PEFT's "
                         "fsdp_auto_wrap_policy, as transformers' Trainer does "
                         "(--trainer-script), or load the model in float32");
  bool others = !inputs.adapter->modulesToSave.empty() ||
                inputs.adapter->bias != AdapterConfig::Bias::None;
  if (inputs.executor == FrameworkKind::Fsdp2 && plain && others)
    return refuse("mixed-dtypes", accelerate.mixedPrecision.at,
                  "mixed_precision",
                  "modules_to_save and biases train in that: FSDP2 stops with "
                  "\"FSDP expects uniform original parameter dtype\"",
                  "mixed_precision: bf16 keeps all of them in fp32");
  const bool own = inputs.executor == FrameworkKind::AccelRun;
  if (plain && (own || others))
    return refuse(notSupportedCode, accelerate.mixedPrecision.at,
                  "mixed_precision",
                  own ? "accel-run does not compute in both without mixed "
                        "precision yet"
                      : "modules_to_save and biases, which train in that, are "
                        "not modelled yet without mixed precision",
                  "write mixed_precision: bf16");
  return true;
}

bool reportFrozen(const plan::Plan &plan, const PlanInputs &inputs,
                  DiagnosticEngine &engine) {
  return FrozenReport(plan, inputs, engine).run();
}

} // namespace accel
