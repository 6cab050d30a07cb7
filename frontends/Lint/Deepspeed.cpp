//===- Deepspeed.cpp - deepspeed_config -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// prepare_deepspeed_cmd_env in accelerate/utils/launch.py and DeepSpeedPlugin
// in accelerate/utils/dataclasses.py.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Lint/Subject.h"

#include <algorithm>

namespace accel::lint {

namespace {

constexpr const char *section = "deepspeed_config";

class Deepspeed {
public:
  explicit Deepspeed(const Subject &subject) : subject(subject) {
    Field field = key("zero_stage");
    if (field)
      stage = integer(field).value_or(2);
  }

  void run() {
    if (subject.config->assumed.deepspeed) {
      checkPlaces();
      checkMoe();
      return;
    }
    if (subject.config->deepspeed)
      checkRankGroups(*subject.config->deepspeed,
                      subject.config->assumed.numProcesses
                          ? 0
                          : *subject.config->numProcesses,
                      subject.deepspeed, subject.engine);
    Field file = key("deepspeed_config_file");
    if (file && !file.isNull() && file.text() != "none")
      checkConflict();
    else
      checkStage();
    checkPlaces();
    checkMoe();
  }

private:
  const Subject &subject;
  int64_t stage = 2; // DeepSpeedPlugin's default

  Field key(const char *name) const { return subject.in(section, name); }
  std::string stageText() const {
    return "ZeRO stage " + std::to_string(stage);
  }
  bool device(const char *name, std::string &text) const {
    Field field = key(name);
    text = field && !field.isNull() ? field.text() : "none";
    return text != "none";
  }

  /// _deepspeed_config_checks: names alone count, whatever the values.
  void checkConflict() {
    std::string names;
    Field first;
    for (const char *name :
         {"gradient_accumulation_steps", "gradient_clipping", "zero_stage",
          "offload_optimizer_device", "offload_param_device",
          "offload_param_nvme_path", "offload_optimizer_nvme_path",
          "zero3_save_16bit_model"})
      if (Field field = key(name)) {
        names += (names.empty() ? "" : ", ") + std::string(name);
        if (!first)
          first = field;
      }
    Field mixed = subject.top("mixed_precision");
    if (mixed && !mixed.isNull()) {
      names += (names.empty() ? "" : ", ") + std::string("mixed_precision");
      if (!first)
        first = mixed;
    }
    if (first)
      subject.report(
          Severity::Error, "deepspeed-file-conflict", first,
          "beside deepspeed_config_file these keys may not stand: " + names +
              "; every rank stops with a ValueError",
          "remove them, and set them in the DeepSpeed file", At::Key);
  }

  void checkStage() {
    std::string optimizer, param;
    bool offloadsOptimizer = device("offload_optimizer_device", optimizer),
         offloadsParam = device("offload_param_device", param);
    if (offloadsParam && stage != 3)
      subject.report(Severity::Warning, "offload-no-gain",
                     key("offload_param_device"),
                     "parameters are offloaded with ZeRO stage 3 only, this "
                     "is " +
                         stageText(),
                     "write zero_stage: 3, or offload_param_device: none");
    if (offloadsOptimizer && stage == 0)
      subject.report(Severity::Warning, "offload-no-gain",
                     key("offload_optimizer_device"),
                     "nothing is offloaded with " + stageText(),
                     "write zero_stage: 2, or offload_optimizer_device: none");
    if (optimizer == "nvme" && stage != 3 && stage != 0)
      subject.report(Severity::Warning, "offload-no-gain",
                     key("offload_optimizer_device"),
                     "the optimizer is offloaded to NVMe with ZeRO stage 3 "
                     "only, this is " +
                         stageText(),
                     "write zero_stage: 3, or offload_optimizer_device: cpu");
    checkNvme("optimizer", optimizer == "nvme");
    checkNvme("param", param == "nvme");
    Field init = key("zero3_init_flag");
    if (init && boolean(init).value_or(false) && stage != 3)
      subject.report(Severity::Warning, "ignored-key", init,
                     "'zero3_init_flag' has no effect with " + stageText(),
                     "write false, or zero_stage: 3", At::Key);
    Field save = key("zero3_save_16bit_model");
    if (save && boolean(save).value_or(false) && stage != 3)
      subject.report(Severity::Note, "ignored-key", save,
                     "'zero3_save_16bit_model' has no effect with " +
                         stageText(),
                     "remove it", At::Key);
  }

