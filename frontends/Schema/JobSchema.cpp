//===- JobSchema.cpp - The schema of a job.yaml ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// frontends/Job reads these keys; test/Schema compares its list with this one.
//
//===----------------------------------------------------------------------===//

#include "frontends/Schema/Published.h"
#include "frontends/Schema/Schema.h"
#include "runtime/plan/Fields/Job.h"
#include "runtime/plan/Optimizers.h"

#include <cmath>
#include <iterator>

using namespace accel;
using namespace accel::schema;

namespace {

Json described(const char *description, Json schema) {
  Json result = {{"description", description}};
  result.update(schema);
  return result;
}

Json text(const char *description) {
  return described(description, {{"type", "string"}, {"minLength", 1}});
}

Json integer(const char *description, int64_t least) {
  return described(description, {{"type", "integer"}, {"minimum", least}});
}

Json flag(const char *description) {
  return described(description, {{"type", "boolean"}});
}

/// YAML 1.1 takes 1e-4 for a string.
Json number(const char *description) {
  return described(
      description,
      {{"anyOf",
        Json::array({{{"type", "number"}, {"minimum", 0}},
                     {{"type", "string"},
                      {"pattern", "^[+]?[0-9.]+[eE][+-]?[0-9]+$"}}})}});
}

Json choice(const char *description, std::vector<std::string> values) {
  return described(description, {{"enum", values}});
}

template <typename Names> std::vector<std::string> listOf(const Names &names) {
  return {std::begin(names), std::end(names)};
}

Json object(const char *description, Json properties,
            std::vector<std::string> required = {}) {
  Json result = {{"type", "object"},
                 {"description", description},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false}};
  if (!required.empty())
    result["required"] = required;
  return result;
}

/// A file of tokens, a pattern of names, or a list of them.
Json files(const char *description) {
  Json file = object("A file among several",
                     {{"path", text("The file")},
                      {"weight", number("Share of the samples")},
                      {"starts", text("A .npy file of the positions of "
                                      "documents' first tokens")}},
                     {"path"});
  const Json name = {{"type", "string"}, {"minLength", 1}};
  return described(
      description,
      {{"anyOf",
        Json::array({name,
                     {{"type", "array"},
                      {"items", {{"anyOf", Json::array({name, file})}}},
                      {"minItems", 1}}})}});
}

Json data(const char *description, bool eval) {
  Json properties = {
      {"tokens", files("File of raw token ids or a .npy file, a pattern of "
                       "names, or a list of files")},
      {"text", files("Text file, or several; each byte is a token")},
      {"npy", files("A one-dimensional .npy file of token ids, or several")},
      {"arrays",
       {{"type", "object"},
        {"description", "A .npy file for each input; row i is sample i"},
        {"minProperties", 1},
        {"additionalProperties",
         {{"type", "string"}, {"pattern", "\\.npy$"}}}}},
      {"dtype",
       choice("Of raw token ids", {"uint16", "uint32", "int32", "int64"})},
      {"sequence_length", integer("Tokens of a sample", 1)},
      {"target_length",
       integer("Tokens of the labels of an encoder-decoder; default: "
               "sequence_length",
               1)},
      {"micro_batch", integer("Samples of a rank at a time", 1)},
      {"shuffle", flag("Permute the samples of each epoch")},
      {"seed", integer("Of the permutation", 0)},
      {"documents",
       object("Where documents end within a sample: no token sees another "
              "document",
              {{"eos", integer("The token that ends a document", 0)},
               {"starts", text("A .npy file of the positions of documents' "
                               "first tokens")}})}};
  if (eval) {
    properties["every"] =
        integer("Steps between evaluations; 0: at the end alone", 0);
    properties["batches"] = integer("Micro-batches per rank; 0: all", 0);
    properties["metrics"] = {{"type", "array"},
                             {"description", "Beside the loss"},
                             {"items", {{"enum", listOf(plan::metricNames)}}},
                             {"minItems", 1}};
    properties["predictions"] =
        text("File of JSON lines: labels, and what the model says");
  } else {
    properties["split_batches"] =
        flag("micro_batch is that of all data-parallel ranks together");
    properties["drop_last"] =
        flag("An epoch ends with its last whole micro-batches");
    properties["even_batches"] =
        flag("An epoch's last micro-batches are filled up with its first "
             "samples");
  }
  Json result = object(description, std::move(properties));
  for (const char *source : {"tokens", "text", "npy", "arrays"})
    result["oneOf"].push_back({{"required", {source}}});
  return result;
}

