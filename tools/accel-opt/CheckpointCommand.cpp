//===- CheckpointCommand.cpp - accel-opt checkpoint -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Convert.h"
#include "frontends/Checkpoint/ConvertedStates.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Checkpoint/RenderCheckpoint.h"
#include "tools/driver/Output/OutputFile.h"
#include "tools/driver/Text/Format.h"
#include "tools/options/Arguments.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <unistd.h>

using namespace accel;
using namespace std::chrono_literals;

namespace {

void printFindings(const DiagnosticEngine &engine) {
  RenderOptions render;
  render.colour = wantsColour(STDERR_FILENO);
  std::fputs(renderText(engine, render).c_str(), stderr);
}

int inspect(const std::string &folder, ReportFormat format, bool tensors) {
  DiagnosticEngine engine;
  const std::optional<checkpoint::Checkpoint> read = checkpoint::readCheckpoint(
      folder, checkpoint::Wanted::Everything, engine);
  if (format == ReportFormat::Json) {
    std::fputs(checkpointJson(read, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (read)
    std::fputs(renderCheckpoint(*read, tensors).c_str(), stdout);
  printFindings(engine);
  return static_cast<int>(engine.outcome());
}

/// A line on a terminal, from two seconds on and twice a second.
class MergeProgress {
public:
  explicit MergeProgress(int64_t bytes) : bytes(bytes) {}
  void operator()(int64_t done) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (!terminal || now - begin < 2s || now - shown < 500ms)
      return;
    shown = now;
    std::fprintf(stderr, "\r%3d %% of %s", int(100.0 * done / bytes),
                 formatBytes(bytes).c_str());
  }
  ~MergeProgress() {
    if (shown != std::chrono::steady_clock::time_point())
      std::fputs("\r\033[K", stderr);
  }

private:
  const int64_t bytes;
  const bool terminal = isatty(STDERR_FILENO);
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown;
};

enum class Resumer {
  Safetensors,
  TorchDcp,
  Accelerate,
  AccelRun,
  Deepspeed,
  Trainer
};

struct ConvertArguments {
  std::optional<Resumer> to;
  int64_t samples = 0; // 0: not said
  int64_t steps = 0;   // of the optimizer; 0: not said
  int64_t ranks = 0;   // 0: the plan's
  int64_t stage = 2;   // of ZeRO; the folders of 1 and 2 are the same
  int64_t subGroup = checkpoint::ZeroFolder().subGroup; // of ZeRO 3
  std::string plan;                                     // a file, or ""
};

/// Whether ranks keep parts of parameters, as under FSDP.
bool cutsParameters(const plan::Plan &plan) {
  return std::any_of(
      plan.units.begin(), plan.units.end(),
      [](const plan::Unit &unit) { return !unit.shardAxes.empty(); });
}

std::optional<checkpoint::Converted>
convertTrained(const checkpoint::Trained &trained, const std::string &output,
               const ConvertArguments &arguments, const plan::Plan *plan,
               const std::function<void(int64_t)> &done,
               DiagnosticEngine &engine) {
  if (plan && !checkpoint::isOfModel(trained, *plan, output, engine))
    return std::nullopt;
  if (arguments.to == Resumer::AccelRun)
    return checkpoint::convertToRun(trained, plan, arguments.samples, output,
                                    done, engine);
  const bool trainer = arguments.to == Resumer::Trainer;
  if (trainer ||
      (arguments.to == Resumer::Accelerate && !cutsParameters(*plan)))
    return checkpoint::convertToReplicas(trained, *plan, trainer, output, done,
                                         engine);
  if (arguments.to == Resumer::Deepspeed)
    return checkpoint::convertToZero(
        trained, *plan,
        {arguments.ranks ? arguments.ranks : plan->ranks(), arguments.stage,
         arguments.subGroup},
        output, done, engine);
  return checkpoint::convertToDcp(trained, arguments.to == Resumer::Accelerate,
                                  plan, output, done, engine);
}

/// Says that the loss scale is not carried, where it is not: GradScaler's other
/// keys are a plan's, and DeepSpeed's loader takes none from a file. One that
/// is as a run begins with is none.
void leaveScale(checkpoint::Trained &trained,
                const checkpoint::Checkpoint &read,
                const ConvertArguments &arguments, const plan::Plan *plan) {
  if (!trained.scale || arguments.to == Resumer::AccelRun ||
      (plan && plan->job.lossScaling && arguments.to != Resumer::Deepspeed))
    return;
  const bool own = read.format == checkpoint::FolderFormat::AccelRun;
  const checkpoint::LossScale first;
  if (own && trained.scale->scale == first.scale &&
      trained.scale->goodSteps == first.goodSteps)
    return;
  trained.leftBehind["loss scale"] = {checkpoint::Beside::Scaler,
                                      {own ? "state.json" : "scaler.pt"}};
}

/// "random states of a rank (random_states_0.pkl and 1 more)": by their files,
/// of which some hold several things.
std::string leftBehindText(const checkpoint::Trained &trained) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byFiles;
  for (const auto &[meaning, left] : trained.leftBehind) {
    const std::string what = printable(meaning.substr(0, meaning.rfind(" (")));
    auto same =
        std::find_if(byFiles.begin(), byFiles.end(), [&](const auto &entry) {
          return entry.second == left.files;
        });
    if (same == byFiles.end())
      byFiles.emplace_back(what, left.files);
    else
      same->first += ", " + what;
  }
  std::string text;
  for (const auto &[what, files] : byFiles)
    text += (text.empty() ? "" : ", ") + what + " (" +
            printablePath(files.front()) +
            (files.size() > 1
                 ? " and " + std::to_string(files.size() - 1) + " more)"
                 : ")");
  return text;
}

std::string convertJson(const std::optional<checkpoint::Converted> &converted,
                        const std::optional<checkpoint::Trained> &trained,
                        const std::string &output,
                        const DiagnosticEngine &engine) {
  using Json = nlohmann::ordered_json;
  Json json = nullptr, leftBehind = Json::object(), replaced = Json::array();
  if (trained) {
    for (const auto &[meaning, left] : trained->leftBehind)
      leftBehind[meaning] = left.files;
    for (const auto &[name, saved, planned] : trained->replaced)
      replaced.push_back(
          {{"name", name}, {"checkpoint", saved}, {"plan", planned}});
  }
  if (converted)
    json = {{"folder", output},
            {"parameters", converted->parameters},
            {"states", converted->states},
            {"steps", converted->steps},
            {"bytes", converted->bytes},
            {"files", converted->files},
            {"left_behind", leftBehind},
            {"replaced", replaced}};
  if (converted && trained->samples)
    json["samples"] = *trained->samples;
  if (converted && !trained->stepsFrom.empty())
    json["steps_from"] = trained->stepsFrom;
  return "{\"converted\": " +
         json.dump(1, ' ', false, Json::error_handler_t::replace) +
         ",\n\"diagnostics\": " + renderJson(engine) + "}\n";
}

int convert(const std::string &folder, const std::string &output,
            const ConvertArguments &arguments, ReportFormat format,
            const Arguments &command) {
  DiagnosticEngine engine;
  std::optional<checkpoint::Converted> converted;
  plan::Plan plan;
  std::string error;
  const bool planned = !arguments.plan.empty();
  if (planned && !plan::readPlan(arguments.plan, plan, error))
    engine.error("invalid-plan", "", error);
  std::optional<checkpoint::Checkpoint> read;
  if (!engine.hasErrors() && !liesInInput(output, folder, engine))
    read = checkpoint::readCheckpoint(folder, checkpoint::Wanted::Training,
                                      engine);
  std::optional<checkpoint::Trained> trained;
  if (read)
    trained = checkpoint::readTrained(*read, planned ? &plan : nullptr,
                                      arguments.steps, engine);
  if (trained && !trained->steps &&
      (trained->hasStates() ||
       (arguments.to == Resumer::AccelRun &&
        checkpoint::keepsNoStates(planned ? &plan : nullptr))))
    return command.usageError(
        "this checkpoint does not say how many steps its optimizer has done "
        "(SGD keeps no count, and no schedule is there that does): give "
        "--steps N");
  if (trained && arguments.to == Resumer::AccelRun && !trained->samples &&
      arguments.samples == 0)
    return command.usageError(
        "--to accel-run needs --samples N: this checkpoint does not say how "
        "many sequences its run has read (steps x accumulation x ranks x "
        "sequences of a micro-batch)");
  // The plan's own is written.
  if (trained &&
      (arguments.to == Resumer::Accelerate ||
       arguments.to == Resumer::Deepspeed || arguments.to == Resumer::Trainer))
    std::erase_if(trained->leftBehind, [](const auto &left) {
      return left.second.what == checkpoint::Beside::Schedule;
    });
  if (trained) {
    leaveScale(*trained, *read, arguments, planned ? &plan : nullptr);
    int64_t bytes = 0;
    for (const auto &[name, parameter] : trained->parameters) {
      bytes += parameter.weight->bytes;
      for (const auto &[kind, state] : parameter.states)
        bytes += state->bytes;
    }
    MergeProgress progress(std::max<int64_t>(1, bytes));
    converted =
        convertTrained(*trained, output, arguments, planned ? &plan : nullptr,
                       std::ref(progress), engine);
  }
  if (format == ReportFormat::Json) {
    std::fputs(convertJson(converted, trained, output, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (converted)
    std::printf("%s: step %lld, %lld parameters, %lld states of the optimizer, "
                "%s\n",
                printablePath(output).c_str(),
                static_cast<long long>(converted->steps),
                static_cast<long long>(converted->parameters),
                static_cast<long long>(converted->states),
                formatBytes(converted->bytes).c_str());
  if (converted && arguments.to == Resumer::Accelerate)
    std::puts(cutsParameters(plan)
                  ? "  for load_state under FSDP2 with SHARDED_STATE_DICT"
                  : "  for load_state under DDP or in one process");
  if (converted && arguments.to == Resumer::Deepspeed)
    std::printf("  for load_checkpoint under ZeRO %s on %lld ranks\n",
                arguments.stage == 3 ? "3" : "1 and 2",
                static_cast<long long>(arguments.ranks ? arguments.ranks
                                                       : plan.ranks()));
  if (converted && trained->samples)
    std::printf("  it has read %lld sequences\n",
                static_cast<long long>(*trained->samples));
  if (converted && !trained->stepsFrom.empty())
    std::printf("  its steps are those of %s; --steps N says others\n",
                printable(trained->stepsFrom).c_str());
  for (size_t i = 0; converted && i < trained->replaced.size(); ++i)
    std::printf("  the plan's %s %s counts, not the checkpoint's %s\n",
                trained->replaced[i].name.c_str(),
                trained->replaced[i].planned.c_str(),
                trained->replaced[i].saved.c_str());
  if (converted && !trained->leftBehind.empty())
    std::printf("  not carried: %s\n", leftBehindText(*trained).c_str());
  printFindings(engine);
  return static_cast<int>(engine.outcome());
}

int merge(const std::string &folder, const std::string &output,
          const checkpoint::MergeOptions &options, ReportFormat format) {
  DiagnosticEngine engine;
  std::optional<checkpoint::Merged> merged;
  std::optional<checkpoint::Checkpoint> read;
  if (!liesInInput(output, folder, engine))
    read =
        checkpoint::readCheckpoint(folder, checkpoint::Wanted::Weights, engine);
  if (read)
    merged = checkpoint::planMerge(*read, options, engine);
  if (merged) {
    MergeProgress progress(std::max<int64_t>(1, merged->bytes));
    if (!checkpoint::writeMerged(*merged, output, std::ref(progress), engine))
      merged.reset();
  }
  if (format == ReportFormat::Json) {
    std::fputs(mergeJson(merged, output, engine).c_str(), stdout);
    return static_cast<int>(engine.outcome());
  }
  if (merged)
    std::fputs(renderMerge(*merged, output).c_str(), stdout);
  printFindings(engine);
  return static_cast<int>(engine.outcome());
}

} // namespace

int accel::checkpointCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  bool tensors = false;
  std::string output;
  checkpoint::MergeOptions options;
  Arguments arguments(
      "accel-opt checkpoint", "inspect|merge|convert DIR",
      "inspect says what a checkpoint folder holds: torch's distributed\n"
      "checkpoints, Accelerate's save_state, DeepSpeed, safetensors, "
      "torch.save,\naccel-run. merge writes its weights as safetensors that "
      "transformers loads,\nconvert weights and states of the optimizer as "
      "another trainer resumes from them.\nNames, headers and metadata are "
      "read; no pickle is run.");
  arguments.flag("--tensors", tensors, "inspect: list each tensor");
  arguments
      .option("-o", output, textValue("DIR"),
              "merge, convert: the folder to write, which is not there "
              "yet")
      .once();
  arguments.option("--max-shard-size", options.partBytes, bytesValue("5GB"),
                   "merge: bytes of a part at most (default 5GB)");
  arguments.option(
      "--dtype", options.dtype,
      choiceValue<std::string>(
          {{"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}}),
      "merge: what floating-point weights become (default: each "
      "as it is)");
  ConvertArguments conversion;
  arguments.option("--to", conversion.to,
                   choiceValue<std::optional<Resumer>>(
                       {{"accel-run", Resumer::AccelRun},
                        {"accelerate", Resumer::Accelerate},
                        {"dcp", Resumer::TorchDcp},
                        {"deepspeed", Resumer::Deepspeed},
                        {"safetensors", Resumer::Safetensors},
                        {"trainer", Resumer::Trainer}}),
                   "convert: who resumes; safetensors is merge");
  arguments.option("--samples", conversion.samples, countValue(),
                   "convert: sequences that all ranks have trained on, which "
                   "accel-run goes on behind; its own checkpoints say it");
  arguments.option("--steps", conversion.steps, countValue(),
                   "convert: steps that the optimizer has done, where neither "
                   "its states nor a schedule beside them say it (SGD)");
  arguments.option("--ranks", conversion.ranks, countValue(),
                   "convert: ranks that deepspeed resumes on (default: the "
                   "plan's)");
  arguments.option("--stage", conversion.stage,
                   choiceValue<int64_t>({{"1", 1}, {"2", 2}, {"3", 3}}),
                   "convert: stage of ZeRO under which deepspeed resumes "
                   "(default 2, whose folder is that of 1)");
  arguments.option("--sub-group-size", conversion.subGroup, countValue(),
                   "convert: sub_group_size of the configuration under which "
                   "deepspeed resumes (default 1e9); with --stage 3");
  arguments.option("--plan", conversion.plan, textValue("PLAN.json"),
                   "convert: groups of the optimizer and tied parameters, for "
                   "accelerate, dcp, deepspeed and trainer; names of "
                   "parameters that the optimizer "
                   "numbers (DDP, the Trainer)");
  arguments.option("--format", format, formatValue(),
                   "text for people, json (with each tensor) for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  const std::vector<std::string> &words = arguments.positional;
  const std::string mode = words.size() == 2 ? words[0] : "";
  if (mode != "inspect" && mode != "merge" && mode != "convert")
    return arguments.usageError("expected 'inspect DIR', 'merge DIR -o DIR' or "
                                "'convert DIR -o DIR --to WHOM'");
  const bool weights = mode == "merge" || conversion.to == Resumer::Safetensors;
  const bool zero = conversion.to == Resumer::Deepspeed;
  struct Owned {
    const char *name;
    bool own;
    const char *owner;
  };
  const Owned owned[] = {
      {"--tensors", mode == "inspect", "inspect"},
      {"-o", mode != "inspect", "merge and convert"},
      {"--max-shard-size", weights, "merge"},
      {"--dtype", weights, "merge"},
      {"--to", mode == "convert", "convert"},
      {"--samples", conversion.to == Resumer::AccelRun, "--to accel-run"},
      {"--steps", mode == "convert" && !weights,
       "convert, to others than safetensors"},
      {"--ranks", zero, "--to deepspeed"},
      {"--stage", zero, "--to deepspeed"},
      {"--sub-group-size", zero, "--to deepspeed"},
      {"--plan", mode == "convert" && !weights,
       "convert, to others than safetensors"}};
  for (const auto &[name, own, owner] : owned)
    if (!own && arguments.given(name))
      return arguments.usageError(std::string(name) + " belongs to " + owner);
  if (mode == "inspect")
    return inspect(words[1], format, tensors);
  if (output.empty())
    return arguments.usageError(mode + " needs -o DIR");
  if (weights)
    return merge(words[1], output, options, format);
  if (!conversion.to)
    return arguments.usageError(
        "convert needs --to "
        "accel-run|accelerate|dcp|deepspeed|safetensors|trainer");
  if (conversion.to == Resumer::Accelerate && conversion.plan.empty())
    return arguments.usageError(
        "--to accelerate needs --plan PLAN.json, which says the groups of the "
        "optimizer");
  if (conversion.to == Resumer::Deepspeed && conversion.plan.empty())
    return arguments.usageError(
        "--to deepspeed needs --plan PLAN.json, which says the groups of the "
        "optimizer");
  if (conversion.stage != 3 && arguments.given("--sub-group-size"))
    return arguments.usageError("--sub-group-size is of --stage 3: under ZeRO "
                                "1 and 2 each group is one flat tensor");
  if (conversion.to == Resumer::Trainer && conversion.plan.empty())
    return arguments.usageError(
        "--to trainer needs --plan PLAN.json, which says the groups of the "
        "optimizer");
  return convert(words[1], output, conversion, format, arguments);
}
