//===- MegatronRows.cpp - What a run of Megatron's kin did ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/MegatronRows.h"

#include "passes/Validate/Recipes.h"
#include "passes/Validate/RowWords.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

namespace accel::validate {

int64_t numberAfter(const std::string &text, const std::string &key) {
  size_t at = text.find(key);
  if (at == text.npos)
    return 0;
  at += key.size();
  while (at < text.size() && (text[at] == '=' || text[at] == ' '))
    ++at;
  return std::strtoll(text.c_str() + at, nullptr, 10);
}

namespace {

class Reader {
public:
  Reader(const RowText &text, bool attends, Run &run)
      : text(text), attends(attends), run(run), megatron(run.megatron),
        words(meshWords(text.framework, text.sharding)) {}

  std::string read() {
    run.executor = FrameworkKind::Megatron;
    recipes = has(text.framework, "nemo") || has(text.framework, "bridge");
    bridge = has(text.framework, "bridge");
    const bool ported = has(text.framework, "deepspeed");
    const bool early =
        has(text.source, "arxiv:21") || has(text.source, "arxiv:22");
    const bool fsdp =
        has(text.sharding, "fsdp") && words.shards.value_or(2) > 1;
    if (has(text.framework, "automodel"))
      return "NeMo-Automodel's own FSDP is not modelled";
    const int64_t tensor = run.mesh.size("tp");
    if (words.distributedOptimizer == false && words.zeroStage.value_or(0) > 0)
      return "ZeRO-1 is Megatron's distributed optimizer, which the row says "
             "is off";
    if (words.zeroStage.value_or(0) > 1 && !fsdp)
      return "ZeRO-" + std::to_string(*words.zeroStage) +
             " under Megatron is not modelled";
    megatron.distributedOptimizer =
        fsdp || words.distributedOptimizer.value_or(recipes);
    megatron.overlaps = recipes;
    megatron.coreAttention = !attends && (ported || early);
    megatron.chunks = words.chunks.degree.value_or(1);
    if (recipes)
      readRecipe();
    if (words.chunks.named && !words.chunks.degree && megatron.chunks == 1)
      return "how many chunks of layers an interleaved stage has is not stated";
    megatron.shardsParameters = fsdp || (recipe && recipe->fsdp);
    if (megatron.shardsParameters && run.mesh.size("pp") > 1)
      return "Megatron's FSDP beside stages of a pipeline is not modelled";
    leaveLast();
    if (const std::string wrong = readModules(); !wrong.empty())
      return wrong;
    const AxisWords &sequence = words.sequence;
    if (sequence.degree.value_or(tensor) != tensor)
      return "sequence parallelism of " + std::to_string(*sequence.degree) +
             " is not over the " + std::to_string(tensor) + " ranks of tp";
    const bool stated = sequence.named || sequence.refused;
    megatron.sequenceParallelism =
        tensor > 1 && (stated                   ? sequence.named
                       : megatron.coreAttention ? has(text.checkpointing, "sp")
                                                : true);
    if (megatron.coreAttention)
      run.sizes.dropout = 0.1;
    else if (tensor > 1 && !stated)
      assume("sequence parallelism");
    if (recipes)
      assume("gradients are reduced in bf16, during the backward");
    if (words.experts.named && !words.experts.degree)
      return "the degree of expert parallelism is not stated";
    const int64_t experts = words.experts.degree.value_or(1);
    // tp_comm_overlap of the recipes of dense models; not with 4-bit operands.
    megatron.overlapsTensor =
        recipes && tensor > 1 && experts == 1 && !has(text.precision, "nvfp4");
    if (megatron.overlapsTensor)
      assume("exchanges of tp run beside matmuls");
    return experts > 1 ? readExperts(experts, tensor) : "";
  }

private:
  static bool has(const std::string &text, const char *part) {
    return text.find(part) != text.npos;
  }
  void assume(const std::string &what) { run.assumptions.push_back(what); }

  /// Of the model's config.json, which may be a damaged one of one's own.
  template <typename Value>
  Value configured(const char *key, Value otherwise) const {
    const auto json = nlohmann::json::parse(run.config, nullptr,
                                            /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains(key))
      return otherwise;
    const auto &found = json[key];
    const bool fits = std::is_same_v<Value, bool> ? found.is_boolean()
                                                  : found.is_number_integer();
    return fits ? found.template get<Value>() : otherwise;
  }

  void readRecipe() {
    recipe = findRecipe(
        {bridge ? "megatron-bridge" : "nemo", release(), modelKey(text.model),
         text.gpu, text.precision.substr(0, text.precision.find('-')),
         run.microBatch, std::max<int64_t>(1, run.mesh.size("pp"))});
    if (!recipe)
      return;
    if (recipe->chunks > 0 && !words.chunks.degree) {
      megatron.chunks = recipe->chunks;
      assume(std::to_string(recipe->chunks) +
             " chunks of layers in each stage, as its recipe");
    }
    megatron.graphs = recipe->graphs;
    megatron.narrowStates = recipe->narrowStates;
    megatron.offloadedLayers = recipe->offloadedLayers;
    if (recipe->engineLoss)
      run.kernels.push_back(frameworks::KernelSet::TransformerEngineLoss);
    megatron.tokenPredictors = recipe->tokenPredictors;
    if (text.checkpointing.empty())
      megatron.recompute = recipe->recompute;
    if (bridge)
      assume(
          "recomputed modules, CUDA graphs and the dispatcher of its recipe");
  }

