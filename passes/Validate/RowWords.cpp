//===- RowWords.cpp - Words of a measured run's columns -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RowWords.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace accel::validate {

using plan::DType;

namespace {

using Words = std::initializer_list<const char *>;

bool letterOrDigit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool has(const std::string &text, const char *part) {
  return text.find(part) != text.npos;
}
bool hasAny(const std::string &text, Words parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char *part) { return has(text, part); });
}
bool hasAnyWord(const std::string &text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char *word) { return hasWord(text, word); });
}

/// Where `word` begins at or after `from` with neither a letter nor a digit
/// before it; npos: nowhere.
size_t wordStart(const std::string &text, const std::string &word,
                 size_t from) {
  for (size_t at = text.find(word, from); at != text.npos;
       at = text.find(word, at + 1))
    if (at == 0 || !letterOrDigit(text[at - 1]))
      return at;
  return text.npos;
}

/// The number that follows `word` ("r16", "r=16", "rank: 16").
std::optional<double> numberBehind(const std::string &text,
                                   const std::string &word) {
  for (size_t at = wordStart(text, word, 0); at != text.npos;
       at = wordStart(text, word, at + 1)) {
    size_t end = at + word.size();
    while (end < text.size() && (text[end] == '=' || text[end] == ' ' ||
                                 text[end] == ':' || text[end] == '-'))
      ++end;
    if (end >= text.size() || (!digit(text[end]) && text[end] != '.'))
      continue;
    char *stop = nullptr;
    const double value = std::strtod(text.c_str() + end, &stop);
    if (stop != text.c_str() + end && !letterOrDigit(*stop))
      return value;
  }
  return std::nullopt;
}

/// "zero-3", "zero_3", "zero stage 3", "stage3", "ds_z3".
std::optional<int> zeroStage(const std::string &text) {
  for (const char *word : {"zero", "stage", "z"})
    for (size_t at = wordStart(text, word, 0); at != text.npos;
         at = wordStart(text, word, at + 1)) {
      size_t end = at + std::string(word).size();
      const size_t begin = end;
      while (end < text.size() && !digit(text[end]) &&
             (!letterOrDigit(text[end]) || text.compare(end, 5, "stage") == 0))
        end += letterOrDigit(text[end]) ? 5 : 1;
      const bool alone = end + 1 >= text.size() || !digit(text[end + 1]);
      // One letter is a stage in front of its digit alone.
      if (end < text.size() && text[end] >= '0' && text[end] <= '3' && alone &&
          (std::string(word) != "z" || end == begin))
        return text[end] - '0';
    }
  return std::nullopt;
}

} // namespace

bool hasWord(const std::string &text, const std::string &word) {
  for (size_t at = wordStart(text, word, 0); at != text.npos;
       at = wordStart(text, word, at + 1))
    if (at + word.size() >= text.size() ||
        !letterOrDigit(text[at + word.size()]))
      return true;
  return false;
}

/// "benchmarks.md", "(unsloth.ai)".
static bool isFileOrAddress(const std::string &word) {
  for (const char *end :
       {".md", ".csv", ".json", ".jsonl", ".yaml", ".yml", ".py", ".sh", ".txt",
        ".rst", ".mdx", ".ipynb", ".html", ".ai", ".com", ".org", ".io"}) {
    const size_t at = word.find(end);
    const size_t behind = at + std::string(end).size();
    if (at != word.npos && at > 0 &&
        (behind >= word.size() || !letterOrDigit(word[behind])))
      return true;
  }
  return false;
}

std::string withoutPaths(const std::string &text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    end = end == text.npos ? text.size() : end + 1;
    const std::string word = text.substr(at, end - at);
    // A "/" behind three letters or more is of a path; "8/64" and "s/it" stay.
    const size_t slash = word.find('/');
    const bool path = (slash != word.npos && slash > 2 &&
                       word.size() - slash > 4 && !digit(word[slash - 1])) ||
                      isFileOrAddress(word);
    result += path ? " " : word;
    at = end;
  }
  return result;
}

