//===- PlanOptions.cpp - What a user asks of a plan -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/PlanOptions.h"

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Frameworks/Framework.h"
#include "passes/Pipeline/Phases.h"
#include "tools/driver/Options/DdpOption.h"
#include "tools/driver/Options/OptimizerOption.h"
#include "tools/driver/Options/QuantizationOption.h"
#include "tools/driver/Output/OutputFile.h"
#include "tools/options/Arguments.h"

#include <algorithm>

namespace accel {
namespace {

struct EmitInfo {
  EmitKind kind;
  const char *name, *fileName;
};
constexpr EmitInfo emitKinds[] = {
    {EmitKind::Plan, "plan", "plan.json"},
    {EmitKind::Mlir, "mlir", "sharded.mlir"},
    {EmitKind::Schedule, "schedule", "scheduled.mlir"},
    {EmitKind::Accelerate, "accelerate", "accelerate.yaml"},
    {EmitKind::Python, "python", "fsdp2_plan.py"},
    {EmitKind::Job, "job", "job.yaml"},
    {EmitKind::Megatron, "megatron", "megatron.args"},
    {EmitKind::Torchtitan, "torchtitan", "torchtitan.toml"},
    {EmitKind::Perfetto, "perfetto", "trace.json"},
    {EmitKind::MemorySnapshot, "memory-snapshot", "memory.pickle"},
    {EmitKind::Dot, "dot", "schedule.dot"},
};

ValueKind<EmitKind> emitValue() {
  std::vector<std::pair<std::string, EmitKind>> choices;
  for (const EmitInfo &info : emitKinds)
    choices.emplace_back(info.name, info.kind);
  return choiceValue(std::move(choices));
}

ValueKind<Phase> phaseValue() {
  std::vector<std::pair<std::string, Phase>> choices;
  for (const PhaseInfo &info : phases())
    choices.emplace_back(info.name, info.phase);
  return choiceValue(std::move(choices));
}

/// An executor, or a trainer that has models and defaults of its own over one.
ValueKind<FrameworkKind> executorValue(std::string &trainer) {
  std::vector<std::pair<std::string, FrameworkKind>> choices;
  for (FrameworkKind kind :
       {FrameworkKind::AccelRun, FrameworkKind::Fsdp2, FrameworkKind::Fsdp1,
        FrameworkKind::Ddp, FrameworkKind::Deepspeed})
    choices.emplace_back(toString(kind), kind);
  choices.emplace_back("torchtitan",
                       *frameworks::trainerExecutor("torchtitan"));
  ValueKind<FrameworkKind> kind = choiceValue(std::move(choices));
  kind.read = [&trainer, read = kind.read](const std::string &word,
                                           FrameworkKind &value) {
    trainer = frameworks::trainerExecutor(word) ? word : "";
    return read(word, value);
  };
  return kind;
}

ValueKind<LossChunks> lossChunksValue() {
  constexpr int64_t most = 9'999'999;
  return {"N|auto", [](const std::string &word, LossChunks &value) {
            int64_t count = 0;
            if (word == "auto")
              value.count.reset();
            else if (parseInteger(word, count) && count >= 1 && count <= most)
              value.count = count;
            else
              return std::string(
                  "expected a number of chunks, 1 or more, or auto");
            return std::string();
          }};
}

/// "336x336".
ValueKind<std::pair<int64_t, int64_t>> imageSizeValue() {
  return {"HxW",
          [](const std::string &word, std::pair<int64_t, int64_t> &value) {
            constexpr int64_t most = 1 << 16;
            const size_t by = word.find('x');
            if (by != std::string::npos &&
                parseInteger(word.substr(0, by), value.first) &&
                parseInteger(word.substr(by + 1), value.second) &&
                std::min(value.first, value.second) >= 1 &&
                std::max(value.first, value.second) <= most)
              return std::string();
            return std::string("expected rows and columns of pixels, such as "
                               "336x336");
          }};
}

/// "batch=4".
ValueKind<std::pair<std::string, int64_t>> dimValue() {
  return {"NAME=N",
          [](const std::string &word, std::pair<std::string, int64_t> &value) {
            const size_t equals = word.find('=');
            if (equals != std::string::npos && equals > 0 &&
                parseInteger(word.substr(equals + 1), value.second) &&
                value.second >= 1 && value.second <= int64_t(1) << 40) {
              value.first = word.substr(0, equals);
              return std::string();
            }
            return std::string("expected NAME=N with a positive integer, such "
                               "as batch=4");
          }};
}

/// What follows "--gradient-checkpointing".
std::string takeCheckpointing(const std::string &rest, PlanOptions &o) {
  if (rest == "=offload") {
    o.script.offloadsCheckpoints = true;
    return "";
  }
  const bool off = rest == "=off";
  if (!off && !rest.empty() && rest != "=non-reentrant")
    return "expected nothing, =non-reentrant, =offload or =off behind it";
  o.gradientCheckpointing = !off;
  o.nonReentrant = !off && !rest.empty();
  if (off)
    o.script.offloadsCheckpoints = false;
  return "";
}

ValueKind<plan::DType> loadDtypeValue() {
  return choiceValue<plan::DType>({{"f32", plan::DType::F32},
                                   {"bf16", plan::DType::BF16},
                                   {"f16", plan::DType::F16},
                                   {"float32", plan::DType::F32},
                                   {"bfloat16", plan::DType::BF16},
                                   {"float16", plan::DType::F16}});
}

void addModelOptions(Arguments &a, PlanOptions &o) {
  a.section("model and machines");
  a.option("--model", o.model, textValue("PATH|NAME"),
           "Hugging Face folder (config.json [+ *.safetensors]), a name of the "
           "Hub (accel-opt models) or a .pt2 of torch.export")
      .saidByModule();
  a.option("--adapter", o.adapter, textValue("PATH"),
           "LoRA of PEFT: a folder with adapter_config.json")
      .saidByModule();
  a.option("--quantize", o.quantization, quantizationValue(),
           "how the frozen base is quantised: nf4, fp4, int8, gptq or awq, and "
           "what the script says more: nf4,double_quant,storage=bf16; "
           "mxfp4,dequantize loads MXFP4 in 16 bits")
      .saidByModule();
  a.option("--dtype", o.loadDtype, loadDtypeValue(),
           "in which the script loads the model (default: the checkpoint's)")
      .saidByModule();
  a.option("--target", o.target, textValue("NAME|FILE"),
           "device to plan for; see accel-opt targets");
  a.option("--nodes", o.nodes, countValue(),
           "machines (default: num_machines of the YAML, else what the "
           "target's nodes hold)");
  a.option("--memory-budget", o.memoryBudgetBytes, bytesValue("70GiB"),
           "per rank, e.g. 70GiB (default: the target's memory)");
  a.option("--node-memory", o.nodeMemoryBytes, bytesValue("1000GiB"),
           "of a node's host, for steps, loading and saving (default: what "
           "the target says of a rank's)");
  a.option("--confidence", o.confidence, percentValue(),
           "with which it has to fit, e.g. 95% (default: the prediction "
           "alone)");
}

void addScriptOptions(Arguments &a, PlanOptions &o) {
  a.section("what the script does");
  a.option("--seq-len", o.sequenceLength, countValue(),
           "tokens per sequence (default: the model's, at most 4096)")
      .saidByModule();
  a.option("--micro-batch", o.microBatch, countValue(),
           "sequences a rank computes at a time (default 1)")
      .saidByModule();
  a.option("--images-per-sample", o.imagesPerSample, countValue("N", 1, 4096),
           "images of each sample, for a model with a tower (default: it is "
           "trained on text); --seq-len counts their tokens")
      .saidByModule();
  a.option("--image-size", o.imageSize, imageSizeValue(),
           "rows and columns of pixels of an image as the processor resizes it "
           "(default: the size that the model asks for)")
      .saidByModule();
  a.option("--grad-accum", o.accumulation, countValue(),
           "micro-batches per optimizer step")
      .saidByModule();
  a.option("--global-batch", o.globalBatch, countValue(),
           "sequences of a step over all ranks; --tune splits it into "
           "micro-batches")
      .saidByModule();
  a.list("--dim", o.dims, dimValue(),
         "an open size of a .pt2: its symbol (s17), an input's dimension (x.1) "
         "or batch; may be repeated");
  a.option("--optim", o.optim, optimizerValue(),
           "the script's optimizer, as TrainingArguments.optim names it "
           "(default adamw_torch); accel-opt optimizers lists them")
      .saidByModule();
  a.option("--ddp-kwargs", o.ddp, ddpKwargsValue(),
           "what the script gives DistributedDataParallelKwargs: "
           "bucket_cap_mb, gradient_as_bucket_view, comm_hook (no, fp16, bf16, "
           "power_sgd)")
      .saidByModule();
  a.option("--loss-chunks", o.lossChunks, lossChunksValue(),
           "chunks of the tokens in which the loss is computed; auto: as few "
           "as bring it below the rest of the peak (accel-run), or as Liger "
           "Kernel's fused loss (others)")
      .saidByModule();
  a.joined(
       "--gradient-checkpointing", "[=non-reentrant|offload|off]",
       [&o](const std::string &rest) { return takeCheckpointing(rest, o); },
       "the script recomputes every layer (gradient_checkpointing=True), "
       "perhaps with its inputs on the host; off: it does not, whatever is "
       "written")
      .saidByModule();
  a.flag("--reentrant", o.reentrant, "with use_reentrant=True").saidByModule();
  a.flag("--trainer-script", o.trainerScript,
         "the script is transformers' Trainer, or one of TRL's")
      .saidByModule();
  a.flag("--hold-outputs", o.holdOutputs,
         "the script keeps the model's outputs, and so the logits, until the "
         "backward has run")
      .saidByModule();
  a.option("--eval-samples", o.evalSamples, countValue(),
           "samples of an evaluation whose logits Trainer keeps for "
           "compute_metrics (default: the loss alone is kept)");
  a.option("--allocator-conf", o.allocatorConf, textValue("TEXT"),
           "the job's PYTORCH_CUDA_ALLOC_CONF, e.g. expandable_segments:True");
}

void addExecutorOptions(Arguments &a, PlanOptions &o) {
  a.section("who runs the job, and how");
  a.option("--executor", o.executor, executorValue(o.trainer),
           "who runs the job (default: accel-run for a job.yaml, else what "
           "accelerate launches)")
      .saidByModule();
  a.option("--accelerate-version", o.accelerateVersion, textValue("V"),
           "judge the YAML as this version (default 1.15.0)");
  a.option("--torch-version", o.torchVersion, textValue("V"),
           "judge the executor as of this torch (default: a job's "
           "torch_version, else 2.15); accel-run's bytes are those of its way "
           "with workspaces");
  a.flag("--async-tp", o.asyncTensor,
         "torchtitan: ranks of tp exchange beside matmuls "
         "(enable_async_tensor_parallel)")
      .saidByModule();
  a.option(
       "--accumulation", o.keepUnsharded,
       choiceValue<bool>({{"reduce_each", false}, {"keep_unsharded", true}}),
       "reduce gradients every micro-batch, or keep them unsharded until "
       "the last")
      .saidByModule();
  a.option("--prefetch", o.prefetch, countValue(),
           "units gathered ahead (default 1)")
      .saidByModule();
  a.action(
       "--no-prefetch", [&o] { o.prefetch = 0; },
       "gather each unit where it is used")
      .saidByModule();
  a.flag("--no-overlap", o.noOverlap,
         "accel-run: what ranks exchange within a layer is over where it "
         "stands");
  a.option("--activation-budget", o.activationBudgetBytes,
           bytesValue("2GiB", /*mayBeZero=*/true),
           "what the layers keep for the backward, all together; the rest is "
           "recomputed")
      .saidByModule();
}

void addSearchOptions(Arguments &a, PlanOptions &o) {
  a.section("search");
  a.optionalValue("--tune", o.tune, TuneScope::Open,
                  choiceValue<TuneScope>({{"all", TuneScope::All}}),
                  "search for the fastest setting that fits; =all may change "
                  "written keys")
      .saidByModule();
  a.flag("--tune-precision", o.tunePrecision,
         "--tune may change the precision, that of the optimizer's states "
         "too, and so the results");
  a.flag("--max-batch", o.maxBatch, "find the largest micro-batch that fits")
      .saidByModule();
}

void addOutputOptions(Arguments &a, PlanOptions &o) {
  a.section("output");
  a.list("--emit", o.emit, emitValue(), "write this to -o; may be repeated");
  a.option("-o", o.output, textValue("PATH"),
           "file of the one --emit or of --compile-to, or folder of several")
      .once();
  a.option("--format", o.format, formatValue(),
           "text for people, json for programs");
  a.flag("--units", o.showUnits,
         "print what each unit holds: elements, bytes of a rank, resharding");
  a.flag("--phases", o.showPhases,
         "print every phase of the job: load, first step, eval, save, resume");
  a.flag(
      "--schedule", o.showSchedule,
      "draw the pipeline, and print the instructions of accel-run's programs");
  a.option("--report", o.htmlReport, textValue("FILE.html"),
           "write the plan as a page with charts, which needs no network");
  a.option("--remarks", o.remarks, textValue("FILE|-"),
           "write decisions as MLIR remarks: YAML to a file, text to stderr "
           "for -");
  a.option("--compile-to", o.compileTo, phaseValue(),
           "stop after this phase and print its MLIR");
  a.option("--compile-from", o.compileFrom, phaseValue(),
           "CONFIG.yaml is the MLIR of this phase instead");
  a.option("--dump-phases", o.dumpPhases, textValue("DIR"),
           "write the MLIR of every phase to DIR");
  addOverwrite(a, o.overwrite);
}

/// What options say against each other, or "".
std::string conflictIn(const PlanOptions &o, const Arguments &arguments) {
  if (o.compileTo && !o.emit.empty())
    return "--compile-to stops before there is anything to --emit; its MLIR "
           "goes to -o";
  if (o.compileTo && !o.htmlReport.empty())
    return "--compile-to stops before there is anything to --report";
  if (!o.emit.empty() && o.output.empty())
    return "--emit needs -o PATH";
  if (o.overwrite && o.output.empty() && o.htmlReport.empty() &&
      o.remarks.empty() && o.dumpPhases.empty())
    return "--overwrite has no effect without -o, --report, --remarks or "
           "--dump-phases";
  if (o.format == ReportFormat::Json && o.output == "-")
    return "--format json and -o - both write to standard output: give -o a "
           "file";
  if (o.compileFrom)
    for (const auto &option : arguments.table())
      if (option->given && option->inModule)
        return option->name +
               " has no effect with --compile-from: the module says it";
  if (!o.adapter.empty() && o.script.loraRank)
    return "--adapter and --lora-r each say what adapter is trained: give one "
           "of them";
  if (o.tune && o.maxBatch)
    return "--max-batch takes the configuration as it is, and --tune changes "
           "it: give one of them";
  if (o.maxBatch && (o.microBatch || o.globalBatch))
    return "--max-batch looks for the micro-batch: leave out --micro-batch and "
           "--global-batch";
  if (o.globalBatch && o.accumulation)
    return "--global-batch and --micro-batch make --grad-accum: leave it out";
  if (o.tunePrecision && !o.tune)
    return "--tune-precision has no effect without --tune";
  if (o.emitsSetting() && o.maxBatch)
    return "--max-batch has no setting to emit";
  for (EmitKind kind : {EmitKind::Perfetto, EmitKind::MemorySnapshot})
    if (o.emits(kind) && (o.tune || o.maxBatch))
      return std::string("--emit ") + toString(kind) +
             " is the step of the configuration as it is: leave out --tune and "
             "--max-batch";
  if (o.compileTo && (o.tune || o.maxBatch))
    return "--compile-to stops before anything is judged: leave out --tune and "
           "--max-batch";
  if (o.compileFrom && o.compileTo && *o.compileFrom > *o.compileTo)
    return std::string("--compile-from ") + toString(*o.compileFrom) +
           " comes after --compile-to " + toString(*o.compileTo);
  return "";
}

} // namespace

const char *toString(EmitKind kind) {
  return emitKinds[static_cast<size_t>(kind)].name;
}

const char *fileName(EmitKind kind) {
  return emitKinds[static_cast<size_t>(kind)].fileName;
}

bool PlanOptions::emits(EmitKind kind) const {
  return std::find(emit.begin(), emit.end(), kind) != emit.end();
}

bool PlanOptions::emitsProgram() const {
  return emits(EmitKind::Plan) || emits(EmitKind::Schedule) ||
         emits(EmitKind::Dot) || compileTo == Phase::Scheduled;
}

bool PlanOptions::emitsSetting() const {
  return emits(EmitKind::Accelerate) || emits(EmitKind::Python) ||
         emits(EmitKind::Job);
}

void addJobOptions(Arguments &arguments, PlanOptions &options) {
  addModelOptions(arguments, options);
  addScriptOptions(arguments, options);
  addScriptArguments(arguments, options.script);
  addExecutorOptions(arguments, options);
}

void addPlanOptions(Arguments &arguments, PlanOptions &options) {
  addJobOptions(arguments, options);
  addSearchOptions(arguments, options);
  addOutputOptions(arguments, options);
}

bool parsePlanOptions(int argc, char **argv, PlanOptions &options,
                      int &exitCode) {
  Arguments arguments(
      "accel-opt plan", "[CONFIG.yaml]",
      "Compiles a file written by 'accelerate config', a job.yaml or a "
      "script's\narguments, and a model into a plan: what each rank holds byte "
      "by byte, what it\ndoes in which order, and why.",
      "Behind -- stands the command that starts the job:\n"
      "  accel-opt plan fsdp.yaml --model ./llama-8b --target h100-sxm-80gb\n"
      "  accel-opt plan --model ./llama-8b -- accelerate launch train.py "
      "--bf16");
  addPlanOptions(arguments, options);
  if (!arguments.parse(argc, argv, exitCode) ||
      !takeConfig(arguments, options.script, options.config, options.hasConfig,
                  exitCode))
    return false;
  if (std::string wrong = conflictIn(options, arguments); !wrong.empty()) {
    exitCode = arguments.usageError(wrong);
    return false;
  }
  if (options.emit.empty() && !options.output.empty() && !options.compileTo)
    options.emit.push_back(EmitKind::Plan);
  // --emit accelerate, python and job imply --tune=all.
  if (options.emitsSetting() && !options.tune)
    options.tune = TuneScope::All;
  return true;
}

bool setPlanOptions(
    PlanOptions &options,
    const std::vector<std::pair<std::string, std::string>> &given) {
  Arguments arguments("", "", "");
  addPlanOptions(arguments, options);
  for (const auto &[name, value] : given)
    if (!arguments.set(name, value).empty())
      return false;
  return true;
}

} // namespace accel
