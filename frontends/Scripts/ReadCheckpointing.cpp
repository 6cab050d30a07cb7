//===- ReadCheckpointing.cpp - Recomputed layers, in which form -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>

namespace accel::scripts {

/// Arguments of torch.utils.checkpoint itself: Trainer takes its own two out
/// (Trainer.train of transformers 5.23).
static bool hasOthers(const yaml::Node &options) {
  return std::any_of(options.entries.begin(), options.entries.end(),
                     [](const yaml::Entry &entry) {
                       return entry.key->text != "every_n_layers" &&
                              entry.key->text != "offload";
                     });
}

/// The form of torch.utils.checkpoint where no keyword of it is given, and
/// whose choice it is.
std::pair<bool, std::string> SettingsReader::defaultForm() const {
  const Versions &releases = recipe.versions();
  switch (recipe.reader()) {
  case Reader::LlamaFactory:
    return {truth("use_reentrant_gc"), // true by itself
            given("use_reentrant_gc") ? "" : "default of LLaMA-Factory"};
  case Reader::Axolotl: // normalize_config
    return {!value("rl") && !value("unfrozen_parameters"),
            "default of axolotl"};
  case Reader::Sft:
  case Reader::Dpo:
  case Reader::Grpo:
    if (isAtLeast(releases.trl, "0.27"))
      return {false, "default of TRL " + releases.trl};
    break;
  case Reader::Trainer:
    break;
  }
  return {!isAtLeast(releases.transformers, "5.0"),
          "default of transformers " + releases.transformers};
}

void SettingsReader::readCheckpointing() {
  // The new name goes before its deprecated alias.
  const char *name = "activation_checkpointing";
  const char *former = "gradient_checkpointing";
  const Given *now = given(name), *before = given(former);
  if (now && now->value->isNull())
    now = nullptr;
  const std::string counts = now ? name : former;
  bool asked = truth(counts);
  if (!now && !before && checkpointsByDefault)
    asked = *checkpointsByDefault;
  if (before && !now && recipe.reader() == Reader::Trainer && before->info &&
      isAtLeast(recipe.versions().transformers, "5.23"))
    note("former-argument", former,
         "gradient_checkpointing is a deprecated name in transformers 5.23",
         "write activation_checkpointing");
  if (asked || now || before)
    set(settings.layerCheckpointing, asked, counts, asked ? "true" : "false");
  readTrlOffloading(asked);
  // The form counts where nothing is recomputed too: changes that are proposed
  // begin to.
  auto [reentrant, why] = defaultForm();
  for (const char *kwargs :
       {"activation_checkpointing_kwargs", "gradient_checkpointing_kwargs"}) {
    const yaml::Node *options = value(kwargs);
    if (!options || !options->isMapping())
      continue;
    if (const yaml::Node *form = options->find("use_reentrant")) {
      reentrant = form->boolean;
      why.clear();
    } else if (hasOthers(*options)) {
      reentrant = true;
      why = "default of torch.utils.checkpoint";
    }
    if (!asked)
      break;
    if (const yaml::Node *layers = options->find("every_n_layers"))
      readCheckpointedLayers(kwargs, *layers);
    if (const yaml::Node *offload = options->find("offload");
        offload && offload->boolean)
      // save_on_cpu around torch.utils.checkpoint, as Accelerate's
      // (_activation_checkpointing_enable of transformers 5.23).
      set(settings.offloadsCheckpoints, true, kwargs, "offload: true",
          "the inputs of recomputed layers wait in host memory");
    break;
  }
  settings.reentrantCheckpointing = {reentrant, Origin::Derived,
                                     settings.layerCheckpointing.key,
                                     settings.layerCheckpointing.at, why};
}

/// OffloadActivations of trl/models/activation_offloading.py: saved tensors of
/// all but the head go to the host on a stream of their own. Of a layer that is
/// recomputed, that is its input, in both forms of torch's checkpoint.
void SettingsReader::readTrlOffloading(bool recomputes) {
  constexpr const char *name = "activation_offloading";
  const Reader reader = recipe.reader();
  if ((reader != Reader::Sft && reader != Reader::Dpo) || !truth(name))
    return;
  if (!recomputes)
    return refuse(name,
                  "without gradient_checkpointing it moves every saved tensor "
                  "to the host and back, which is not modelled yet",
                  "with gradient_checkpointing: true it moves the inputs of "
                  "recomputed layers, which is modelled");
  set(settings.offloadsCheckpoints, true, name, "true",
      "the inputs of recomputed layers wait in host memory");
}

/// `layer_index % every_n_layers == 0` (_set_gradient_checkpointing of
/// transformers 5.23).
void SettingsReader::readCheckpointedLayers(const char *kwargs,
                                            const yaml::Node &layers) {
  if (layers.kind != yaml::Kind::Int || layers.huge || layers.integer == 0)
    return error("invalid-value", kwargs,
                 "every_n_layers is " + yaml::shortText(layers) +
                     ", and layers are counted by it: the script stops",
                 "write a positive number");
  const int64_t every = std::abs(layers.integer); // Python's remainder of 0
  if (every == 1)
    return;
  set(settings.checkpointedLayers, every, kwargs,
      "every_n_layers: " + std::to_string(every),
      "of " + std::to_string(every) +
          " layers the first is recomputed, the others keep what they saved");
}

void settleCheckpointForm(const Recipe &recipe, JobConfig &job) {
  const Reader reader = recipe.reader();
  const Versions &releases = recipe.versions();
  const AccelerateConfig &a = job.accelerate;
  Setting<bool> &form = job.reentrantCheckpointing;
  const bool asked = *job.script.layerCheckpointing;
  auto force = [&](bool reentrant, const char *why) {
    form.value = reentrant;
    form.why = why;
  };
  // SFTTrainer does since TRL 0.28, the other trainers since 1.9.
  const bool trl = (reader == Reader::Sft && isAtLeast(releases.trl, "0.28")) ||
                   ((reader == Reader::Dpo || reader == Reader::Grpo) &&
                    isAtLeast(releases.trl, "1.9"));
  if (trl && job.adapter && a.deepspeed && *a.deepspeed->zeroStage == 3)
    force(true, "TRL takes it for adapters under ZeRO stage 3");
  else if (reader == Reader::LlamaFactory && *a.strategy == Strategy::Fsdp2)
    force(false, "LLaMA-Factory takes it under FSDP2");
  else if (!asked &&
           (*a.strategy == Strategy::Fsdp1 || *a.strategy == Strategy::Fsdp2))
    force(false, "FSDP's own checkpoints are not reentrant");
  if (!asked)
    return;
  EffectiveValue row;
  row.key = job.script.owner + ".use_reentrant";
  row.effective = *form ? "true" : "false";
  row.why = form.why;
  row.origin = form.why.empty() ? Origin::Written : Origin::Derived;
  job.accelerate.effective.push_back(row);
}

} // namespace accel::scripts
