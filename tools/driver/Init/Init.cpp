//===- Init.cpp - A configuration from a target and a model ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Init/Init.h"

#include "frontends/Schema/Published.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Init/InitFiles.h"
#include "tools/driver/Inputs/EditFiles.h"
#include "tools/driver/Inputs/OffloadInputs.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace accel {
namespace {

class Initialiser {
public:
  Initialiser(const InitOptions &options, DiagnosticEngine &engine)
      : options(options), engine(engine) {
    const std::string folder =
        options.folder == "." ? "" : options.folder + "/";
    result.accelerateFile = folder + "accelerate.yaml";
    result.argumentsFile = folder + "training_arguments.yaml";
  }

  InitResult run() {
    const int64_t ranks = options.processes;
    const int64_t batch = options.globalBatch.value_or(8 * ranks);
    if (batch % ranks) {
      engine.error("batch-not-divisible", "",
                   "a step of " + std::to_string(batch) +
                       " sequences cannot be shared by " +
                       std::to_string(ranks) + " ranks",
                   "write --global-batch " +
                       std::to_string((batch / ranks + 1) * ranks));
      return std::move(result);
    }
    result.onCpu = isCpu();
    std::vector<FrameworkKind> executors = {FrameworkKind::Single};
    if (ranks > 1)
      executors = {FrameworkKind::Ddp};
    if (ranks > 1 && !result.onCpu)
      executors.push_back(FrameworkKind::Fsdp2);
    for (FrameworkKind executor : executors)
      tryExecutor(executor, batch / ranks);
    if (ranks > 1 && result.onCpu)
      result.choices.push_back(
          {"FSDP2", {}, false, "accelerate shards nothing on CPUs"});
    if (!best) {
      nothing();
      return std::move(result);
    }
    write();
    return std::move(result);
  }

private:
  struct Attempt {
    InitChoice choice;
    std::vector<tune::YamlLine> lines;
    yaml::FileTexts plain;
    init::Reasons reasons;
  };

  bool isCpu() const {
    DiagnosticEngine silent; // each plan reads it, and says what is wrong
    const auto target = loadTarget(options.plan.target, silent);
    return target && target->kind == TargetKind::Cpu;
  }

  /// The job under one executor, and what the search makes of its files.
  void tryExecutor(FrameworkKind executor, int64_t batchOfRank) {
    Attempt attempt;
    PlanOptions plan = options.plan;
    plan.config = result.accelerateFile;
    plan.script.trainerFiles = {result.argumentsFile};
    plan.tune = TuneScope::All;
    plan.scriptFileIsYaml = true;
    attempt.plain = {
        {result.accelerateFile,
         init::accelerateText(executor, options, result.onCpu)},
        {result.argumentsFile,
         init::argumentsText(executor, options, batchOfRank, result.onCpu)}};
    plan.texts = attempt.plain;
    DiagnosticEngine quiet;
    CompileResult compiled = compile(plan, quiet);
    attempt.choice.strategy = compiled.report.strategy;
    const std::optional<Advice> &advice = compiled.report.advice;
    // Under FSDP2 a plan warns of it, and has what its states would take.
    const bool stops = std::any_of(
        quiet.all().begin(), quiet.all().end(),
        [](const Diagnostic &d) { return d.code == "unusable-optimizer"; });
    if (!compiled.valid || !advice || !advice->yaml || stops) {
      refuse(executor, quiet, std::move(attempt.choice));
      return;
    }
    const Tuned &tuned = *advice->yaml;
    attempt.choice.fits = tuned.result.best.has_value();
    attempt.choice.predicted = tuned.predicted;
    if (!attempt.choice.fits)
      attempt.choice.predicted.deviceBytes =
          tuned.result.smallest.evaluation.bytes;
    result.choices.push_back(attempt.choice);
    budget = advice->budgetBytes;
    room = advice->roomBytes;
    if (!attempt.choice.fits ||
        (best && best->choice.predicted.stepSeconds <=
                     attempt.choice.predicted.stepSeconds))
      return;
    attempt.lines = tuned.lines;
    attempt.reasons = reasonsOf(*advice, tuned);
    best = std::move(attempt);
  }

