//===- PlanCommand.cpp - accel-opt plan -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/PlanOptions.h"

#include "passes/Pipeline/Phases.h"
#include "runtime/plan/Optimizers.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Emit/PlanPaths.h"
#include "tools/driver/Inputs/OptimizerInputs.h"
#include "tools/driver/Options/Arguments.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Session/Compile.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace accel;

namespace {

struct EmitKind {
  const char *name, *fileName, *description;
};
const EmitKind emitKinds[] = {
    {"plan", "plan.json", "the program that accel-run executes"},
    {"mlir", "sharded.mlir", "the sharded phase"},
    {"schedule", "scheduled.mlir", "the scheduled phase"},
    {"accelerate", "accelerate.yaml", "the YAML with what would be better"},
    {"python", "fsdp2_plan.py", "FSDP2 as planned, for what no YAML says"},
};

class PlanCommand {
public:
  int run(int argc, char **argv) {
    start = std::chrono::steady_clock::now();
    int exitCode = exitOk;
    if (!parse(argc, argv, exitCode))
      return exitCode;
    CompileResult result = compile(options, engine);
    if (!result.valid)
      return finish(nullptr, result.report,
                    engine.outcome() == Outcome::NotSupported ? exitNotSupported
                    : engine.hasErrors()                      ? exitInvalid
                                                              : exitInternal);
    if (!writeOutputs(result))
      return finish(nullptr, result.report, exitInvalid);
    bool fits = result.report.fits.value_or(true);
    if (const auto &advice = result.report.advice) {
      // What is asked for is then not the configuration as it stands.
      if (advice->tuned)
        fits = advice->tuned->result.best.has_value();
      if (advice->maxBatch)
        fits = advice->maxBatch->fits > 0;
    }
    return finish(result.shown ? &*result.shown : nullptr, result.report,
                  fits ? exitOk : exitDoesNotFit);
  }

private:
  /// NAME=N of --dim.
  bool takeDim(const std::string &text) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return false;
    int64_t value = 0;
    const char *begin = text.data() + equals + 1,
               *end = text.data() + text.size();
    auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || at != end || value < 1 ||
        value > (int64_t(1) << 40))
      return false;
    options.dims.emplace_back(text.substr(0, equals), value);
    return true;
  }

  bool parse(int argc, char **argv, int &exitCode) {
    Arguments arguments(
        "plan", "CONFIG.yaml",
        "Compiles a file written by 'accelerate config', or a job.yaml, and a "
        "model into a plan:\nwhat each rank holds byte by byte, what it does "
        "in which order, and why.");
    PlanOptions &o = options;
    arguments.addText("--model", "PATH", o.model,
                      "Hugging Face folder (config.json [+ *.safetensors])");
    arguments.addText("--adapter", "PATH", o.adapter,
                      "LoRA of PEFT: a folder with adapter_config.json");
    arguments.addText("--target", "NAME|FILE", o.target,
                      "device to plan for; see accel-opt targets");
    arguments.addCount("--nodes", "N", o.nodes,
                       "machines (default: num_machines of the YAML)");
    arguments.addCount("--seq-len", "N", o.sequenceLength,
                       "tokens per sequence (default: the model's, at most "
                       "4096)");
    arguments.addCount("--micro-batch", "N", o.microBatch,
                       "sequences a rank computes at a time (default 1)");
    arguments.addList("--dim", "NAME=N", dims,
                      "an open size of a .pt2: its symbol (s17), an input's "
                      "dimension (x.1)\n"
                      "                                     or batch; may be "
                      "repeated");
    arguments.addCount("--grad-accum", "N", o.accumulation,
                       "micro-batches per optimizer step");
    arguments.addChoice("--accumulation", {"reduce_each", "keep_unsharded"},
                        o.accumulationMode,
                        "reduce gradients every micro-batch, or keep them "
                        "unsharded until the last");
    arguments.addCount("--prefetch", "N", o.prefetch,
                       "units gathered ahead (default 1)");
    arguments.addFlag("--no-prefetch", noPrefetch,
                      "gather each unit where it is used");
    arguments.addChoice("--executor",
                        {"accel-run", "fsdp2", "fsdp1", "ddp", "deepspeed"},
                        o.executor,
                        "who runs the job (default: accel-run for a job.yaml, "
                        "else what\n"
                        "                                     accelerate "
                        "launches)");
    arguments.addText("--accelerate-version", "V", o.accelerateVersion,
                      "judge the YAML as this version (default 1.15.0)");
    arguments.addText("--torch-version", "V", o.torchVersion,
                      "judge the executor as of this torch (default 2.15)");
    arguments.addText("--allocator-conf", "TEXT", o.allocatorConf,
                      "the job's PYTORCH_CUDA_ALLOC_CONF, e.g. "
                      "expandable_segments:True");
    arguments.addText("--memory-budget", "BYTES", o.memoryBudget,
                      "per rank, e.g. 70GiB (default: the target's memory)");
    arguments.addText("--activation-budget", "BYTES", o.activationBudget,
                      "what the layers keep for the backward, all together; "
                      "the rest is recomputed");
    arguments.addText(
        "--loss-chunks", "N|auto", o.lossChunks,
        "pieces of the tokens in which the loss is computed; "
        "auto: as few as\n"
        "                                     bring it below the "
        "rest of the peak (accel-run),\n"
        "                                     or as Liger Kernel's "
        "fused loss (others)");
    arguments.addText("--ddp-kwargs", "KEY=VALUE,...", o.ddpKwargs,
                      "what the script gives DistributedDataParallelKwargs: "
                      "bucket_cap_mb,\n"
                      "                                     "
                      "gradient_as_bucket_view, comm_hook (no, fp16, bf16, "
                      "power_sgd)");
    arguments.addText("--optim", "NAME", o.optim,
                      "the script's optimizer, as TrainingArguments.optim "
                      "names it (default\n"
                      "                                     adamw_torch); "
                      "accel-opt optimizers lists them");
    arguments.addFlag("--hold-outputs", o.holdOutputs,
                      "the script keeps the model's outputs, and so the "
                      "logits, until the\n"
                      "                                     backward has run");
    arguments.addFlag("--gradient-checkpointing", o.gradientCheckpointing,
                      "the script recomputes every layer "
                      "(gradient_checkpointing=True)");
    arguments.addOptional("--tune", "all", o.tune,
                          "search for the fastest setting that fits; =all may "
                          "change written keys");
    arguments.addFlag("--tune-precision", o.tunePrecision,
                      "--tune may change the precision, and so the results");
    arguments.addCount("--global-batch", "N", o.globalBatch,
                       "sequences of a step over all ranks; --tune splits it "
                       "into micro-batches");
    arguments.addFlag("--max-batch", o.maxBatch,
                      "find the largest micro-batch that fits");
    arguments.addText("--remarks", "FILE|-", o.remarks,
                      "write decisions as MLIR remarks: YAML to a file, text "
                      "to stderr for -");
    arguments.addChoice("--compile-to", phaseNames(), o.compileTo,
                        "stop after this phase and print its MLIR");
    arguments.addChoice("--compile-from", phaseNames(), o.compileFrom,
                        "CONFIG.yaml is the MLIR of this phase instead");
    arguments.addText("--dump-phases", "DIR", o.dumpPhases,
                      "write the MLIR of every phase to DIR");
    arguments.addList("--emit", "KIND", o.emit,
                      "plan, mlir, schedule, accelerate or python; may be "
                      "repeated");
    arguments.addText("-o", "PATH", o.output,
                      "file of the one --emit or of --compile-to, or folder "
                      "of several");
    arguments.addChoice("--format", {"text", "json"}, o.format,
                        "text for people, json for programs");
    if (!arguments.parse(argc, argv, exitCode))
      return false;
    exitCode = exitUsage;
    if (arguments.positional.size() != 1) {
      std::fprintf(stderr,
                   "accel-opt plan: error: expected one CONFIG.yaml, got %zu\n",
                   arguments.positional.size());
      return false;
    }
    o.config = arguments.positional[0];
    if (noPrefetch)
      o.prefetch = 0;
    for (const std::string &kind : o.emit)
      if (!findKind(kind)) {
        std::vector<std::string> names;
        for (const EmitKind &k : emitKinds)
          names.push_back(k.name);
        std::string hint = didYouMean(kind, names);
        std::fprintf(stderr,
                     "accel-opt plan: error: '--emit %s': expected plan, mlir, "
                     "schedule, accelerate or python%s%s\n",
                     printable(kind).c_str(), hint.empty() ? "" : "; ",
                     hint.c_str());
        return false;
      }
    for (const std::string &text : dims)
      if (!takeDim(text)) {
        std::fprintf(stderr,
                     "accel-opt plan: error: '--dim %s': expected NAME=N with "
                     "a positive integer, such as batch=4\n",
                     printable(text).c_str());
        return false;
      }
    if (!o.compileTo.empty() && !o.emit.empty()) {
      std::fprintf(stderr,
                   "accel-opt plan: error: --compile-to stops before there is "
                   "anything to --emit; its MLIR goes to -o\n");
      return false;
    }
    if (!o.emit.empty() && o.output.empty()) {
      std::fprintf(stderr, "accel-opt plan: error: --emit needs -o PATH\n");
      return false;
    }
    if (o.emit.empty() && !o.output.empty() && o.compileTo.empty())
      o.emit.push_back("plan");
    if (!o.memoryBudget.empty() && parseBytes(o.memoryBudget) <= 0) {
      std::fprintf(stderr,
                   "accel-opt plan: error: '--memory-budget %s': expected "
                   "bytes such as 70GiB\n",
                   printable(o.memoryBudget).c_str());
      return false;
    }
    std::string problem;
    if (!o.ddpKwargs.empty() && !parseDdpKwargs(o.ddpKwargs, &problem)) {
      std::fprintf(stderr, "accel-opt plan: error: '--ddp-kwargs %s': %s\n",
                   printable(o.ddpKwargs).c_str(), problem.c_str());
      return false;
    }
    if (!o.optim.empty() && !plan::findTransformersOptimizer(o.optim)) {
      std::fprintf(stderr, "accel-opt plan: error: '--optim %s': %s\n",
                   printable(o.optim).c_str(),
                   expectedOptimizer(o.optim).c_str());
      return false;
    }
    if (!o.activationBudget.empty() && o.activationBudget != "0" &&
        parseBytes(o.activationBudget) <= 0) {
      std::fprintf(stderr,
                   "accel-opt plan: error: '--activation-budget %s': expected "
                   "bytes such as 2GiB, or 0\n",
                   printable(o.activationBudget).c_str());
      return false;
    }
    char *end = nullptr;
    if (!o.lossChunks.empty() && o.lossChunks != "auto" &&
        (std::strtol(o.lossChunks.c_str(), &end, 10) < 1 || *end ||
         o.lossChunks.size() > 7)) {
      std::fprintf(stderr,
                   "accel-opt plan: error: '--loss-chunks %s': expected a "
                   "number of pieces, 1 or more, or auto\n",
                   printable(o.lossChunks).c_str());
      return false;
    }
    if (!o.compileFrom.empty() && !checkCompileFrom())
      return false;
    if (!checkTune())
      return false;
    // Who asks for a better file asks for a search, in all of it.
    for (const std::string &kind : o.emit)
      if (o.tune.empty() && (kind == "accelerate" || kind == "python"))
        o.tune = "all";
    if (!o.compileFrom.empty() && !o.compileTo.empty() &&
        *parsePhase(o.compileFrom) > *parsePhase(o.compileTo)) {
      std::fprintf(stderr,
                   "accel-opt plan: error: --compile-from %s comes after "
                   "--compile-to %s\n",
                   o.compileFrom.c_str(), o.compileTo.c_str());
      return false;
    }
    return true;
  }

  bool refuse(const char *message) const {
    std::fprintf(stderr, "accel-opt plan: error: %s\n", message);
    return false;
  }

  bool checkTune() const {
    const PlanOptions &o = options;
    if (!o.tune.empty() && o.maxBatch)
      return refuse("--max-batch takes the configuration as it is, and --tune "
                    "changes it: give one of them");
    if (o.maxBatch && (o.microBatch || o.globalBatch))
      return refuse("--max-batch looks for the micro-batch: leave out "
                    "--micro-batch and --global-batch");
    if (o.globalBatch && o.accumulation)
      return refuse("--global-batch and --micro-batch make --grad-accum: leave "
                    "it out");
    if (o.tunePrecision && o.tune.empty())
      return refuse("--tune-precision has no effect without --tune");
    bool writesSetting = false;
    for (const std::string &kind : o.emit)
      writesSetting |= kind == "accelerate" || kind == "python";
    if (writesSetting && o.maxBatch)
      return refuse("--max-batch has no setting to emit");
    if (!o.compileTo.empty() && (!o.tune.empty() || o.maxBatch))
      return refuse("--compile-to stops before anything is judged: leave out "
                    "--tune and --max-batch");
    return true;
  }

  /// A compiled module has the answers to these options in it already.
  bool checkCompileFrom() const {
    const PlanOptions &o = options;
    const std::pair<const char *, bool> given[] = {
        {"--model", !o.model.empty()},
        {"--adapter", !o.adapter.empty()},
        {"--seq-len", o.sequenceLength > 0},
        {"--micro-batch", o.microBatch > 0},
        {"--grad-accum", o.accumulation > 0},
        {"--accumulation", !o.accumulationMode.empty()},
        {"--activation-budget", !o.activationBudget.empty()},
        {"--loss-chunks", !o.lossChunks.empty()},
        {"--ddp-kwargs", !o.ddpKwargs.empty()},
        {"--optim", !o.optim.empty()},
        {"--hold-outputs", o.holdOutputs},
        {"--gradient-checkpointing", o.gradientCheckpointing},
        {"--prefetch or --no-prefetch", o.prefetch >= 0},
        {"--executor", !o.executor.empty()},
        {"--tune", !o.tune.empty()},
        {"--max-batch", o.maxBatch},
        {"--global-batch", o.globalBatch > 0}};
    for (auto [name, isGiven] : given)
      if (isGiven) {
        std::fprintf(stderr,
                     "accel-opt plan: error: %s has no effect with "
                     "--compile-from: the module says it\n",
                     name);
        return false;
      }
    return true;
  }

  static const EmitKind *findKind(const std::string &name) {
    for (const EmitKind &kind : emitKinds)
      if (name == kind.name)
        return &kind;
    return nullptr;
  }

  /// "-" is standard output; the report is then on standard error.
  static bool writeOutput(const std::string &path, const std::string &text,
                          std::string &error) {
    if (path != "-")
      return plan::writeFileAtomically(path, text, error);
    if (std::fputs(text.c_str(), stdout) != EOF && std::fflush(stdout) == 0)
      return true;
    error = std::strerror(errno);
    return false;
  }

  bool writeOutputs(const CompileResult &result) {
    if (!options.compileTo.empty() && !options.output.empty()) {
      std::string error;
      if (writeOutput(options.output, result.report.mlir, error))
        return true;
      engine.error("write-failed", options.output, error);
      return false;
    }
    bool folder = options.emit.size() > 1;
    if (folder) {
      std::error_code error;
      std::filesystem::create_directories(options.output, error);
      if (error) {
        engine.error("write-failed", options.output, error.message());
        return false;
      }
    }
    for (const std::string &name : options.emit) {
      std::string path = folder
                             ? options.output + "/" + findKind(name)->fileName
                             : options.output;
      std::string error;
      std::optional<std::string> text = textOf(name, result, path);
      if (!text)
        return false;
      if (!writeOutput(path, *text, error)) {
        engine.error("write-failed", path, error);
        return false;
      }
    }
    return true;
  }

  /// What a kind of output says in the file `path`; nothing if it cannot be,
  /// which is reported.
  std::optional<std::string> textOf(const std::string &kind,
                                    const CompileResult &result,
                                    const std::string &path) {
    if (kind == "plan") {
      plan::Plan plan = *result.program;
      makePathsRelative(plan, path, options.config);
      return plan::toJson(plan);
    }
    if (kind == "schedule")
      return result.scheduled;
    if (kind == "mlir")
      return result.sharded;
    const std::optional<Advice> &advice = result.report.advice;
    if (!advice || !advice->tuned) {
      engine.error("not-tuned", options.config,
                   "there is no setting to emit: the layout of the units is "
                   "none that the search knows");
      return std::nullopt;
    }
    return kind == "accelerate" ? emitAccelerate(*advice, engine)
                                : emitPython(*advice, *result.chosen, engine);
  }

  int finish(const plan::Plan *plan, PlanReport report, int exitCode) {
    report.planningSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (options.format == "json") {
      std::fputs(renderPlanJson(plan, report, engine).c_str(), stdout);
      return exitCode;
    }
    if (!options.compileTo.empty() && exitCode == exitOk) {
      if (options.output.empty())
        std::fputs(report.mlir.c_str(), stdout);
    } else if (plan) {
      std::fputs(renderPlanText(*plan, report).c_str(),
                 options.output == "-" ? stderr : stdout);
    }
    RenderOptions render;
    bool toOut = options.compileTo.empty() && options.output != "-";
    render.colour = wantsColour(toOut ? STDOUT_FILENO : STDERR_FILENO);
    std::string text = renderText(engine, render);
    if (!text.empty()) {
      std::fputs(plan && toOut ? "\n" : "", stdout);
      std::fflush(stdout);
      std::fputs(text.c_str(), toOut ? stdout : stderr);
    }
    if (exitCode == exitInternal)
      std::fprintf(stderr,
                   "accel-opt plan: internal error; reproduce it with the same "
                   "command and --dump-phases DIR\n");
    return exitCode;
  }

  std::chrono::steady_clock::time_point start;
  PlanOptions options;
  DiagnosticEngine engine;
  bool noPrefetch = false;
  std::vector<std::string> dims;
};

} // namespace

int accel::planCommand(int argc, char **argv) {
  return PlanCommand().run(argc, argv);
}
