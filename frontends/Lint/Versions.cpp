//===- Versions.cpp - What depends on releases of accelerate and torch ----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Subject.h"

namespace accel::lint {

namespace {

constexpr const char *section = "fsdp_config";

void checkTorch(const Subject &subject) {
  auto needs = [&](Severity severity, AccelerateVersion least,
                   const Field &field, const std::string &what,
                   const std::string &otherwise) {
    if (subject.torch < least)
      subject.report(severity, "needs-torch", field,
                     what + " needs torch " + toString(least) +
                         " or later, this is " + toString(subject.torch) +
                         otherwise,
                     "install torch " + toString(least));
  };
  Field version = subject.in(section, "fsdp_version");
  if (subject.isFsdp())
    needs(Severity::Error,
          subject.isFsdp2() ? AccelerateVersion{2, 6} : AccelerateVersion{2, 1},
          version, subject.isFsdp2() ? "fsdp_version 2" : "FSDP",
          "; every rank stops");
  if (subject.isFsdp2() && !subject.config->ignoredModules->empty())
    needs(Severity::Warning, {2, 7},
          subject.in(section, "fsdp_ignored_modules"), "fsdp_ignored_modules",
          "; it is dropped");
  if (subject.meshSize("cp") > 1)
    needs(Severity::Error, {2, 6},
          subject.in("parallelism_config", "parallelism_config_cp_size"),
          "context parallelism", "; every rank stops");
}

/// fsdp2_apply_ac, by release.
void noteCheckpointing(const Subject &subject) {
  if (!subject.isFsdp2() || !*subject.config->activationCheckpointing ||
      *subject.config->wrapPolicy == WrapPolicy::None ||
      subject.version < AccelerateVersion{1, 8} ||
      subject.version >= AccelerateVersion{1, 15})
    return;
  subject.report(Severity::Note, "checkpointing-granularity",
                 subject.in(section, "fsdp_activation_checkpointing"),
                 "accelerate " + toString(subject.version) +
                     " checkpoints each child of a layer (attention, MLP, "
                     "norms), which keeps about four tensors a layer where "
                     "1.15 keeps one",
                 "use accelerate 1.15, or the model's own "
                 "gradient_checkpointing");
}

/// fsdp2_prepare_model's casts to fp32, by release.
void checkUpcast(const Subject &subject) {
  if (!subject.isFsdp2() ||
      *subject.config->mixedPrecision == MixedPrecision::No)
    return;
  if (subject.version == AccelerateVersion{1, 13})
    subject.report(Severity::Warning, "upcast-missing",
                   subject.top("mixed_precision"),
                   "accelerate 1.13 does not turn parameters to fp32 as other "
                   "releases do: a bf16 model keeps bf16 master weights",
                   "use accelerate 1.14, or load the model in float32");
  else if (subject.version < AccelerateVersion{1, 13} && subject.job &&
           (!subject.job->trainable->empty() || subject.job->adapter ||
            subject.job->adapterPath.written()))
    subject.report(Severity::Warning, "upcast-frozen",
                   subject.top("mixed_precision"),
                   "accelerate " + toString(subject.version) +
                       " turns frozen parameters to fp32 as well, which "
                       "doubles their memory",
                   "use accelerate 1.14");
}

void checkStateDict(const Subject &subject) {
  Field field = subject.in(section, "fsdp_state_dict_type");
  if (subject.isFsdp2() && field &&
      *subject.config->stateDictType == StateDictType::Full &&
      subject.version < AccelerateVersion{1, 7})
    subject.report(Severity::Error, "needs-accelerate", field,
                   "FULL_STATE_DICT with fsdp_version 2 needs accelerate 1.7, "
                   "this is " +
                       toString(subject.version),
                   "write SHARDED_STATE_DICT");
}

/// FSDP2 with size_based_auto_wrap_policy shards containers, which torch
/// refuses; with the model's tree the check in Units.cpp is exact.
void checkSizeWrap(const Subject &subject) {
  if (subject.tree || !subject.isFsdp2() ||
      *subject.config->wrapPolicy != WrapPolicy::Size ||
      *subject.config->minNumParams <= 0)
    return;
  subject.report(Severity::Warning, "wrap-container",
                 subject.in(section, "fsdp_auto_wrap_policy"),
                 "with fsdp_version 2, SIZE_BASED_WRAP also takes the "
                 "ModuleList of layers if that is large enough, and every "
                 "rank stops with a ValueError",
                 "write TRANSFORMER_BASED_WRAP");
}

} // namespace

void checkVersions(const Subject &subject) {
  if (!subject.config)
    return;
  checkTorch(subject);
  noteCheckpointing(subject);
  checkUpcast(subject);
  checkStateDict(subject);
  checkSizeWrap(subject);
}

} // namespace accel::lint
