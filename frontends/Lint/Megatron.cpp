//===- Megatron.cpp - Megatron-LM's sizes against a model -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/Megatron.h"

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/Lint/Subject.h"

namespace accel {

namespace {

class MegatronModel {
public:
  MegatronModel(const AccelerateConfig &config, const ModuleTree &tree,
                DiagnosticEngine &engine)
      : settings(*config.megatron), tree(tree), engine(engine) {}

  void heads() {
    const int64_t ranks = *settings.tensorParallel;
    if (ranks <= 1 || tree.sizes.heads == 0 || tree.sizes.heads % ranks == 0)
      return;
    error(settings.tensorParallel, "head-count",
          count(tree.sizes.heads, "attention heads") + " of " +
              tree.architecture +
              " cannot be divided among megatron_lm_tp_degree " +
              std::to_string(ranks),
          "write a divisor of " + std::to_string(tree.sizes.heads));
  }

  void layers() {
    const int64_t stages = *settings.pipelineParallel,
                  last = *settings.lastStageLayers, all = tree.sizes.layers;
    if (stages < 1 || all == 0)
      return;
    const std::string name = "megatron_lm_decoder_last_pipeline_num_layers ";
    if (stages == 1 && last > 0) {
      if (last != all)
        error(settings.lastStageLayers, "stage-layers",
              name + std::to_string(last) +
                  " without pipeline parallelism: the only stage has all " +
                  count(all, "layers") + " of " + tree.architecture,
              "remove the line, or write megatron_lm_pp_degree above 1");
    } else if (last > 0 && last > all - (stages - 1)) {
      error(settings.lastStageLayers, "stage-layers",
            name + std::to_string(last) + " of " + count(all, "layers") +
                " of " + tree.architecture + " leaves too few for " +
                count(stages - 1, stages == 2 ? "other stage" : "other stages"),
            all < stages
                ? "write megatron_lm_pp_degree of at most " +
                      std::to_string(all)
                : "write at most " + std::to_string(all - (stages - 1)));
    } else if (last > 0) {
      if ((all - last) % (stages - 1) == 0)
        return;
      error(settings.lastStageLayers, "stage-layers",
            count(all, "layers") + " of " + tree.architecture + " without " +
                std::to_string(last) +
                " of the last stage cannot be divided among " +
                count(stages - 1, "stages"),
            "leave a multiple of " + std::to_string(stages - 1) + " layers");
    } else if (all % stages != 0) {
      error(settings.pipelineParallel, "stage-layers",
            count(all, "layers") + " of " + tree.architecture +
                " cannot be divided among megatron_lm_pp_degree " +
                std::to_string(stages),
            "write a divisor of " + std::to_string(all) +
                ", or megatron_lm_decoder_last_pipeline_num_layers");
    }
  }

  void sequence(int64_t tokens) {
    const int64_t cp = *settings.contextParallel, tp = *settings.tensorParallel;
    if (cp > 1 && tokens % (2 * cp) != 0)
      return error(settings.contextParallel, "sequence-split",
                   "sequences of " + count(tokens, "tokens") +
                       " cannot be divided into 2 x " + std::to_string(cp) +
                       " chunks of megatron_lm_context_parallel_size",
                   "choose a multiple of " + std::to_string(2 * cp));
    if (tp > 1 && *settings.sequenceParallelism && cp > 0 &&
        (tokens / cp) % tp != 0)
      error(settings.sequenceParallelism, "sequence-split",
            "the " + count(tokens / cp, "tokens") +
                " of a rank cannot be divided among megatron_lm_tp_degree " +
                std::to_string(tp) + ", as sequence parallelism does",
            "choose a multiple of " + std::to_string(tp * cp));
  }

private:
  static std::string count(int64_t n, const char *what) {
    return std::to_string(n) + " " + what;
  }
  template <typename T>
  void error(const Setting<T> &setting, const char *code,
             const std::string &message, const std::string &fix) {
    engine.report(diagnosticAt(setting, Severity::Error, code, message, fix));
  }

