//===- LoopInputs.cpp - What the training loop of a plan does -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/LoopInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/Positions.h"
#include "frontends/Job/TokenFiles.h"

#include <algorithm>
#include <filesystem>

namespace accel {

namespace fs = std::filesystem;

std::string absolutePath(const std::string &path) {
  if (path.empty())
    return path;
  std::error_code error;
  fs::path result = fs::absolute(path, error);
  return error ? path : result.lexically_normal().string();
}

static plan::Data dataOf(const DataConfig &config) {
  plan::Data data;
  if (config.kind.value == DataKind::None)
    return data;
  data.kind = toString(config.kind.value);
  data.path = absolutePath(config.path.value);
  for (const DataFileConfig &file : config.files)
    data.files.push_back({absolutePath(file.path.value),
                          file.weight.value.value_or(0),
                          absolutePath(file.starts.value)});
  for (const auto &[name, path] : config.arrays)
    data.arrays[name] = absolutePath(path.value);
  if (!config.dtype.value.empty())
    data.dtype = config.dtype.value;
  data.shuffle = config.shuffle.value;
  data.seed = config.seed.value;
  data.endOfDocument = config.endOfDocument.value.value_or(-1);
  data.epochEnd = config.dropLast.value      ? "drop"
                  : config.evenBatches.value ? "repeat"
                                             : "";
  return data;
}

static bool hasMetric(const JobConfig &job, const char *name) {
  const std::vector<std::string> &metrics = job.eval.metrics.value;
  return std::find(metrics.begin(), metrics.end(), name) != metrics.end();
}

bool hasDocuments(const JobConfig &job) {
  return job.data.hasDocuments() || job.eval.data.hasDocuments() ||
         job.data.arrays.count(huggingface::positionsInput);
}

bool wantsPredictions(const JobConfig &job) {
  return job.sampling->count > 0 || hasMetric(job, "accuracy") ||
         !job.eval.predictions.value.empty();
}

namespace {

class LoopChecker {
public:
  LoopChecker(const PlanInputs &inputs, DiagnosticEngine &engine)
      : inputs(inputs), job(inputs.job), engine(engine) {}

  void run() {
    checkEndOfDocument(job.data.endOfDocument);
    if (job.eval.data.endOfDocument.written())
      checkEndOfDocument(job.eval.data.endOfDocument);
    checkLengths(job.data);
    checkLengths(job.eval.data);
    checkEvalSizes();
    if (hasDocuments(job))
      checkDocuments();
    if (wantsPredictions(job))
      checkPredictions();
    if (hasMetric(job, "perplexity") && !isLossOfTokens())
      refuse(job.eval.metrics, "perplexity is of labels that are tokens",
             "write metrics: [accuracy], or none");
  }

private:
  template <typename T>
  void refuse(const Setting<T> &setting, const std::string &what,
              const std::string &hint) {
    engine.report(
        diagnosticAt(setting, Severity::Error, notSupportedCode, what, hint));
  }

  /// It reads tokens alone, as decoders of text do.
  bool isDecoder() const {
    return inputs.model.info().inputs.empty() && inputs.model.config();
  }

  /// The loss is a cross-entropy over the vocabulary.
  bool isLossOfTokens() const {
    const auto &read = inputs.model.info().inputs;
    return isDecoder() ||
           (inputs.model.config() &&
            std::any_of(read.begin(), read.end(), [&](const auto &input) {
              return input.name == "labels" &&
                     input.limit == inputs.model.vocabSize();
            }));
  }

  /// A token that no text can have ends no document.
  void checkEndOfDocument(const Setting<std::optional<int64_t>> &setting) {
    const int64_t vocab = inputs.model.vocabSize();
    if (setting.value && *setting.value >= vocab)
      engine.report(diagnosticAt(
          setting, Severity::Error, "invalid-value",
          "documents.eos is " + std::to_string(*setting.value) +
              ", and the model's vocabulary has ids 0 to " +
              std::to_string(vocab - 1),
          "write the id of the token that ends a document, the eos_token_id "
          "of the tokenizer"));
  }

  /// The length that the command line or a default gives was not known where
  /// the job file was read.
  void checkLengths(const DataConfig &data) {
    const int64_t length = inputs.training.sequenceLength;
    if (inputs.executor != FrameworkKind::AccelRun || length < 1 ||
        data.sequenceLength.value == length)
      return;
    std::vector<Setting<std::string>> paths = {data.path};
    for (const DataFileConfig &file : data.files)
      paths.push_back(file.path);
    for (const Setting<std::string> &path : paths) {
      if (path.value.empty())
        continue;
      const std::optional<int64_t> tokens = tokensIn(path.value, data);
      if (!tokens)
        continue;
      if (std::string problem = tooFewTokens(path.value, *tokens, length);
          !problem.empty())
        engine.report(diagnosticAt(
            path, Severity::Error, "data-size", std::move(problem),
            "write a smaller sequence_length in data, or pass --seq-len"));
    }
  }

