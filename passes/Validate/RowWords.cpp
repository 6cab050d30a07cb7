//===- RowWords.cpp - Words of a measured run's columns -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/TextWords.h"

#include <cstdlib>

namespace accel::validate {

using plan::DType;

namespace {

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

/// The number that follows `word` ("r16", "r-16", "r=16", "rank: -4").
std::optional<double> numberBehind(const std::string &text,
                                   const std::string &word) {
  for (size_t at = wordStart(text, word, 0); at != text.npos;
       at = wordStart(text, word, at + 1)) {
    size_t end = at + word.size();
    while (end < text.size() && (text[end] == '=' || text[end] == ' ' ||
                                 text[end] == ':' || text[end] == '-'))
      ++end;
    // A dash behind another separator is a sign.
    if (end < text.size() && end > at + word.size() + 1 && text[end - 1] == '-')
      --end;
    const size_t first = end + (end < text.size() && text[end] == '-');
    if (first >= text.size() || (!digit(text[first]) && text[first] != '.'))
      continue;
    char *stop = nullptr;
    const double value = std::strtod(text.c_str() + end, &stop);
    if (stop != text.c_str() + end && !letterOrDigit(*stop))
      return value;
  }
  return std::nullopt;
}

/// The digits that follow "zero" or "zero stage" and are no stage ("zero9").
std::string unknownStage(const std::string &text) {
  const std::vector<std::string> words = wordsOf(text);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("zero"))
      continue;
    std::string number = words[i].substr(4);
    for (size_t next = i + 1; number.empty() && next < words.size(); ++next)
      if (words[next] != "stage") {
        number = words[next];
        break;
      }
    if (!number.empty() && std::all_of(number.begin(), number.end(), digit) &&
        (number.size() > 1 || number[0] > '3'))
      return number;
  }
  return "";
}

} // namespace

std::optional<int> zeroStage(const std::string &text, bool named) {
  for (const char *word : {"zero", "stage", "z"}) {
    if (named && std::string(word) != "zero")
      continue;
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
        return isRefused(text, at, end + 1) ? 0 : text[end] - '0';
    }
  }
  return std::nullopt;
}

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && letterOrDigit(text[end]))
      ++end;
    if (end > at)
      words.push_back(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return words;
}

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
  if (has(all, "zero++"))
    words.refused = "ZeRO++ is not modelled";
  else if (const std::string number = unknownStage(all); !number.empty())
    words.refused = "ZeRO has no stage " + number + ": it is one of 0 to 3";
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
  const bool counted = sharding.starts_with("dp") &&
                       numberBehind(sharding, "dp") && !words.executor;
  if (hasAnyWord(sharding, {"ddp", "no_shard", "multi_gpu", "replicated",
                            "data parallel", "dataparallel"}) ||
      sharding == "dp" || sharding.starts_with("dp=") || counted)
    words.executor = FrameworkKind::Ddp;
  return words;
}

namespace {

/// What one clause ("optimizer offload", "params on the host") offloads.
class OffloadClause {
public:
  explicit OffloadClause(const std::string &text) : text(text) {
    std::string apart;
    for (const char c : text)
      apart += c == '+' || c == '&' ? std::string(" and ") : std::string(1, c);
    words = wordsOf(apart);
  }

  void read(OffloadWords &to) const {
    bool offload = false, placed = false, adam = false;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string &word = words[i];
      if (has(word, "offload"))
        (isOfActivations(i) ? to.activations : offload) |= !isDenied(i);
      else if (has(word, "cpuadam") || (isHost(i) && isAdam(i + 1)))
        adam |= !isDenied(i);
      else if (isHost(i) && i > 0 &&
               (isOneOf(words[i - 1], {"on", "to", "in"}) ||
                (words[i - 1] == "the" && i > 1)))
        placed |= !isDenied(i);
    }
    const bool optimizer = names({"optim", "adam", "state", "moment"});
    const bool parameters = names({"param", "weight"});
    if (offload) {
      const bool stated = has(text, "optim");
      to.optimizer = true;
      to.parameters |= !stated || parameters || has(text, "full offload");
    }
    to.optimizer |= adam || (placed && (optimizer || parameters));
    to.parameters |= placed && parameters;
    to.activations |= placed && names({"activation"}) &&
                      !names({"checkpoint"}) && !optimizer && !parameters;
    const bool zero = has(text, "zero") || offload;
    if (zero && hasAnyWord(text, {"nvme", "disk", "ssd", "infinity"}))
      to.refused = "offload to NVMe is not modelled";
  }

private:
  /// "full-parameter" is a way of training.
  bool names(Words starts) const {
    for (size_t i = 0; i < words.size(); ++i)
      if (startsOneOf(words[i], starts) && (i == 0 || words[i - 1] != "full"))
        return true;
    return false;
  }
  bool isHost(size_t i) const {
    return isOneOf(words[i], {"cpu", "host", "ram", "dram"});
  }
  bool isAdam(size_t i) const {
    return i < words.size() && startsOneOf(words[i], {"adam", "optim"});
  }
  bool startsAt(size_t i, const char *start) const {
    return i < words.size() && words[i].starts_with(start);
  }
  /// "no cpu offload", "offload_optimizer: none".
  bool isDenied(size_t i) const {
    for (size_t at = i; at > 0;) {
      --at;
      if (isOneOf(words[at], {"no", "not", "without", "non"}) ||
          (words[at] == "o" && at > 0 && words[at - 1] == "w"))
        return true;
      if (!isHost(at) &&
          !startsOneOf(words[at], {"activation", "optim", "param", "state",
                                   "weight", "full", "any"}))
        break;
    }
    for (size_t next = i + 1; next <= i + 2 && next < words.size(); ++next)
      if (isOneOf(words[next], {"none", "false", "off", "disabled", "0"}))
        return true;
    return false;
  }
  /// "activation offload", "offloaded activation checkpoints".
  bool isOfActivations(size_t i) const {
    for (size_t back = 1; back <= 2 && back <= i; ++back)
      if (words[i - back].starts_with("activation") &&
          (back == 1 || isHost(i - 1) || startsAt(i - 1, "checkpoint")))
        return true;
    return startsAt(i + 1, "activation") || startsAt(i + 1, "checkpoint") ||
           (startsAt(i + 1, "of") && startsAt(i + 2, "activation"));
  }

  const std::string &text;
  std::vector<std::string> words;
};

} // namespace

OffloadWords offloadWords(const std::string &text) {
  OffloadWords words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(",;|", at), text.size());
    const std::string clause = text.substr(at, end - at);
    OffloadClause(clause).read(words);
    at = end + 1;
  }
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
        "ia3",           "oft",           "boft",          "bone",
        "loftq",         "qpissa",        "spectrum",      "randlora"})
    if (hasWord(text, other))
      words.refused = other;
  words.magnitude = has(text, "dora");
  words.adapter = words.magnitude || hasAny(text, {"lora", "pissa", "peft"}) ||
                  !words.refused.empty();
  for (const char *word : {"r", "rank", "lora_r", "lora_rank", "lora-rank"})
    if (std::optional<double> rank = numberBehind(text, word);
        rank && *rank >= 1 && *rank <= 65536 && words.rank == 0)
      words.rank = static_cast<int64_t>(*rank);
    else if (rank && *rank < 1 && words.adapter && words.refused.empty())
      words.refused =
          "a rank of " +
          std::to_string(static_cast<int64_t>(std::max(*rank, -1e9)));
  words.dropout = numberBehind(text, "dropout");
  if (words.dropout && *words.dropout < 0 && words.refused.empty())
    words.refused = "a negative dropout";
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