  const MegatronSettings &settings;
  const ModuleTree &tree;
  DiagnosticEngine &engine;
};

lint::Field field(const lint::Subject &subject, const char *name) {
  return subject.in("megatron_lm_config", name);
}

/// What stands in the file is a value, if anything does: else a default is in
/// its place, about which there is nothing to say.
template <typename T>
bool readable(const lint::Subject &subject, const Setting<T> &setting,
              const char *name) {
  const lint::Field written = field(subject, name);
  return !written || written.isNull() || setting.written();
}

} // namespace

void checkMegatronModel(const AccelerateConfig &config, const ModuleTree &tree,
                        std::optional<int64_t> tokens,
                        DiagnosticEngine &engine) {
  MegatronModel model(config, tree, engine);
  model.heads();
  model.layers();
  if (tokens)
    model.sequence(*tokens);
}

void checkMegatronOptimizer(const MegatronSettings &settings,
                            DiagnosticEngine &engine) {
  auto wants = [&](const Setting<bool> &key, const std::string &name,
                   const Setting<bool> &other, const std::string &beside) {
    if (*key && !*other)
      engine.report(diagnosticAt(key, Severity::Error, "megatron-optimizer",
                                 name + " without " + beside +
                                     ": every rank stops with an "
                                     "AssertionError",
                                 "write " + beside + ": true"));
  };
  wants(settings.optimizerCpuOffload, "megatron_lm_optimizer_cpu_offload",
        settings.preciseOptimizer, "megatron_lm_use_precision_aware_optimizer");
  wants(settings.preciseOptimizer, "megatron_lm_use_precision_aware_optimizer",
        settings.distributedOptimizer, "megatron_lm_use_distributed_optimizer");
}

bool checkMegatronFamily(const AccelerateConfig &config,
                         std::string_view modelType, DiagnosticEngine &engine) {
  // MODEL_CONFIGS_TO_MEGATRON_PARSERS of accelerate/utils/dataclasses.py, by a
  // part of the type's name.
  struct Parser {
    std::string_view type;
    AccelerateVersion since;
  };
  constexpr Parser parsers[] = {{"megatron-bert", oldestAccelerate},
                                {"gpt2", oldestAccelerate},
                                {"t5", oldestAccelerate},
                                {"llama", oldestAccelerate},
                                {"glm4_moe", {1, 13}}};
  const auto version = parseAccelerateVersion(config.version);
  std::string known;
  for (const Parser &parser : parsers) {
    if (version && *version < parser.since)
      continue;
    if (modelType.find(parser.type) != std::string_view::npos)
      return true;
    known += (known.empty() ? "" : ", ") + std::string(parser.type);
  }
  engine.report(diagnosticAt(
      config.distributedType, Severity::Error, "invalid-value",
      "Accelerate hands Megatron-LM no model of type '" +
          printable(modelType, 40) + "': every rank stops with a ValueError",
      "take a model of one of the types " + known + ", or use FSDP"));
  return false;
}

void lint::checkMegatron(const Subject &subject) {
  if (!subject.isType(DistributedType::MegatronLm) || !subject.config->megatron)
    return;
  const MegatronSettings &m = *subject.config->megatron;
  if (*m.sequenceParallelism && *m.tensorParallel == 1 &&
      readable(subject, m.tensorParallel, "megatron_lm_tp_degree"))
    subject.report(Severity::Note, "ignored-key",
                   field(subject, "megatron_lm_sequence_parallelism"),
                   "megatron_lm_sequence_parallelism has no effect without "
                   "tensor parallelism: Megatron-LM turns it off",
                   "write megatron_lm_tp_degree above 1, or remove the line");
  // parse_glm4_moe_config alone hands it on.
  const bool handsExperts =
      subject.tree &&
      subject.tree->modelType.find("glm4_moe") != std::string::npos;
  if (*m.expertParallel > 1 && !handsExperts)
    subject.report(Severity::Warning, "megatron-experts",
                   field(subject, "megatron_lm_expert_model_parallel_size"),
                   "Accelerate hands Megatron-LM no number of experts: every "
                   "rank stops with an AssertionError",
                   "give num_experts in other_megatron_args of "
                   "MegatronLMPlugin, or write 1");
  if (readable(subject, m.preciseOptimizer,
               "megatron_lm_use_precision_aware_optimizer") &&
      readable(subject, m.distributedOptimizer,
               "megatron_lm_use_distributed_optimizer"))
    checkMegatronOptimizer(m, subject.engine);
  const int64_t stages = *m.pipelineParallel, micro = *m.microBatches;
  if (stages > 1 && micro > 0 && micro < stages &&
      readable(subject, m.microBatches, "megatron_lm_num_micro_batches"))
    subject.report(
        Severity::Note, "pipeline-bubble",
        field(subject, "megatron_lm_num_micro_batches"),
        "of " + std::to_string(stages) + " stages " +
            std::to_string((100 * (stages - 1)) / (stages - 1 + micro)) +
            " % of a step's time is idle with megatron_lm_num_micro_batches " +
            std::to_string(micro),
        "write " + std::to_string(4 * stages) + " or more");
  if (!subject.tree)
    return;
  std::optional<int64_t> tokens;
  if (subject.job && subject.job->data.sequenceLength->has_value())
    tokens = **subject.job->data.sequenceLength;
  if (checkMegatronFamily(*subject.config, subject.tree->modelType,
                          subject.engine))
    checkMegatronModel(*subject.config, *subject.tree, tokens, subject.engine);
}

} // namespace accel