  /// launch never exports the paths.
  void checkNvme(const std::string &what, bool used) {
    std::string name = "offload_" + what + "_nvme_path";
    Field path = key(name.c_str());
    if (used)
      subject.report(Severity::Warning, "nvme-path",
                     path ? path : key(("offload_" + what + "_device").c_str()),
                     "`accelerate launch` does not pass on " + name +
                         ": DeepSpeed gets the path \"none\" and writes there",
                     "set nvme_path in a deepspeed_config_file, or export "
                     "ACCELERATE_DEEPSPEED_OFFLOAD_" +
                         std::string(what == "param" ? "PARAM" : "OPTIMIZER") +
                         "_NVME_PATH");
    else if (path && !path.isNull() && path.text() != "none")
      subject.report(Severity::Note, "ignored-key", path,
                     "'" + name + "' has no effect unless offload_" + what +
                         "_device is nvme",
                     "remove it", At::Key);
  }

  /// Which machines take part.
  void checkPlaces() {
    bool several = *subject.config->numMachines > 1;
    Field launcher = key("deepspeed_multinode_launcher"),
          hostfile = key("deepspeed_hostfile"),
          exclude = key("deepspeed_exclusion_filter"),
          include = key("deepspeed_inclusion_filter");
    bool standard = launcher && launcher.text() == "standard";
    auto given = [](const Field &f) { return f && !f.isNull(); };
    if (subject.config->assumed.numMachines)
      return;
    if (!several || standard) {
      for (const Field &field : {hostfile, exclude, include})
        if (given(field))
          subject.report(
              Severity::Note, "ignored-key", field,
              "'" + field.entry->key->text + "' has no effect " +
                  (several ? "with the launcher standard" : "on one machine"),
              "", At::Key);
      return;
    }
    if (given(exclude) && given(include))
      subject.report(Severity::Warning, "ignored-key", include,
                     "'deepspeed_inclusion_filter' has no effect beside "
                     "deepspeed_exclusion_filter",
                     "keep one of the two", At::Key);
    if (!given(hostfile))
      subject.report(
          Severity::Warning, "deepspeed-hostfile",
          launcher ? launcher : subject.top("num_machines"),
          "without deepspeed_hostfile the launcher " +
              std::string(given(launcher) ? launcher.text() : "pdsh") +
              " looks for a file named None and then starts this "
              "machine alone",
          "write deepspeed_hostfile, or "
          "deepspeed_multinode_launcher: standard");
  }

  /// set_moe_leaf_modules: split at commas, exact names.
  void checkMoe() {
    Field field = key("deepspeed_moe_layer_cls_names");
    if (!field || field.isNull())
      return;
    std::string text = field.text();
    std::vector<std::string> known;
    if (subject.tree)
      known = subject.tree->classes();
    for (size_t at = 0; at <= text.size();) {
      size_t comma = std::min(text.find(',', at), text.size());
      std::string name = text.substr(at, comma - at);
      at = comma + 1;
      bool blank = name.empty() || name.front() == ' ' || name.back() == ' ' ||
                   name.find_first_of("[]'") != name.npos;
      if (blank)
        subject.report(Severity::Error, "wrap-class-list", field,
                       "the class name \"" + printable(name) +
                           "\" is taken as it stands; every rank stops with "
                           "\"Could not find a transformer layer class\"",
                       "write the names as one string, without blanks");
      else if (subject.tree &&
               std::find(known.begin(), known.end(), name) == known.end())
        subject.report(Severity::Error, "wrap-class-missing", field,
                       "no module of " + subject.tree->architecture +
                           " has the class '" + printable(name) +
                           "'; every rank stops with \"Could not find a "
                           "transformer layer class\"",
                       didYouMean(name, known));
    }
  }
};

} // namespace

void checkDeepspeed(const Subject &subject) {
  if (subject.config && subject.isType(DistributedType::Deepspeed) &&
      subject.has(section))
    Deepspeed(subject).run();
}

} // namespace accel::lint
