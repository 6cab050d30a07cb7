//===- Megatron.cpp - megatron_lm_config ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Subject.h"

namespace accel::lint {

void checkMegatron(const Subject &subject) {
  if (!subject.isType(DistributedType::MegatronLm))
    return;
  const std::string section = "megatron_lm_config";
  auto degree = [&](const char *name, int64_t otherwise) {
    Field field = subject.in(section, std::string("megatron_lm_") + name);
    std::optional<int64_t> value;
    if (field && !field.isNull())
      value = integer(field);
    return value && *value >= 1 && *value <= 1 << 20 ? *value : otherwise;
  };
  // MegatronLMPlugin's own default, since 1.13.
  bool hasContext = subject.version >= AccelerateVersion{1, 13};
  Field context = subject.in(section, "megatron_lm_context_parallel_size");
  int64_t cp = degree("context_parallel_size", hasContext ? 2 : 1);
  if (!hasContext)
    cp = 1;
  Field whole{subject.root->findEntry(section), subject.prefix + section};
  if (hasContext && (!context || context.isNull()))
    subject.report(Severity::Warning, "megatron-context", whole,
                   "context parallelism over 2 ranks is on: that is "
                   "Accelerate's default where "
                   "megatron_lm_context_parallel_size is not written",
                   "write megatron_lm_context_parallel_size: 1", At::Key);
  int64_t tp = degree("tp_degree", 1), pp = degree("pp_degree", 1),
          processes = *subject.config->numProcesses;
  if (processes % (tp * pp * cp) && !subject.config->assumed.numProcesses)
    subject.report(
        Severity::Error, "mesh-product", whole,
        "tensor, pipeline and context parallelism over " + std::to_string(tp) +
            " x " + std::to_string(pp) + " x " + std::to_string(cp) +
            " ranks do not divide num_processes " + std::to_string(processes),
        "num_processes must be a multiple of the product", At::Key);
}

} // namespace accel::lint
