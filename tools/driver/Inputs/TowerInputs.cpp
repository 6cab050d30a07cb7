//===- TowerInputs.cpp - What a model has beside its text -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/TowerInputs.h"

#include "frontends/HuggingFace/Wrapped.h"
#include "frontends/Lint/Subject.h"
#include "tools/driver/Inputs/DdpInputs.h"

#include <tuple>

namespace accel {

namespace {

std::string sizeText(const huggingface::Images &images) {
  return std::to_string(images.height) + "x" + std::to_string(images.width);
}

/// Why plans of this job do not count images, a phrase; empty: they do.
std::string imagesProblem(const PlanInputs &inputs,
                          const huggingface::ModelConfig *config,
                          const huggingface::Tower *tower) {
  if (!config || !huggingface::isWrapper(config->modelType))
    return "the model has no tower that reads images";
  if (!tower)
    return "what images add is counted for llava, qwen2_vl and qwen2_5_vl, not "
           "yet for " +
           config->modelType;
  if (!tower->unknown.empty())
    return tower->unknown;
  if (inputs.executor == FrameworkKind::AccelRun)
    return "accel-run trains such models on text; plan another executor "
           "(--executor)";
  const plan::Mesh &mesh = *inputs.job.accelerate.mesh;
  if (mesh.ranksPerSample() > 1 || mesh.size("pp") > 1 ||
      inputs.executor == FrameworkKind::Megatron || !inputs.trainer.empty())
    return "ranks that share a sample, and Megatron-LM, are planned on text";
  if (inputs.job.data.microBatch->value_or(1) < 1)
    return "the micro-batch is empty";
  return "";
}

const huggingface::Tower *towerOf(const huggingface::ModelConfig *config) {
  const huggingface::DecoderConfig *decoder = huggingface::decoderOf(config);
  return decoder && decoder->tower ? &*decoder->tower : nullptr;
}

} // namespace

void takeImages(PlanInputs &inputs, const PlanOptions &options,
                DiagnosticEngine &engine) {
  if (!options.imagesPerSample) {
    if (options.imageSize)
      engine.error("missing-key", options.config,
                   "--image-size says nothing of how many images a sample has",
                   "pass --images-per-sample N too");
    return;
  }
  const huggingface::ModelConfig *config = inputs.model.config();
  const huggingface::Tower *tower = towerOf(config);
  if (std::string why = imagesProblem(inputs, config, tower); !why.empty()) {
    engine.error("not-supported", options.config, "--images-per-sample: " + why,
                 "leave it out to plan text alone");
    return;
  }
  huggingface::Images images =
      tower->onlySize().value_or(huggingface::Images());
  images.perSample = *options.imagesPerSample;
  if (options.imageSize)
    std::tie(images.height, images.width) = *options.imageSize;
  if (!images.height) {
    engine.error("missing-key", options.config,
                 "the model reads images of any size",
                 "pass --image-size HxW, as its processor resizes them");
    return;
  }
  if (const auto problem = tower->sizeProblem(images)) {
    const huggingface::Images nearest{1, problem->height, problem->width};
    engine.error("invalid-value", options.config,
                 "images of " + sizeText(images) + " pixels: " + problem->why,
                 "pass --image-size " + sizeText(nearest));
    return;
  }
  const int64_t taken = images.perSample * tower->tokens(images);
  const int64_t length = inputs.training.sequenceLength;
  if (taken > length) {
    engine.error("invalid-size", options.config,
                 std::to_string(images.perSample) + " images take " +
                     std::to_string(taken) + " tokens, and a sample has " +
                     std::to_string(length),
                 "pass --seq-len with the tokens of images and text together");
    return;
  }
  inputs.images = images;
}

/// Parameters that no call reads, and the modules that have them.
static std::pair<int64_t, std::string> unread(const PlanInputs &inputs) {
  const huggingface::ModelConfig *config = inputs.model.config();
  if (!inputs.images)
    return {huggingface::numelBesideText(inputs.model.info()),
            huggingface::besideText(config->modelType)};
  const huggingface::Tower *tower = towerOf(config);
  int64_t numel = 0;
  for (const huggingface::ParameterInfo &parameter :
       inputs.model.info().parameters)
    if (tower->isUnread(parameter.fqn))
      numel += parameter.numel();
  return {numel, "the tower behind its last feature"};
}

void reportTower(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine) {
  const huggingface::ModelConfig *config = inputs.model.config();
  if (!config || !huggingface::isWrapper(config->modelType))
    return;
  const auto [numel, beside] = unread(inputs);
  const std::string count = lint::countText(numel);
  if (inputs.images) {
    const int64_t taken =
        inputs.images->perSample * towerOf(config)->tokens(*inputs.images);
    const bool one = inputs.images->perSample == 1;
    engine.note("images", options.config,
                std::to_string(inputs.images->perSample) +
                    (one ? " image of " : " images of ") +
                    sizeText(*inputs.images) + " pixels " +
                    (one ? "takes " : "take ") + std::to_string(taken) +
                    " of a sample's " +
                    std::to_string(inputs.training.sequenceLength) + " tokens");
  }
  if (numel && inputs.executor == FrameworkKind::Ddp &&
      *inputs.job.accelerate.numProcesses > 1 && !inputs.adapter &&
      !findsUnusedParameters(inputs, options))
    engine.warning("unused-parameters", options.config,
                   std::string(inputs.images ? "" : "without images ") + count +
                       " parameters get no gradient, and "
                       "DistributedDataParallel stops at the second step where "
                       "it does not look for them",
                   "pass find_unused_parameters=True "
                   "(DistributedDataParallelKwargs; "
                   "TrainingArguments.ddp_find_unused_parameters), or set "
                   "requires_grad of " +
                       beside + " to False");
  else if (!inputs.images)
    engine.note("unused-parameters", options.config,
                "the plan is of training on text: the " + count +
                    " parameters of " + beside +
                    " are loaded and get no gradient, and what images would "
                    "add is not counted (--images-per-sample)");
}

} // namespace accel
