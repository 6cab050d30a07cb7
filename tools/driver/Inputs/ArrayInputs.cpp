//===- ArrayInputs.cpp - The arrays that a model reads --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/ArrayInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/Positions.h"
#include "tools/driver/Inputs/LoopInputs.h"

#include <algorithm>

namespace accel {
namespace {

class ArrayChecker {
public:
  ArrayChecker(const PlanInputs &inputs, const PlanOptions &options,
               DiagnosticEngine &engine)
      : job(inputs.job), options(options), engine(engine),
        known(inputs.model.info().inputs), causal(known.empty()) {
    if (!causal)
      return;
    known = {{"input_ids"}, {"labels"}};
    // Only where the data have them, so that other plans stay as they are.
    if (const auto *config = inputs.model.config();
        config && hasDocuments(inputs.job))
      known.push_back({huggingface::positionsInput,
                       huggingface::positionRows(*config), true});
  }

  const std::vector<huggingface::ModelInput> &modelInputs() const {
    return known;
  }

  void check(const DataConfig &data, const std::string &section) {
    std::string required, all;
    for (const huggingface::ModelInput &input : known) {
      all += (all.empty() ? "" : ", ") + input.name;
      if (!input.optional)
        required += (required.empty() ? "" : ", ") + input.name + ": FILE.npy";
    }
    const std::string hint =
        "write " + section + ": {arrays: {" + required + "}, ...}";
    if (data.kind.value != DataKind::Arrays) {
      if (!causal)
        error(data.kind.at, data.kind.key,
              "the model reads more than tokens, which " +
                  std::string(toString(data.kind.value)) + " data do not have",
              hint);
      return;
    }
    for (const auto &[name, path] : data.arrays)
      if (std::none_of(known.begin(), known.end(),
                       [&](const auto &i) { return i.name == name; }))
        error(path.at, path.key, "the model reads no '" + printable(name) + "'",
              "it reads " + all);
    for (const huggingface::ModelInput &input : known) {
      const bool given = data.arrays.count(input.name);
      if (!given && !input.optional)
        error(data.kind.at, section + ".arrays",
              "the model reads '" + input.name + "', which has no array", hint);
      if (section == "eval" && input.optional &&
          given != static_cast<bool>(job.data.arrays.count(input.name)))
        error(data.kind.at, "eval.arrays",
              "'" + input.name + "' must be in both data and eval, or in none",
              "one program reads both");
    }
  }

private:
  void error(const Location &at, const std::string &key,
             const std::string &message, const std::string &hint) {
    engine.report(diagnosticAt(at, key, Severity::Error, "array-names", message,
                               hint, options.config));
  }

  const JobConfig &job;
  const PlanOptions &options;
  DiagnosticEngine &engine;
  std::vector<huggingface::ModelInput> known;
  const bool causal;
};

} // namespace

void checkArrays(PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine) {
  ArrayChecker checker(inputs, options, engine);
  for (const huggingface::ModelInput &input : checker.modelInputs())
    if (input.limit > 0)
      inputs.training.inputLimits.push_back({input.name, input.limit});
  if (!inputs.job.isJob)
    return;
  checker.check(inputs.job.data, "data");
  if (inputs.job.eval.present)
    checker.check(inputs.job.eval.data, "eval");
}

} // namespace accel