WrapperWords wrapperWords(const std::string &framework,
                          const std::string &sharding) {
  const std::string all = framework + " " + sharding;
  WrapperWords words;
  const bool second =
      hasAny(all, {"fsdp2", "fsdp-2", "fsdp v2", "fsdp-v2", "fsdp_v2", "fsdpv2",
                   "fully_shard", "fsdp version 2", "fsdp_version 2",
                   "fsdp_version=2", "fsdp_version: 2"});
  // "_HYBRID_SHARD_ZERO2" is a strategy of FSDP1.
  const bool strategy = hasAny(
      sharding, {"full_shard", "hybrid_shard", "shard_grad_op", "no_shard"});
  const bool fsdp = has(sharding, "fsdp") || has(sharding, "hsdp") || strategy;
  const std::optional<int> stage = zeroStage(sharding);
  const bool zero = has(sharding, "zero") || has(sharding, "deepspeed") ||
                    stage || (has(framework, "deepspeed") && !fsdp);
  if (second)
    words.executor = FrameworkKind::Fsdp2;
  else if (zero && !fsdp)
    words.executor = FrameworkKind::Deepspeed;
  else if (fsdp || has(framework, "fsdp"))
    words.executor = FrameworkKind::Fsdp1;
  if (words.executor == FrameworkKind::Deepspeed)
    words.zeroStage = stage;
  if (words.executor == FrameworkKind::Deepspeed && !words.zeroStage)
    words.zeroStage = zeroStage(framework);
  // The paper's name of stage 2 with the optimizer on the host.
  if (!words.zeroStage && has(sharding, "zero-offload"))
    words.zeroStage = 2;
  if (hasAnyWord(sharding, {"ddp", "no_shard", "multi_gpu", "replicated",
                            "data parallel", "dataparallel"}) ||
      sharding == "dp" || sharding.starts_with("dp="))
    words.executor = FrameworkKind::Ddp;
  return words;
}

OffloadWords offloadWords(const std::string &sharding) {
  OffloadWords words;
  if (!has(sharding, "offload") || has(sharding, "activation") ||
      hasAny(sharding, {"no offload", "no cpu offload", "without offload"}))
    return words;
  words.optimizer = true;
  words.parameters =
      !has(sharding, "optim") || hasAny(sharding, {"param", "full offload"});
  return words;
}

PrecisionWords precisionWords(const std::string &precision) {
  PrecisionWords words;
  const bool brain = hasAny(precision, {"bf16", "bfloat16"});
  if (!brain && (hasAny(precision, {"fp16", "f16-", "float16", "16-mixed",
                                    "16-true", "half"}) ||
                 precision == "f16" || precision == "16"))
    words.compute = DType::F16;
  if (hasAny(precision, {"fp32", "tf32", "float32", "32-true"}) ||
      precision == "f32" || precision == "32" || precision == "no")
    words.compute = DType::F32;
  words.pure = hasAny(precision, {"pure", "16-true", "no autocast",
                                  "without autocast", "no amp"});
  return words;
}

std::optional<bool> recomputesLayers(const std::string &text) {
  for (const char *unknown : {"n/a", "?", "unknown", "not stated"})
    if (text == unknown)
      return false;
  if (hasAny(text, {"selective", "sac", "partial"}) && !has(text, "full"))
    return std::nullopt;
  for (const char *none :
       {"", "none", "no", "n", "off", "false", "0", "disabled", "without", "-"})
    if (text == none)
      return false;
  if (hasAny(text, {"full", "yes", "reentrant", "offload", "unsloth",
                    "checkpoint", "gradient checkpoint", "gradient_checkpoint",
                    "enabled", "every layer", "activation checkpoint",
                    "activation_checkpoint", "checkpointing on"}))
    return true;
  for (const char *all : {"y", "true", "all", "on", "1", "gc", "checkpointing",
                          "checkpoint", "layers", "hf"})
    if (text == all)
      return true;
  return std::nullopt;
}