  /// An error of one executor alone keeps it out; one of all is the user's.
  void refuse(FrameworkKind executor, const DiagnosticEngine &quiet,
              InitChoice choice) {
    if (choice.strategy.empty())
      choice.strategy = toString(executor);
    for (const Diagnostic &d : quiet.sorted())
      if (d.severity == Severity::Error || d.code == "unusable-optimizer") {
        if (choice.refused.empty())
          choice.refused = d.message;
        errors.push_back(d);
        errors.back().severity = Severity::Error;
      }
    if (choice.refused.empty())
      choice.refused = "its units are none that the search knows";
    result.choices.push_back(std::move(choice));
  }

  init::Reasons reasonsOf(const Advice &advice, const Tuned &tuned) const {
    init::Reasons reasons = init::plainReasons(options, result.onCpu);
    for (const tune::Decided &d : tuned.decisions) {
      std::string why = d.choice;
      if (d.refused)
        why += "; otherwise " + refusal(advice, d);
      for (const tune::YamlLine &line :
           advice.editor->express(d.knob, tuned.result.best->point).yaml)
        reasons[line.key.substr(line.key.rfind('.') + 1)] = why;
    }
    // What a key of the search leaves alone is said by another one.
    for (const auto &[key, why] :
         std::initializer_list<std::pair<const char *, const char *>>{
             {"fsdp_offload_params", "parameters and optimizer stay on the "
                                     "device"},
             {"activation_checkpointing", "nothing is recomputed"},
             {"per_device_train_batch_size", "the rank's share of a step"},
             {"use_liger_kernel", "the model's own loss"}})
      reasons.try_emplace(key, why);
    reasons["gradient_accumulation_steps"] =
        "with it a step has " +
        std::to_string(options.globalBatch.value_or(8 * options.processes)) +
        " sequences over all ranks";
    return reasons;
  }

  void nothing() {
    const bool refused =
        std::all_of(result.choices.begin(), result.choices.end(),
                    [](const InitChoice &c) { return !c.refused.empty(); });
    if (refused) {
      for (const Diagnostic &d : errors)
        engine.report(d);
      return;
    }
    std::string text;
    for (const InitChoice &c : result.choices)
      if (c.refused.empty())
        text += (text.empty() ? "" : ", ") + c.strategy + " " +
                formatBytes(c.predicted.deviceBytes);
    engine.error("nothing-fits", "",
                 "no setting fits in " + formatBytes(budget) + " per rank" +
                     (room < budget ? ", of which --confidence leaves " +
                                          formatBytes(room)
                                    : "") +
                     "; the smallest are " + text,
                 "more ranks (--num-processes), shorter sequences (--seq-len), "
                 "an adapter (--adapter) or a leaner --optim" +
                     withoutOffload());
  }

  /// Why no choice has anything on the host, where the target's file is why.
  std::string withoutOffload() const {
    if (result.onCpu)
      return "";
    DiagnosticEngine silent; // it was read already
    const auto target = loadTarget(options.plan.target, silent);
    if (!target)
      return "";
    const std::string why = whyNotOffloaded(*target, /*updates=*/true);
    return why.empty() ? "" : "; nothing is offloaded: " + why;
  }

  void write() {
    FileEditor editor(best->plain);
    for (const tune::YamlLine &line : best->lines)
      if (!editor.set(line)) {
        engine.error("cannot-edit", line.file,
                     "'" + textOf(line) +
                         "' cannot be written: " + editor.why());
        return;
      }
    best->reasons["distributed_type"] = whyExecutor();
    yaml::FileTexts texts;
    for (const std::string &file :
         {result.accelerateFile, result.argumentsFile})
      texts[file] = init::commented(editor.text(file), best->reasons);
    // The files as they are, comments and all, are what is planned.
    PlanOptions plan = options.plan;
    plan.config = result.accelerateFile;
    plan.script.trainerFiles = {result.argumentsFile};
    plan.texts = texts;
    DiagnosticEngine reading; // its notes are on lines that we wrote
    result.planned = compile(plan, reading);
    for (const Diagnostic &d : reading.sorted())
      if (d.severity != Severity::Note)
        engine.report(d);
    if (!result.planned.valid || !result.planned.report.fits.value_or(true)) {
      engine.error(
          "not-certified", result.accelerateFile,
          "the files take more than the search was told: " +
              formatBytes(result.planned.report.prediction.deviceBytes) +
              " of " + formatBytes(budget),
          "give a smaller --memory-budget");
      return;
    }
    finish(texts);
  }