/// PEFT's LoraConfig, as far as it is supported.
Json adapter() {
  auto names = [](const char *description) {
    return described(
        description,
        {{"anyOf",
          Json::array({{{"type", "string"}, {"minLength", 1}},
                       {{"type", "array"}, {"items", {{"type", "string"}}}},
                       {{"type", "null"}}})}});
  };
  auto pattern = [](const char *description) {
    return described(description,
                     {{"type", {"object", "null"}},
                      {"additionalProperties", {{"type", "number"}}}});
  };
  Json config = object(
      "LoRA, with the keys of PEFT's LoraConfig",
      {{"r", integer("Rank", 1)},
       {"lora_alpha", described("Scale times the rank", {{"type", "number"}})},
       {"lora_dropout",
        described(
            "Of what an adapter reads, 0 <= p < 1",
            {{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}})},
       {"target_modules",
        names("Names or ends of names, a regex, or all-linear")},
       {"exclude_modules", names("Never adapted")},
       {"bias",
        choice("Biases that are trained", {"none", "all", "lora_only"})},
       {"use_rslora", flag("Scale by the root of the rank")},
       {"use_dora", flag("Train magnitude and direction apart (DoRA)")},
       {"modules_to_save", names("Ends of names of modules trained whole")},
       {"init_lora_weights",
        {{"description", "First values"},
         {"enum", Json::array({true, false, "gaussian"})}}},
       {"layers_to_transform",
        described("Numbers of layers",
                  {{"type", {"integer", "array", "null"}}})},
       {"layers_pattern", names("Where layers are numbered")},
       {"rank_pattern", pattern("Ranks by module")},
       {"alpha_pattern", pattern("Alphas by module")},
       {"fan_in_fan_out", flag("Weights are [in, out]; found out anyway")},
       {"task_type", described("Of PEFT", {{"type", {"string", "null"}}})},
       {"peft_type", choice("Kind of adapter", {"LORA"})},
       {"base_model_name_or_path",
        described("Of PEFT", {{"type", {"string", "null"}}})}},
      {"target_modules"});
  return {
      {"description", "An adapter: a folder with adapter_config.json, or "
                      "LoRA's keys"},
      {"anyOf", Json::array({{{"type", "string"}, {"minLength", 1}}, config})}};
}

Json hyperparameter(const plan::Hyperparameter &parameter) {
  using Kind = plan::Hyperparameter::Kind;
  if (parameter.kind == Kind::Flag)
    return flag(parameter.description);
  Json range = {{"type", "number"}, {"minimum", parameter.least}};
  if (!std::isinf(parameter.below))
    range["exclusiveMaximum"] = parameter.below;
  const size_t count = parameter.standard.size();
  if (parameter.kind == Kind::Numbers)
    return {{"type", "array"},
            {"description", parameter.description},
            {"items", range},
            {"minItems", count},
            {"maxItems", count}};
  if (parameter.least == 0 && std::isinf(parameter.below))
    return number(parameter.description);
  return described(parameter.description, range);
}

/// The keys of each optimizer, by its name; without one it is AdamW.
Json optimizer() {
  Json group =
      object("Parameters with values of their own",
             {{"match", text("Regex that is searched in parameter names")},
              {"lr", number("Learning rate")},
              {"weight_decay", number("Weight decay")}},
             {"match"});
  Json cases = Json::array();
  for (const plan::OptimizerDescription &each : plan::optimizers()) {
    Json properties = {
        {"name", described(each.summary, {{"const", each.name}})},
        {"lr", number("Learning rate")},
        {"weight_decay", number("Weight decay")},
        {"max_grad_norm", number("Clipping; 0: none")},
        {"groups",
         {{"type", "array"},
          {"description", "The first that matches counts"},
          {"items", group}}}};
    for (const plan::Hyperparameter &parameter : each.hyperparameters)
      properties[parameter.name] = hyperparameter(parameter);
    const bool standard = std::string_view(each.name) == "adamw";
    Json named = {{"properties", {{"name", {{"const", each.name}}}}}};
    if (!standard)
      named["required"] = {"name"};
    cases.push_back(
        {{"if", named}, {"then", object(each.summary, std::move(properties))}});
  }
  return {{"type", "object"},
          {"description", "The optimizer"},
          {"properties", {{"name", choice("Which", plan::optimizerNames())}}},
          {"allOf", cases}};
}

