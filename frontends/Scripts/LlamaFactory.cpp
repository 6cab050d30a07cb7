//===- LlamaFactory.cpp - LLaMA-Factory's keys as those of transformers ---===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// LLaMA-Factory's hparams/parser.py (dtypes, stages), model/adapter.py (which
// parameters become fp32), model/model_utils (attention, checkpointing,
// quantisation).
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

namespace accel::scripts {

void SettingsReader::translateLlamaFactory() {
  const Given *model = given("model_name_or_path");
  if (!model) {
    engine.error("no-model", settings.file,
                 "model_name_or_path is missing; LLaMA-Factory stops with it",
                 "write a folder or a name of the Hub");
    return;
  }
  const std::string stage = text("stage");
  if (stage == "dpo") {
    const Given &place = given("stage") ? *given("stage") : *model;
    stand("trainer_task", nodes.text(place.file, place.value->range, "dpo"),
          place);
  } else if (stage != "sft" && stage != "pt" && !stage.empty()) {
    refuse("stage",
           "stage: " + printable(stage) +
               " trains by an algorithm that is not modelled yet",
           "pt, sft and dpo are modelled");
  }

  // Parameters are loaded in the dtype of computation; what is trained becomes
  // fp32 but under ZeRO-3, FSDP and pure_bf16.
  const std::string tuning = text("finetuning_type");
  const bool half = truth("fp16"), brain = truth("bf16") || truth("pure_bf16");
  const bool sharded =
      accelerate.type() == "FSDP" || (given("fsdp") && value("fsdp")) ||
      (given("deepspeed") && text("deepspeed").find("z3") != std::string::npos);
  const Given &dtypeAt = given("bf16")   ? *given("bf16")
                         : given("fp16") ? *given("fp16")
                                         : *model;
  const char *dtype = half ? "float16" : brain ? "bfloat16" : "float32";
  const bool upcast = tuning == "full" && !truth("pure_bf16") && !sharded;
  stand("dtype",
        nodes.text(dtypeAt.file, dtypeAt.value->range,
                   upcast ? "float32" : dtype),
        dtypeAt);
  if (truth("pure_bf16"))
    stand("bf16",
          nodes.boolean(given("pure_bf16")->file,
                        given("pure_bf16")->value->range, false),
          *given("pure_bf16"));

  checkpointsByDefault = !truth("disable_gradient_checkpointing");

  const std::string attention = text("flash_attn");
  if (attention != "" && attention != "auto") {
    const Given &place = *given("flash_attn");
    const char *kernel = attention == "disabled" ? "eager"
                         : attention == "fa2"    ? "flash_attention_2"
                         : attention == "fa3"    ? "flash_attention_3"
                         : attention == "sdpa"   ? "sdpa"
                                                 : nullptr;
    if (!kernel)
      error("invalid-value", "flash_attn",
            "'" + printable(attention) + "' is no value of flash_attn",
            didYouMean(attention, {"auto", "disabled", "sdpa", "fa2", "fa3"}));
    else
      stand("attn_implementation",
            nodes.text(place.file, place.value->range, kernel), place);
  }

  if (tuning == "full")
    return;
  const Given &place =
      given("finetuning_type") ? *given("finetuning_type") : *model;
  if (tuning != "lora")
    return refuse("finetuning_type",
                  "finetuning_type: " + printable(tuning) +
                      " is not modelled yet",
                  "full and lora are modelled");
  auto put = [&](const char *name, const yaml::Node *node, const Given &at) {
    stand(name, node, at);
  };
  put("use_peft", nodes.boolean(place.file, place.value->range, true), place);
  put("lora_task_type", nodes.text(place.file, place.value->range, "CAUSAL_LM"),
      place);
  const int64_t rank = integer("lora_r").value_or(8);
  if (!given("lora_r"))
    put("lora_r", nodes.integer(place.file, place.value->range, rank), place);
  if (!value("lora_alpha"))
    put("lora_alpha", nodes.integer(place.file, place.value->range, 2 * rank),
        place);
  // "all" is every linear layer but the head.
  const Given &targetAt = given("lora_target") ? *given("lora_target") : place;
  auto list = [&](const std::string &names, const Given &at) {
    yaml::Node *node = nodes.make(at.file, at.value->range);
    node->kind = yaml::Kind::Sequence;
    for (size_t begin = 0; begin < names.size();) {
      const size_t comma = std::min(names.find(',', begin), names.size());
      std::string name = names.substr(begin, comma - begin);
      name.erase(0, name.find_first_not_of(' '));
      node->items.push_back(nodes.text(at.file, at.value->range, name));
      begin = comma + 1;
    }
    return node;
  };
  const std::string target = text("lora_target");
  if (target.empty() || target == "all")
    put("lora_target_modules",
        nodes.text(targetAt.file, targetAt.value->range, "all-linear"),
        targetAt);
  else
    put("lora_target_modules", list(target, targetAt), targetAt);
  if (const Given *extra = given("additional_target");
      extra && value("additional_target"))
    put("lora_modules_to_save", list(extra->value->text, *extra), *extra);

  const std::optional<int64_t> bits = integer("quantization_bit");
  if (!bits)
    return;
  const Given &bitsAt = *given("quantization_bit");
  const std::string method = text("quantization_method");
  if (!method.empty() && method != "bnb" && method != "bitsandbytes")
    return refuse("quantization_method",
                  "quantising with " + printable(method) +
                      " is not modelled yet",
                  "bnb is modelled");
  if (*bits != 4 && *bits != 8)
    return error("invalid-value", "quantization_bit",
                 "bitsandbytes quantises to 4 or 8 bits, not " +
                     std::to_string(*bits),
                 "write 4 or 8");
  put(*bits == 4 ? "load_in_4bit" : "load_in_8bit",
      nodes.boolean(bitsAt.file, bitsAt.value->range, true), bitsAt);
  if (*bits != 4)
    return;
  put("bnb_4bit_quant_type",
      nodes.text(bitsAt.file, bitsAt.value->range, text("quantization_type")),
      bitsAt);
  put("bnb_4bit_quant_storage",
      nodes.text(bitsAt.file, bitsAt.value->range, dtype), bitsAt);
  const bool nested =
      !given("use_bnb_nested_quant") || truth("use_bnb_nested_quant");
  put("use_bnb_nested_quant",
      nodes.boolean(bitsAt.file, bitsAt.value->range, nested), bitsAt);
}

} // namespace accel::scripts