  std::string whyExecutor() const {
    std::string text;
    for (const InitChoice &c : result.choices) {
      if (c.strategy == best->choice.strategy)
        continue;
      text += (text.empty() ? "" : "; ") + c.strategy +
              (!c.refused.empty() ? " cannot: " + c.refused
               : c.fits ? " takes " + formatSeconds(c.predicted.stepSeconds) +
                              " a step"
                        : " takes " + formatBytes(c.predicted.deviceBytes) +
                              ", which does not fit");
    }
    return best->choice.strategy + (text.empty() ? "" : "; " + text);
  }

  void finish(yaml::FileTexts texts) {
    const PlanReport &report = result.planned.report;
    const StepPrediction &p = report.prediction;
    std::string head =
        "# By accel-opt init for " + report.title + " on " +
        std::to_string(options.processes) + " x " +
        result.planned.shown->target + ", " +
        std::to_string(result.planned.shown->job.sequenceLength) +
        " tokens a sequence:\n# " + formatBytes(p.deviceBytes) + " of " +
        formatBytes(budget) + " per rank, " + formatSeconds(p.stepSeconds) +
        " a step, " + formatGrouped(p.tokensPerSecondPerDevice) +
        " tokens/s per rank.\n";
    for (auto &[file, text] : texts)
      text.insert(0, head);
    std::string &accelerate = texts[result.accelerateFile];
    accelerate = schema::withModeline(
        accelerate, schema::SchemaKind::Accelerate,
        parseAccelerateVersion(options.plan.accelerateVersion)
            .value_or(newestAccelerate));
    auto chosen = std::find_if(result.choices.begin(), result.choices.end(),
                               [&](const InitChoice &c) {
                                 return c.strategy == best->choice.strategy;
                               });
    std::rotate(result.choices.begin(), chosen, chosen + 1);
    result.launch =
        init::launchCommand(options, result.onCpu, result.accelerateFile);
    result.texts = std::move(texts);
  }

  const InitOptions &options;
  DiagnosticEngine &engine;
  InitResult result;
  std::optional<Attempt> best;
  std::vector<Diagnostic> errors;
  int64_t budget = 0, room = 0; // of an advice
};

} // namespace

InitResult initialise(const InitOptions &options, DiagnosticEngine &engine) {
  return Initialiser(options, engine).run();
}

std::string renderInit(const InitResult &result) {
  std::string out;
  for (const InitChoice &c : result.choices) {
    if (result.texts.empty() && !c.refused.empty())
      continue; // told as an error
    out += "  " + padRight(c.strategy, 14);
    if (!c.refused.empty()) {
      out += "cannot: " + c.refused + "\n";
      continue;
    }
    out += padLeft(formatBytes(c.predicted.deviceBytes), 10) +
           (c.fits ? padLeft(formatSeconds(c.predicted.stepSeconds), 12) +
                         " a step"
                   : "  at least: does not fit") +
           (&c == &result.choices.front() && !result.texts.empty() ? "   chosen"
                                                                   : "") +
           "\n";
  }
  if (result.texts.empty())
    return out;
  return renderJobLine(*result.planned.shown, result.planned.report) + "\n" +
         renderVerdict(*result.planned.shown, result.planned.report, false) +
         "\n" + out + "\n  " + result.launch + " train.py " +
         result.argumentsFile +
         "\n  # train.py reads them by HfArgumentParser.parse_yaml_file; of "
         "TRL: --config\n";
}

std::string renderInitJson(const InitResult &result,
                           const DiagnosticEngine &engine) {
  using Json = nlohmann::ordered_json;
  Json files = Json::object(), choices = Json::array();
  for (const auto &[file, text] : result.texts)
    files[file] = text;
  for (const InitChoice &c : result.choices)
    choices.push_back(
        {{"strategy", c.strategy},
         {"refused", c.refused.empty() ? Json() : Json(c.refused)},
         {"fits", c.fits},
         {"device_bytes",
          c.refused.empty() ? Json(c.predicted.deviceBytes) : Json()},
         {"step_s", c.fits ? Json(c.predicted.stepSeconds) : Json()}});
  Json root = {{"files", files}, {"choices", choices}};
  root["plan"] =
      result.planned.shown
          ? Json::parse(renderPlanJson(&*result.planned.shown,
                                       result.planned.report, engine))
          : Json();
  root["diagnostics"] = Json::parse(renderJson(engine));
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace accel