Json jobProperties() {
  return {
      {"model", text("Hugging Face folder (config.json [+ *.safetensors])")},
      {"init",
       {{"description", "Initial weights; default: pretrained if they are "
                        "there"},
        {"anyOf",
         Json::array({{{"const", "pretrained"}},
                      object("Fresh weights from (seed, parameter name)",
                             {{"seed", integer("The seed", 0)}}, {"seed"})})}}},
      {"trainable",
       {{"description", "Regex over parameter names, or a list of them; "
                        "default: all, or what the adapter trains"},
        {"anyOf",
         Json::array({{{"type", "string"}, {"minLength", 1}},
                      {{"type", "array"},
                       {"items", {{"type", "string"}, {"minLength", 1}}},
                       {"minItems", 1}}})}}},
      {"adapter", adapter()},
      {"data", data("Training data", false)},
      {"eval", data("Evaluation data", true)},
      {"gradient_accumulation_steps",
       integer("Micro-batches in an optimizer step", 1)},
      {"optimizer", optimizer()},
      {"schedule",
       object(
           "The learning rate over time",
           {{"steps", integer("Optimizer steps of the run", 1)},
            {"warmup_steps", integer("Steps of linear warm-up", 0)},
            {"decay", choice("What follows", listOf(plan::decayNames))},
            {"min_lr", number("Where it ends")},
            {"cycles", integer("Of cosine_with_restarts", 1)},
            {"power", number("Of polynomial")},
            {"decay_steps", integer("Of warmup_stable_decay: the last so many "
                                    "of the steps",
                                    1)},
            {"decay_shape",
             choice("Of warmup_stable_decay", listOf(plan::decayShapes))},
            {"timescale", integer("Of inverse_sqrt; default: warmup_steps, or "
                                  "10,000 without",
                                  1)}})},
      {"checkpoint",
       object("Checkpoints; without it nothing is written",
              {{"dir", text("Folder")},
               {"every", integer("Steps between two; 0: at the end", 0)},
               {"keep", integer("How many are kept; 0: all", 0)},
               {"state_dict", choice("Layout", {"sharded", "full"})},
               {"background", flag("Written from a copy in host memory while "
                                   "training goes on")}},
              {"dir"})},
      {"target", text("A name of `accel-opt targets`, or a file")},
      {"mesh",
       object("Ranks of each axis, for accel-run; dp_shard is what the others "
              "leave of num_processes",
              {{"pp", integer("Stages of a pipeline", 1)},
               {"dp_replicate", integer("Copies of the shards", 1)},
               {"dp_shard", integer("Ranks that shard the units", 1)},
               {"cp", integer("Ranks that share each sequence, by ring "
                              "attention",
                              1)},
               {"sp", integer("Ranks that share each sequence, and exchange "
                              "tokens for heads (Ulysses)",
                              1)},
               {"tp", integer("Ranks that split the layers", 1)},
               {"ep", integer("Ranks that share the experts, of those of "
                              "dp_shard",
                              1)}})},
      {"pipeline",
       object("How stages take turns, with pp in mesh",
              {{"schedule",
                choice("Which parts run when; 1f1b without it",
                       {"1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-v"})},
               {"chunks", integer("Chunks of the model in each stage, with "
                                  "interleaved-1f1b; 2 without it",
                                  1)}})},
      {"precision",
       object(
           "Dtypes, instead of what mixed_precision means",
           {{"param", choice("Gathered parameters and computation",
                             {"bf16", "fp16", "fp32"})},
            {"reduce",
             choice("Gradients on the wire", {"bf16", "fp16", "fp32"})},
            {"output", choice("Of the forward", {"bf16", "fp16", "fp32"})}})},
      {"activation_checkpointing",
       choice("What is recomputed", {"pointwise", "full", "none"})},
      {"activation_budget",
       integer("Bytes that the layers keep for the backward, all together", 0)},
      {"dropout_seed", integer("What dropout draws by", 0)},
      {"seed", integer("Of fresh weights, the order of samples and dropout, "
                       "where they have none of their own",
                       0)},
      {"sample",
       object("Texts that the model writes at each evaluation, greedily",
              {{"count", integer("How many", 1)},
               {"prompt_tokens",
                integer("First tokens of a sample of eval's data", 1)},
               {"new_tokens", integer("Tokens that follow", 1)}})},
      {"grad_scaler",
       object("The scale of the loss in fp16, as torch.amp.GradScaler's",
              {{"init_scale", number("At the first step")},
               {"growth_factor", number("Above 1")},
               {"backoff_factor", number("Below 1")},
               {"growth_interval",
                integer("Good steps in a row before it grows", 1)}})},
      {"collective_timeout",
       integer("Seconds after which a collective that a rank did not enter "
               "ends the job",
               1)},
      {"logging_steps",
       integer("Optimizer steps of a line of the log; its loss is their mean",
               1)},
      {"on_nan", choice("At a step whose loss or gradients are not finite",
                        {"stop", "skip"})},
      {"offload",
       object(
           "What waits in pinned memory of the host, or on its drive",
           {{"states", choice("Optimizer states, which are updated there",
                              {"cpu", "nvme", "none"})},
            {"nvme",
             object(
                 "A file of each rank, for states: nvme",
                 {{"path", text("The folder")},
                  {"buffers", integer("In the host's memory, a unit each", 1)},
                  {"read_ahead", flag("Beside the update before")},
                  {"write_behind", flag("Beside the update after")},
                  {"block_size", integer("Bytes of a request", 4096)},
                  {"queue_depth", integer("Requests at once, of io_uring", 1)},
                  {"threads",
                   integer("That read and write without io_uring", 1)}})},
            {"parameters",
             choice("Shards of parameters, with the states", {"cpu", "none"})},
            {"activations",
             choice("What calls save for their backward; of recomputed "
                    "layers their inputs",
                    {"cpu", "none"})}})},
      {"reduce_gradients",
       choice("At each micro-batch, or once a step", {"each", "once"})},
      {"ddp",
       object("What a script passes to DistributedDataParallel",
              {{"comm_hook", choice("The dtype in which gradients are "
                                    "reduced",
                                    {"no", "fp16", "bf16", "power_sgd"})},
               {"bucket_cap_mb",
                integer("MiB of gradients that are reduced together", 1)},
               {"gradient_as_bucket_view", flag("Gradients are views")},
               {"find_unused_parameters",
                flag("Look for parameters without a gradient")}})},
      {"deterministic", flag("Kernels that give the same bits each time")},
      {"torch_version",
       {{"description", "The release of torch that the job runs on, as "
                        "2.11.0; --torch-version wins"},
        {"anyOf", Json::array({{{"type", "string"},
                                {"pattern", "^2\\.([0-9]|1[0-5])(\\..*)?$"}},
                               {{"type", "number"}}})}}},
      {"sequence_parallel",
       flag("Activations between layers are a rank's tokens, with tp_size")},
      {"expert_imbalance",
       number("For how many rows the experts of a rank have a place, in even "
              "shares: at least 1, 2 without it; with ep in mesh")},
      {"hold_gathers",
       described(
           "Gathers of a backward, from the first behind the loss's, that "
           "start where they are needed and not ahead",
           {{"anyOf",
             Json::array({Json{{"const", "auto"}},
                          Json{{"type", "integer"}, {"minimum", 0}}})}})},
      {"await_reductions",
       described(
           "Reductions of a backward, from its first, that end before the "
           "next unit's backward begins",
           {{"anyOf",
             Json::array({Json{{"const", "auto"}},
                          Json{{"type", "integer"}, {"minimum", 0}}})}})},
      {"loss_chunks",
       described("Chunks of the tokens in which the loss is computed",
                 {{"anyOf", Json::array({Json{{"const", "auto"}},
                                         Json{{"type", "integer"},
                                              {"minimum", 1}}})}})}};
}

} // namespace

Json accel::schema::jobSchema(AccelerateVersion version) {
  Json accelerate = accelerateSchema(version);
  Json definitions = accelerate["$defs"], local = definitions["local_machine"];
  Json properties = {
      {"accelerate",
       {{"description", "An accelerate file, or its keys"},
        {"anyOf", Json::array({{{"type", "string"}, {"minLength", 1}},
                               {{"$ref", "#/$defs/local_machine"}}})}}}};
  properties.update(jobProperties());
  for (const auto &[key, value] : local["properties"].items())
    properties[key] = value;
  Json result = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"$id", addressOf(SchemaKind::Job, version)},
                 {"title", "accel-opt job"},
                 {"description", "A training job for accel-opt and accel-run"},
                 {"type", "object"},
                 {"properties", properties},
                 {"additionalProperties", false},
                 {"required", {"model", "data"}},
                 {"anyOf", Json::array({{{"required", {"accelerate"}}},
                                        {{"required", {"distributed_type"}}}})},
                 {"$defs", definitions}};
  return result;
}
