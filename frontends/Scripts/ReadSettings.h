//===- ReadSettings.h - Arguments as typed settings -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_READSETTINGS_H
#define ACCEL_FRONTENDS_SCRIPTS_READSETTINGS_H

#include "frontends/Job/JobConfig.h"
#include "frontends/Scripts/AccelerateMapping.h"
#include "frontends/Scripts/ScriptArguments.h"

namespace accel::scripts {

/// The modules that PEFT gives a LoRA where nobody names them; none for a model
/// that it does not know.
std::vector<std::string> loraTargets(std::string_view modelType);

/// Turns the arguments of a recipe into settings, and into keys of Accelerate
/// where they decide what Accelerate does. One object reads one recipe.
class SettingsReader {
public:
  /// `hasScript`: a script was described, so that its defaults hold; else only
  /// what is given counts.
  /// `typeOf`: the model_type of a model, for PEFT's choice of modules.
  SettingsReader(Recipe &recipe, bool hasScript, AccelerateMapping &accelerate,
                 std::function<std::string(const std::string &model)> typeOf,
                 NodeStore &nodes, DiagnosticEngine &engine)
      : recipe(recipe), hasScript(hasScript), accelerate(accelerate),
        typeOf(std::move(typeOf)), nodes(nodes), engine(engine) {}

  ScriptSettings read();
  /// Adds the script's rows of `lint --effective` to those of the accelerate
  /// file, and says there what the script replaces.
  void addEffective(std::vector<EffectiveValue> &table) const;

private:
  // ReadSettings.cpp
  const Given *given(const std::string &name) const {
    return recipe.given().find(name);
  }
  /// The value that counts: given, else the default of the script's class.
  const yaml::Node *value(const std::string &name) const;
  bool truth(const std::string &name) const;
  std::optional<int64_t> integer(const std::string &name) const;
  std::optional<double> number(const std::string &name) const;
  std::string text(const std::string &name) const;
  /// Sets value and provenance, and adds a row.
  template <typename T>
  void set(Setting<T> &setting, T value, const std::string &name,
           const std::string &effective, const std::string &why = "");
  void row(const std::string &name, const std::string &effective,
           const std::string &why);
  void error(const char *code, const std::string &name,
             const std::string &message, const std::string &hint = "");
  void refuse(const std::string &name, const std::string &message,
              const std::string &hint = "");
  void note(const char *code, const std::string &name,
            const std::string &message, const std::string &hint = "");
  /// An argument with a name of TrainingArguments for what `like` says.
  void stand(const std::string &name, const yaml::Node *value,
             const Given &like);
  /// A key of Accelerate at the place of the argument.
  const yaml::Node *textAt(const std::string &name, const std::string &text);

  void readBatch();
  void readPrecision();
  void noteReplacedFp8(const std::string &by);
  void readOptimizer();
  void readCheckpointing();
  void readTrlOffloading(bool recomputes);
  std::pair<bool, std::string> defaultForm() const;
  void readCheckpointedLayers(const char *kwargs, const yaml::Node &layers);
  void readCompile();
  void readKernels();
  void readDistribution();
  void readAccelerator();
  void readUnusedParameters();
  void checkEvaluation();
  void readAxolotlEvaluation();
  void takeCount(Setting<std::optional<int64_t>> &setting, const char *name);
  void readPredictions();
  void checkDataLoader();

  // FsdpConfig.cpp
  void readFsdp();
  void readFsdpConfig(const Given &asked, const yaml::Node &config,
                      const std::string &file);

  // ReadDistributed.cpp
  void readDistributedConfig();
  bool readExpertExchange(const yaml::Node &way, int64_t experts,
                          int64_t tensor);
  void readOwnShards(const OwnShards &shards, bool offloads);

  // ReadAdapter.cpp
  void readModel();
  void readAdapter();
  void readQuantization();

  // Preference.cpp
  void readTrainer();
  void readLength();
  void readLoss();
  void readBalancing();
  std::optional<double> axolotlBalancing();
  void readReference(const std::string &name);
  void readGeneration();

  // Axolotl.cpp, LlamaFactory.cpp: their own names and values as those of
  // transformers and TRL.
  void checkAxolotl();         // AxolotlRules.cpp
  void readAdapterFunctions(); // AxolotlRules.cpp
  void translateAxolotl();
  void translateAxolotlLoss();
  void translateAxolotlFrozen();
  void translateAxolotlOffloading();
  void translateAxolotlAttention();
  void translateAxolotlAdapter();
  void translateLlamaFactory();

  Recipe &recipe;
  const bool hasScript;
  AccelerateMapping &accelerate;
  std::function<std::string(const std::string &)> typeOf;
  NodeStore &nodes;
  DiagnosticEngine &engine;
  ScriptSettings settings;
  std::vector<EffectiveValue> rows;
  /// The mixed_precision of the accelerate file that the script replaces.
  std::string replacedPrecision;
  /// LLaMA-Factory checkpoints layers unless told otherwise.
  std::optional<bool> checkpointsByDefault;
};

template <typename T>
void SettingsReader::set(Setting<T> &setting, T value, const std::string &name,
                         const std::string &effective, const std::string &why) {
  const Given *from = given(name);
  setting.value = std::move(value);
  setting.key = from ? from->written : name;
  setting.origin = from ? Origin::Written : Origin::Default;
  if (from)
    setting.at = from->at();
  setting.why = !why.empty() ? why : from ? "" : "default of " + settings.owner;
  row(name, effective, setting.why);
}

/// Puts the form of recomputed layers that a library takes for the job's
/// adapter and sharding in place of the asked one, and adds a row for `lint
/// --effective`.
void settleCheckpointForm(const Recipe &recipe, JobConfig &job);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_READSETTINGS_H