std::string otherTraining(const std::string &framework) {
  for (const char *other :
       {"dpo", "grpo", "ppo", "orpo", "kto", "simpo", "rlhf", "gkd", "reward"})
    if (hasWord(framework, other))
      return other;
  return "";
}

AdapterWords adapterWords(const std::string &text) {
  AdapterWords words;
  for (const char *other :
       {"galore",        "q-galore",      "badam",         "lisa",
        "lomo",          "adalomo",       "freeze",        "freeze-tuning",
        "prefix-tuning", "prefix tuning", "prompt tuning", "prompt-tuning",
        "p-tuning",      "ptuning",       "adalora",       "lora-fa",
        "lorafa",        "longlora",      "vera",          "loha",
        "lokr",          "llama pro",     "llamapro",      "bitfit",
        "ia3",           "oft",           "boft",          "bone"})
    if (hasWord(text, other))
      words.refused = other;
  words.magnitude = has(text, "dora");
  words.adapter = words.magnitude ||
                  hasAny(text, {"lora", "pissa", "loftq", "peft"}) ||
                  !words.refused.empty();
  for (const char *word : {"r", "rank", "lora_r", "lora_rank", "lora-rank"})
    if (std::optional<double> rank = numberBehind(text, word);
        rank && *rank >= 1 && *rank <= 65536 && words.rank == 0)
      words.rank = static_cast<int64_t>(*rank);
  words.dropout = numberBehind(text, "dropout");
  for (const char *whole : {"embed_tokens", "lm_head"})
    if (has(text, "(emb)") || hasWord(text, whole))
      words.saved.emplace_back(whole);
  if (words.dropout && *words.dropout >= 1)
    words.dropout.reset();
  for (const char *name :
       {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
        "down_proj", "qkv_proj", "gate_up_proj", "c_proj", "c_fc",
        "query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h", "fc1",
        "fc2", "out_proj"})
    if (hasWord(text, name))
      words.targets.emplace_back(name);
  auto add = [&](Words names) {
    words.targets.insert(words.targets.end(), names.begin(), names.end());
  };
  // Qwen's first models have one layer for the three.
  if (hasWord(text, "c_attn"))
    add({"c_attn", "q_proj", "k_proj", "v_proj"});
  if (words.targets.empty()) {
    if (hasAnyWord(text, {"qkvo", "attention", "attn", "q,k,v,o", "q k v o"}))
      add({"q_proj", "k_proj", "v_proj", "o_proj"});
    else if (hasAnyWord(text, {"qkv", "q,k,v", "q k v"}))
      add({"q_proj", "k_proj", "v_proj"});
    else if (hasAnyWord(text, {"qv", "q,v", "q v", "q/v", "q&v"}))
      add({"q_proj", "v_proj"});
  }
  words.allLinear = words.targets.empty();
  return words;
}

QuantizationWords quantizationWords(const std::string &text,
                                    const std::string &precision) {
  QuantizationWords words;
  words.refused = [&] {
    for (const char *other : {"awq", "hqq", "aqlm", "eetq", "torchao int4"})
      if (hasWord(text, other))
        return std::string(other);
    return std::string();
  }();
  const bool bits =
      hasAny(text, {"bnb", "bitsandbytes"}) || hasAnyWord(text, {"nf4", "fp4"});
  const bool eight =
      hasAny(precision, {"8-bit", "8bit"}) ||
      hasAny(text, {"int8", "load_in_8bit", "8-bit lora", "8bit lora",
                    "lora 8bit", "lora 8-bit", "8-bit qlora", "8bit qlora",
                    "8-bit base", "8bit base", "8-bit quant"});
  const bool gptq = has(text, "gptq") || (hasWord(text, "int4") && !bits);
  const bool four = bits ||
                    hasAny(text, {"qlora", "q-lora", "4-bit", "4bit"}) ||
                    hasWord(text, "int4");
  if (gptq) {
    words.format =
        std::string("gptq,bits=") + (eight ? "8" : "4") + ",group=128";
    words.named = true;
  } else if (eight) {
    words.format = "int8";
    words.named = true;
  } else if (four) {
    words.format = hasWord(text, "fp4") ? "fp4" : "nf4";
    words.named = bits;
    if (hasAny(text, {"double", "nested"}) || hasWord(text, "dq"))
      words.format += ",double_quant";
  }
  return words;
}