  /// The forward is compiled for the sizes of the step.
  void checkEvalSizes() {
    const DataConfig &data = job.eval.data;
    auto check = [&](const Setting<std::optional<int64_t>> &setting,
                     int64_t trained) {
      if (!setting.written() || !setting.value || *setting.value == trained)
        return;
      const std::string key = setting.key.substr(setting.key.find('.') + 1);
      refuse(setting,
             setting.key + " is " + std::to_string(*setting.value) +
                 ", and evaluations run in the sizes of training, whose " +
                 key + " is " + std::to_string(trained),
             "remove it, or write " + std::to_string(trained));
    };
    const plan::Job &training = inputs.training;
    check(data.sequenceLength, training.sequenceLength);
    check(data.targetLength,
          job.data.targetLength.value.value_or(training.sequenceLength));
    check(data.microBatch, training.microBatch);
  }

  void checkDocuments() {
    const Setting<DataKind> &kind = job.data.kind;
    const std::string name = "documents within a sample: ";
    const std::string hint =
        "leave documents out, and samples go over their ends";
    const huggingface::ModelConfig *config = inputs.model.config();
    if (!config)
      return refuse(kind,
                    name + "a .pt2 makes its masks by itself, of the inputs "
                           "that it was exported with",
                    hint);
    const std::string problem =
        huggingface::documentsProblem(*config, inputs.training.sequenceLength);
    if (!problem.empty())
      return refuse(kind, name + problem, hint);
    const plan::Mesh &mesh = *job.accelerate.mesh;
    if (mesh.size("pp") > 1)
      refuse(job.accelerate.mesh,
             name + "stages of a pipeline would have to send the mask on",
             "leave pp at 1, or leave documents out");
    if (mesh.size("cp") > 1 || mesh.size("sp") > 1)
      refuse(job.accelerate.mesh,
             name + "ranks that share a sequence compute attention by the "
                    "order of its tokens alone",
             "leave cp and sp at 1, or leave documents out");
  }

  void checkPredictions() {
    const bool sampling = job.sampling->count > 0;
    const plan::Mesh &mesh = *job.accelerate.mesh;
    const std::string what =
        sampling ? "samples" : "accuracy and predictions of an evaluation";
    const std::string hint =
        sampling ? "leave sample out" : "leave metrics and predictions out";
    auto report = [&](const std::string &why) {
      if (sampling)
        refuse(job.sampling, what + why, hint);
      else if (job.eval.metrics.written())
        refuse(job.eval.metrics, what + why, hint);
      else
        refuse(job.eval.predictions, what + why, hint);
    };
    if (!inputs.model.config())
      return report(" need the logits, which a .pt2 does not return");
    const std::vector<huggingface::ModelInput> &read =
        inputs.model.info().inputs;
    const auto labels =
        std::find_if(read.begin(), read.end(),
                     [](const auto &input) { return input.name == "labels"; });
    if (!read.empty() && (labels == read.end() || labels->limit == 0))
      return report(" are of labels that are classes or tokens, and this "
                    "model's are numbers");
    if (mesh.ranksPerSample() > 1 || mesh.size("pp") > 1)
      return report(" need whole rows of logits on every rank, which ranks of "
                    "pp, tp, cp and sp do not have");
    if (sampling && !isDecoder())
      report(" are of decoders, which read tokens alone");
  }

  const PlanInputs &inputs;
  const JobConfig &job;
  DiagnosticEngine &engine;
};

} // namespace

void checkLoop(const PlanInputs &inputs, DiagnosticEngine &engine) {
  LoopChecker(inputs, engine).run();
}

void fillLoop(const JobConfig &job, plan::Job &training) {
  const ScheduleConfig &schedule = job.schedule;
  training.schedule = {schedule.steps.value,      schedule.warmupSteps.value,
                       schedule.decay.value,      schedule.minLr.value,
                       schedule.cycles.value,     schedule.power.value,
                       schedule.decaySteps.value, schedule.decayShape.value,
                       schedule.timescale.value};
  if (training.lossScaling)
    training.gradScaler = job.gradScaler.value;
  training.collectiveTimeout = job.collectiveTimeout.value;
  training.loggingSteps = job.loggingSteps.value;
  training.data = dataOf(job.data);
  if (job.eval.present) {
    training.evalData = dataOf(job.eval.data);
    training.evalEvery = job.eval.every.value;
    training.evalBatches = job.eval.batches.value;
    training.evalMetrics = job.eval.metrics.value;
    training.evalPredictions = absolutePath(job.eval.predictions.value);
    training.sampling = job.sampling.value;
  }
  const CheckpointConfig &checkpoint = job.checkpoint;
  if (!checkpoint.dir.value.empty())
    training.checkpoint = {absolutePath(checkpoint.dir.value),
                           checkpoint.every.value, checkpoint.keep.value,
                           checkpoint.stateDict.value,
                           checkpoint.background.value};
}

} // namespace accel
