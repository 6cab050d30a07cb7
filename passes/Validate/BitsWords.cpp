//===- BitsWords.cpp - Bits of weights and of optimizer states ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// "8-bit" is of a quantised base or of the optimizer's states, by the words
// beside it.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/TextWords.h"

namespace accel::validate {

namespace {

/// A text without the words that give an optimizer's states their bits, so that
/// those that are left are of weights.
struct NarrowStates {
  std::string rest;
  int bits = 0;           // 8 or 4; 0: none are said
  bool byTorchao = false; // "adamw_torch_8bit"
};

bool isOptimizer(const std::string &word) {
  return startsOneOf(word, {"adam", "lion", "adagrad", "ademamix", "rmsprop",
                            "sgd", "optim"}) ||
         isOneOf(word, {"state", "states", "moments"});
}

NarrowStates narrowStates(const std::string &text) {
  struct Word {
    size_t begin, end;
    std::string text;
  };
  NarrowStates result;
  std::string &rest = result.rest;
  // "8-bit" is one word.
  for (size_t at = 0; at < text.size(); ++at) {
    const bool joint = at > 0 && (text[at] == '-' || text[at] == ' ') &&
                       (text[at - 1] == '8' || text[at - 1] == '4') &&
                       (at < 2 || !letterOrDigit(text[at - 2])) &&
                       text.compare(at + 1, 3, "bit") == 0;
    if (!joint)
      rest += text[at];
  }
  std::vector<Word> words;
  for (size_t at = 0; at < rest.size(); ++at)
    if (letterOrDigit(rest[at])) {
      if (at == 0 || !letterOrDigit(rest[at - 1]))
        words.push_back({at, at, ""});
      words.back().end = at + 1;
      words.back().text += rest[at];
    }
  // Of one phrase: nothing but these between two words.
  auto joined = [&](size_t first, size_t second, const char *by) {
    return rest.find_first_not_of(by, words[first].end) >= words[second].begin;
  };
  auto erase = [&](size_t first, size_t last) {
    for (size_t i = words[first].begin; i < words[last].end; ++i)
      rest[i] = ' ';
  };
  auto between = [&](size_t i) {
    return isOneOf(words[i].text, {"torch", "torchao", "ao", "bnb", "paged",
                                   "bitsandbytes", "fused", "blockwise"});
  };
  // The optimizer's word before or behind word `i`; `i`: there is none.
  auto before = [&](size_t i, const char *by) {
    for (size_t at = i; at > 0 && joined(at - 1, at, by); --at) {
      if (isOptimizer(words[at - 1].text))
        return at - 1;
      if (!between(at - 1))
        break;
    }
    return i;
  };
  auto behind = [&](size_t i) {
    for (size_t at = i + 1; at < words.size() && joined(at - 1, at, " -_");
         ++at) {
      if (isOptimizer(words[at].text))
        return at;
      if (!between(at))
        break;
    }
    return i;
  };
  auto follows = [&](size_t i, Words starts) {
    return i + 1 < words.size() && joined(i, i + 1, " -_") &&
           startsOneOf(words[i + 1].text, starts);
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i].text;
    const bool eight = word.ends_with("8bit"), four = word.ends_with("4bit");
    if (isOneOf(word, {"bnb", "bitsandbytes"}) && before(i, "_") != i)
      erase(i, i); // "rmsprop_bnb"
    if (!eight && !four)
      continue;
    size_t first = i, last = i;
    if (word.size() > 4) { // "adamw8bit"
      if (!isOptimizer(word))
        continue;
    } else if (i > 0 && joined(i - 1, i, "_")) {
      first = before(i, "_");
    } else if (follows(i, {"base", "quant", "model", "weight"})) {
      continue;
    } else {
      last = follows(i, {"lora", "qlora", "dora", "qdora"}) ? i : behind(i);
      first = last == i ? before(i, " -_(") : i;
    }
    if (word.size() == 4 && first == i && last == i)
      continue;
    result.bits = eight ? 8 : 4;
    for (size_t at = first; at <= last; ++at) {
      result.byTorchao |= isOneOf(words[at].text, {"torch", "torchao", "ao"});
      if (!isOptimizer(words[at].text) || at == i)
        erase(at, at);
    }
    if (first == i && i > 0 && joined(i - 1, i, " -_") && between(i - 1)) {
      result.byTorchao |= isOneOf(words[i - 1].text, {"torchao", "ao"});
      erase(i - 1, i - 1);
    }
  }
  return result;
}

} // namespace

QuantizationWords quantizationWords(const std::string &columns,
                                    const std::string &precisions) {
  const std::string text = narrowStates(columns).rest,
                    precision = narrowStates(precisions).rest;
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
  const bool four =
      bits ||
      hasAny(text, {"qlora", "q-lora", "qdora", "q-dora", "4-bit", "4bit"}) ||
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

bool namesQuantizedBase(const std::string &columns) {
  const std::vector<std::string> words = wordsOf(columns);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!startsOneOf(words[i], {"quantis", "quantiz"}) && words[i] != "quant")
      continue;
    const std::string before = i > 0 ? words[i - 1] : "",
                      behind = i + 1 < words.size() ? words[i + 1] : "";
    if (!isOneOf(before, {"no", "not", "non", "without"}) &&
        !isOneOf(behind, {"none", "no", "false", "off"}) &&
        !isOptimizer(behind))
      return true;
  }
  return false;
}

OptimizerWords optimizerWords(const std::string &text) {
  OptimizerWords words;
  for (const char *other :
       {"apollo", "came", "shampoo", "soap", "schedule-free", "schedulefree",
        "schedule_free", "adalomo", "sophia", "prodigy", "adam-mini",
        "adammini", "adam_mini", "stable_adamw", "stableadamw", "grokadamw",
        "adabelief", "adamw_anyprecision"})
    if (hasWord(text, other))
      words.refused = other;
  const NarrowStates narrow = narrowStates(text);
  const bool eight = narrow.bits == 8 || has(text, "bnb_8bit");
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
  else if (hasWord(text, "muon"))
    words.name = "muon";
  else if (narrow.bits == 4) // torchao's alone
    words.name = "adamw_torch_4bit";
  else if (eight)
    words.name = paged              ? "paged_adamw_8bit"
                 : narrow.byTorchao ? "adamw_torch_8bit"
                                    : "adamw_8bit";
  else if (paged)
    words.name = "paged_adamw_32bit";
  return words;
}

} // namespace accel::validate