OptimizerWords optimizerWords(const std::string &text) {
  OptimizerWords words;
  for (const char *other : {"apollo", "came", "shampoo", "soap",
                            "schedule-free", "schedulefree", "adalomo"})
    if (hasWord(text, other))
      words.refused = other;
  const bool eight =
      hasAny(text, {"8-bit adam", "8bit adam", "adamw_8bit", "adamw_bnb_8bit",
                    "adamw 8bit", "adamw 8-bit", "adamw-8bit", "adamw8bit",
                    "adam8bit", "adam 8bit", "adam_8bit", "8-bit optim",
                    "8bit optim", "bnb_8bit"});
  const bool paged = hasWord(text, "paged") || has(text, "paged_");
  const bool narrowLion =
      hasAny(text, {"lion_8bit", "lion8bit", "lion 8-bit", "lion 8bit",
                    "8-bit lion", "8bit lion"});
  if (hasWord(text, "adafactor"))
    words.name = "adafactor";
  else if (narrowLion || hasWord(text, "lion"))
    words.name = narrowLion ? "lion_8bit" : "lion";
  else if (hasWord(text, "sgd"))
    words.name = "sgd";
  else if (hasWord(text, "adagrad"))
    words.name = "adagrad";
  else if (has(text, "rmsprop_bnb"))
    words.name =
        has(text, "rmsprop_bnb_8bit") ? "rmsprop_bnb_8bit" : "rmsprop_bnb";
  else if (hasWord(text, "rmsprop"))
    words.name = "rmsprop";
  else if (hasWord(text, "ademamix") || has(text, "ademamix_"))
    words.name = std::string(paged ? "paged_" : "") + "ademamix" +
                 (has(text, "ademamix_8bit") ? "_8bit"
                  : paged                    ? "_32bit"
                                             : "");
  else if (eight)
    words.name = paged ? "paged_adamw_8bit" : "adamw_8bit";
  else if (paged)
    words.name = "paged_adamw_32bit";
  return words;
}

int monthIn(const std::string &text) {
  static const char *const names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                      "jul", "aug", "sep", "oct", "nov", "dec"};
  for (size_t at = text.find("20"); at != text.npos;
       at = text.find("20", at + 1)) {
    if (at > 0 && letterOrDigit(text[at - 1]))
      continue;
    std::string digits;
    for (size_t i = at; i < text.size() && digits.size() < 6; ++i) {
      if (digit(text[i]))
        digits += text[i];
      else if ((text[i] != '-' && text[i] != '/') || digits.size() != 4)
        break;
    }
    const size_t end = text.find_first_not_of("0123456789", at);
    if (digits.size() == 5 ||
        (end == text.npos ? text.size() : end) - at > digits.size())
      continue; // of a longer number
    const int number = std::atoi(digits.c_str());
    if (digits.size() == 6 && number >= 202001 && number <= 203012 &&
        number % 100 >= 1 && number % 100 <= 12)
      return number;
    // "april 2024", "apr. 12, 2024"
    const int year = std::atoi(digits.substr(0, 4).c_str());
    if (digits.size() < 4 || year < 2020 || year > 2030)
      continue;
    const std::string before =
        text.substr(at > 16 ? at - 16 : 0, at > 16 ? 16 : at);
    for (int month = 0; month < 12; ++month)
      if (wordStart(before, names[month], 0) != before.npos)
        return year * 100 + month + 1;
  }
  return 0;
}

} // namespace accel::validate