  /// "selective(layernorm moe)", or "norm, act" as the model zoo's tables
  /// shorten them.
  std::string readModules() {
    std::string list = text.checkpointing;
    if (const size_t open = list.find('('); open != list.npos)
      list = list.substr(open + 1, list.find(')', open) - open - 1);
    else if (has(list, "selective") || has(list, "full") || has(list, "sp"))
      return "";
    std::string name;
    for (const char c : list + ' ') {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        name += c;
        continue;
      }
      if (name == "norm")
        name = "layernorm";
      if (name == "act")
        name = "moe_act";
      if (const auto module = plan::partNamed(plan::recomputeModules, name))
        megatron.recompute.add(*module);
      else if (!name.empty() && name != "none")
        return "'" + name +
               "' of the column ac is none of Megatron's modules: " +
               plan::namesOf(plan::recomputeModules);
      name.clear();
    }
    return "";
  }

  /// Recipes give what does not divide a layout of its own
  /// (pipeline_model_parallel_layout of recipes/deepseek): the last chunk has
  /// what the others, which are full, leave.
  void leaveLast() {
    const int64_t chunks = run.mesh.size("pp") * megatron.chunks;
    // Layers that predict further tokens stand with the last one.
    const int64_t layers =
        megatron.tokenPredictors +
        (run.config.empty() ? run.sizes.layers
                            : configured<int64_t>("num_hidden_layers", 0));
    if (!bridge || chunks < 2 || layers % chunks == 0 ||
        (layers + 2) % chunks == 0)
      return;
    const int64_t each = (layers + chunks - 1) / chunks,
                  last = layers - (chunks - 1) * each;
    if (last < 1)
      return;
    megatron.lastLayers = last;
    assume("the last chunk has " + std::to_string(last) +
           " layers, the others " + std::to_string(each));
  }

  /// Experts are whole on a rank in Bridge's recipes and the model zoo of
  /// Megatron-MoE (expert_tensor_parallel_size 1); Megatron's own default is
  /// the size of tp.
  std::string readExperts(int64_t experts, int64_t tensor) {
    const int64_t stages = run.mesh.size("pp"),
                  ranks = run.mesh.ranks() / std::max<int64_t>(1, stages);
    const bool zoo = has(text.framework, "megatron-core");
    megatron.experts = experts;
    megatron.expertBiases = configured("expert_biases", false);
    megatron.expertTensor = words.expertTensor.degree.value_or(
        bridge || zoo || ranks % (experts * tensor) != 0 ? 1 : tensor);
    if (ranks % experts != 0)
      return "expert parallelism (" + std::to_string(experts) +
             ") does not divide the " + std::to_string(ranks) +
             " GPUs of a stage";
    if (ranks % (experts * megatron.expertTensor) != 0)
      return "expert parallelism (" + std::to_string(experts) + " x " +
             std::to_string(megatron.expertTensor) + ") does not divide the " +
             std::to_string(ranks) + " GPUs of a stage";
    if (tensor > 1 && !words.expertTensor.degree)
      assume(megatron.expertTensor > 1 ? "experts are split as tp splits layers"
                                       : "experts are whole on their ranks");
    const bool domain = run.target == "gb200" || run.target == "gb300";
    if (recipe) {
      megatron.sendsOnce = !recipe->dispatcher.empty();
      megatron.overlapsExperts = recipe->overlapsExperts;
      megatron.fusedExperts = recipe->fusedExperts;
      return "";
    }
    megatron.sendsOnce = has(text.framework, "deepep") ||
                         has(text.framework, "hybridep") ||
                         (bridge && (domain || has(text.model, "30b")));
    // overlap_moe_expert_parallel_comm: of the recipes in mxfp8 since 26.06,
    // and on Hopper with chunks of a pipeline.
    const bool recent =
                   releaseOfBridge() >= 2606 && has(text.precision, "mxfp8"),
               chunked = run.target.starts_with("h100") && stages > 1 &&
                         megatron.chunks > 1;
    megatron.overlapsExperts = bridge && (recent || chunked);
    if (megatron.overlapsExperts)
      assume("experts' exchanges run beside another micro-batch");
    if (zoo)
      megatron.overlaps = megatron.wideGradients = true;
    return "";
  }

  /// Of "Megatron-Bridge/26.06.01" or "Megatron-Bridge/NeMo 26.04.01".
  std::string release() const {
    const std::string own = releaseAfter(text.framework, "bridge/");
    return own.empty() ? releaseAfter(text.framework, "nemo") : own;
  }

  /// 2606 of "Megatron-Bridge/26.06.01"; 0 where there is none.
  int64_t releaseOfBridge() const {
    const std::string own = release();
    const size_t dot = own.find('.');
    return dot == own.npos ? 0
                           : std::atoi(own.c_str()) * 100 +
                                 std::atoi(own.c_str() + dot + 1);
  }

  const RowText &text;
  const bool attends;
  Run &run;
  MegatronRow &megatron;
  const MeshWords words;
  bool recipes = false, bridge = false;
  std::optional<Recipe> recipe;
};

} // namespace

std::string readMegatron(const RowText &text, bool attends, Run &run) {
  return Reader(text, attends, run).read();
}

} // namespace accel::validate
