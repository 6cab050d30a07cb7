//===- ScriptArguments.cpp - Whose arguments, and what each means ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ScriptArguments.h"

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>

namespace accel::scripts {
namespace {

constexpr std::string_view configOf(Reader reader) {
  switch (reader) {
  case Reader::Sft:
    return "SFTConfig";
  case Reader::Dpo:
    return "DPOConfig";
  case Reader::Grpo:
    return "GRPOConfig";
  default:
    return "";
  }
}

/// Arguments of transformers' example scripts (run_clm.py) and of the many
/// scripts made after them, by the name that TRL has for each.
constexpr std::pair<std::string_view, std::string_view> exampleNames[] = {
    {"torch_dtype", "dtype"},           {"block_size", "max_length"},
    {"max_seq_length", "max_length"},   {"max_seq_len", "max_length"},
    {"model_max_length", "max_length"}, {"cutoff_len", "max_length"}};

bool isHarmless(const ArgumentMeaning &meaning, const ArgumentInfo *info,
                const yaml::Node &value) {
  auto text = [](const yaml::Node &node) {
    return node.isNull() ? std::string("null")
           : node.kind == yaml::Kind::Bool
               ? std::string(node.boolean ? "true" : "false")
               : yaml::shortText(node);
  };
  const std::string shown = text(value);
  if (value.isNull() || (value.isSequence() && value.items.empty()))
    return true;
  for (std::string_view harmless : meaning.harmless) {
    if (shown == harmless)
      return true;
    if (value.kind == yaml::Kind::Float && value.number == 0 &&
        (harmless == "0" || harmless == "0.0"))
      return true;
  }
  if (!info || info->standard.empty())
    return false;
  std::string_view standard = info->standard;
  if (standard.starts_with('"'))
    standard = standard.substr(1, standard.size() - 2);
  return shown == standard;
}

std::string joined(const std::vector<std::string> &names) {
  std::string out;
  for (const std::string &name : names)
    out += (out.empty() ? "" : ", ") + name;
  return out;
}

} // namespace

const char *toString(Reader reader) {
  constexpr const char *names[] = {"TrainingArguments", "SFTConfig",
                                   "DPOConfig",         "GRPOConfig",
                                   "axolotl",           "LLaMA-Factory"};
  return names[static_cast<int>(reader)];
}

bool isTrl(Reader reader) { return !configOf(reader).empty(); }

std::optional<Reader> readerOfTask(const std::string &task) {
  if (task == "sft")
    return Reader::Sft;
  if (task == "dpo")
    return Reader::Dpo;
  if (task == "grpo")
    return Reader::Grpo;
  return std::nullopt;
}

const yaml::Node *llamaFactoryV1Key(const yaml::Node &root) {
  if (root.isMapping() && root.find("model"))
    for (const char *own : {"model_class", "dist_config", "kernel_config",
                            "peft_config", "quant_config", "train_dataset"})
      if (const yaml::Entry *entry = root.findEntry(own))
        return entry->key;
  return nullptr;
}

std::optional<Reader> readerOf(const yaml::Node &root) {
  if (!root.isMapping() || root.find("compute_environment") ||
      root.find("distributed_type") || root.find("accelerate"))
    return std::nullopt;
  if (root.find("model")) // a job.yaml, or a recipe of the second trainer
    return llamaFactoryV1Key(root) ? std::optional(Reader::LlamaFactory)
                                   : std::nullopt;
  if (root.find("base_model"))
    return Reader::Axolotl;
  if (root.find("stage") || root.find("finetuning_type") ||
      root.find("cutoff_len"))
    return Reader::LlamaFactory;
  // What one of TRL's configurations alone has.
  constexpr std::pair<std::string_view, Reader> owners[] = {
      {"SFTConfig", Reader::Sft},
      {"DPOConfig", Reader::Dpo},
      {"GRPOConfig", Reader::Grpo}};
  int best = 0;
  std::optional<Reader> found;
  bool trainer = false;
  // TRL's recipes may hold keys for the launcher.
  const bool launches =
      root.find("model_name_or_path") || root.find("accelerate_config");
  for (const yaml::Entry &entry : root.entries) {
    const std::string &name = entry.key->text;
    const KeyInfo *key = findKey("", name);
    if (key || findSection(name)) {
      // num_processes stands in accelerate files alone, debug in both.
      if (!launches &&
          !findArgument(Family::Transformers, "TrainingArguments", name))
        return std::nullopt;
      continue;
    }
    trainer |= findArgument(Family::Transformers, "TrainingArguments", name) ||
               removedArgument(name);
  }
  for (const auto &[owner, reader] : owners) {
    int own = 0;
    for (const yaml::Entry &entry : root.entries) {
      const std::string &name = entry.key->text;
      if (!findArgument(Family::Trl, owner, name) ||
          findArgument(Family::Transformers, "TrainingArguments", name))
        continue;
      int others = 0;
      for (const auto &[other, _] : owners)
        others += findArgument(Family::Trl, other, name) != nullptr;
      own += 4 - others;
    }
    if (own > best) {
      best = own;
      found = reader;
    }
  }
  if (found)
    return found;
  // alignment-handbook: the model and how it is trained in one file.
  if (root.find("model_name_or_path") &&
      (root.find("dataset_mixer") || root.find("dataset_mixture") ||
       root.find("dataset_name") || root.find("use_peft") ||
       root.find("num_processes") || root.find("accelerate_config")))
    return Reader::Sft;
  if (trainer)
    return Reader::Trainer;
  return std::nullopt;
}

Recipe::Recipe(Reader reader, Versions versions, bool planning,
               NodeStore &nodes, DiagnosticEngine &engine)
    : whose(reader), releases(std::move(versions)), forPlanning(planning),
      nodes(nodes), engine(engine) {
  // The newest that LLaMA-Factory allows (its pyproject.toml).
  if (reader == Reader::LlamaFactory && isAtLeast(releases.transformers, "5.9"))
    releases.transformers = "5.8.0";
  if (reader == Reader::Axolotl) {
    for (const char *owner :
         {"axolotl", "liger", "cut_cross_entropy", "swanlab", "lm_eval"})
      owners.emplace_back(Family::Axolotl, owner);
    return;
  }
  if (reader == Reader::LlamaFactory)
    for (const char *owner :
         {"ModelArguments", "DataArguments", "TrainingArguments",
          "FinetuningArguments", "GeneratingArguments"})
      owners.emplace_back(Family::LlamaFactory, owner);
  if (isTrl(reader))
    owners.emplace_back(Family::Trl, configOf(reader));
  owners.emplace_back(Family::Transformers, "TrainingArguments");
  owners.emplace_back(Family::Transformers, "Seq2SeqTrainingArguments");
  if (reader == Reader::LlamaFactory)
    return;
  owners.emplace_back(Family::Trl, "ModelConfig");
  if (isTrl(reader)) {
    owners.emplace_back(Family::Trl, reader == Reader::Grpo
                                         ? "GRPOScriptArguments"
                                         : "ScriptArguments");
    owners.emplace_back(Family::Trl, "DatasetMixtureConfig");
  }
}

const ArgumentInfo *Recipe::find(std::string_view name, Family &family) const {
  for (const auto &[whoseTable, owner] : owners)
    if (const ArgumentInfo *info = findArgument(whoseTable, owner, name)) {
      family = whoseTable;
      return info;
    }
  return nullptr;
}

const yaml::Node *Recipe::standard(const std::string &name) const {
  Family family{};
  const ArgumentInfo *info = nullptr;
  // Of the name that means it here.
  for (const ArgumentMeaning &meaning : allMeanings())
    if (meaning.meaning == Meaning::Same && meaning.text == name && !info)
      if (const ArgumentInfo *same = find(meaning.name, family);
          same && family == meaning.family)
        info = same;
  if (!info)
    info = find(name, family);
  if (!info || info->standard.empty())
    return nullptr;
  DiagnosticEngine ignored;
  auto document =
      yaml::parseText("default.json", std::string(info->standard), ignored);
  if (!document || !document->root())
    return nullptr;
  const yaml::Node *root = document->root();
  nodes.keep(std::move(document));
  return root;
}

//===----------------------------------------------------------------------===//
// What is given
//===----------------------------------------------------------------------===//

void Recipe::add(const std::string &name, const std::string &written,
                 const yaml::Node *value, const std::string &file,
                 const yaml::Range &key) {
  Given given;
  given.name = name;
  given.written = written;
  given.value = value;
  given.file = file;
  given.key = key;
  given.info = find(name, given.family);
  if (!given.info) { // known to a script like transformers' examples
    given.family = Family::Trl;
    given.info = findArgument(Family::Trl, "SFTConfig", name);
    if (!given.info)
      given.info = findArgument(Family::Trl, "ModelConfig", name);
  }
  const yaml::Node &node = *value;
  // YAML 1.1 makes 1e-5 a string, which argparse's float() or a dataclass'
  // arithmetic takes; a number in quotes is none.
  double number = 0;
  const bool numberText =
      given.info->type == ArgumentType::Float && node.isString() &&
      node.isPlain() &&
      std::sscanf(node.text.c_str(), "%lf", &number) == 1; // NOLINT
  if (numberText) {
    yaml::Node *converted = nodes.copy(node, file);
    converted->kind = yaml::Kind::Float;
    converted->number = number;
    given.value = converted;
  } else if (!node.isNull() && !fits(given.info->type, node) &&
             given.info->type != ArgumentType::Any &&
             !(given.info->standard.starts_with('"') && node.isString()) &&
             !(name == "fsdp" && node.isSequence()) &&
             whose != Reader::Axolotl) {
    report(engine, Severity::Error, "invalid-value", given,
           "'" + written + "' is " + yaml::shortText(node) + ", not " +
               describe(given.info->type),
           "");
    return;
  }
  if (node.isNull() && !given.info->nullable &&
      given.info->type != ArgumentType::Any && whose != Reader::Axolotl) {
    report(engine, Severity::Error, "invalid-value", given,
           "'" + written + "' is null, not " + describe(given.info->type),
           "remove the line, or write " +
               (given.info->standard.empty()
                    ? std::string("a value")
                    : std::string(given.info->standard)));
    return;
  }
  if (!given.info->choices.empty() && given.value->isString() &&
      given.info->type != ArgumentType::List) {
    std::vector<std::string> choices(given.info->choices.begin(),
                                     given.info->choices.end());
    if (std::find(choices.begin(), choices.end(), given.value->text) ==
        choices.end()) {
      const std::string hint = didYouMean(given.value->text, choices);
      report(engine, Severity::Error, "invalid-value", given,
             "'" + written + "' is no '" + printable(given.value->text) + "'",
             hint.empty() ? "it is one of " + joined(choices) : hint);
      return;
    }
  }
  given_.add(std::move(given));
}

void Recipe::unknown(const std::string &written, const std::string &file,
                     const yaml::Range &at) {
  unknowns.push_back({written, file, at});
}

void Recipe::addFile(const std::string &file, const yaml::Node &root) {
  for (const yaml::Entry &entry : root.entries) {
    const std::string &name = entry.key->text;
    Family family{};
    std::string meant = name;
    if (!find(name, family)) {
      const bool example =
          whose != Reader::Axolotl && whose != Reader::LlamaFactory && !stops;
      auto alias =
          std::find_if(std::begin(exampleNames), std::end(exampleNames),
                       [&](const auto &a) { return a.first == name; });
      if (const RemovedArgument *former = removedArgument(name);
          former && whose != Reader::Axolotl) {
        if (!reportRemoved(*former, name, file, entry.key->range,
                           releases.transformers, engine))
          continue;
        if (!*former->instead || !find(former->instead, family))
          continue;
        meant = former->instead;
      } else if (example && alias != std::end(exampleNames)) {
        meant = alias->second;
      } else {
        unknown(name, file, entry.key->range);
        continue;
      }
    }
    add(meant, name, entry.value, file, entry.key->range);
  }
}

bool Recipe::addAssignment(const Word &word) {
  const size_t equals = word.text.find('=');
  if (equals == std::string::npos || equals == 0)
    return false;
  std::string name = word.text.substr(0, equals);
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  Family family{};
  const ArgumentInfo *info = find(name, family);
  if (!info)
    return false;
  yaml::Range range = word.range;
  range.begin.column += static_cast<int>(equals) + 1;
  const yaml::Node *value =
      nodes.plain(commandLineName, range, word.text.substr(equals + 1));
  add(name, word.text.substr(0, equals), value, commandLineName, word.range);
  return true;
}

void Recipe::addWords(const std::vector<Word> &words,
                      const std::function<bool(const Word &)> &file) {
  // A name of the first class that has it.
  std::vector<const ArgumentInfo *> options;
  std::vector<std::string_view> names;
  for (const auto &[family, owner] : owners)
    for (const ArgumentInfo &info : argumentsOf(family))
      if (info.owner == owner &&
          std::find(names.begin(), names.end(), info.name) == names.end()) {
        options.push_back(&info);
        names.push_back(info.name);
      }
  const bool click = whose == Reader::Axolotl;
  OptionParser parser(commandLineName, Family::Transformers, nodes, engine);
  parser.setOptions(options, /*abbreviations=*/!click);
  for (size_t i = 0; i < words.size();) {
    const Word &word = words[i];
    const size_t equals = word.text.find('=');
    const std::string written = word.text.substr(0, equals);
    if (!word.text.starts_with("-") &&
        ((whose == Reader::LlamaFactory && addAssignment(word)) ||
         file(word))) {
      ++i;
      continue;
    }
    if (written == "--config" && equals == std::string::npos &&
        i + 1 < words.size()) {
      file(words[i + 1]);
      i += 2;
      continue;
    }
    const size_t before = i;
    if (std::optional<Given> given = parser.take(words, i)) {
      find(given->name, given->family);
      given_.add(std::move(*given));
      continue;
    }
    if (i > before) // wrong, and reported
      continue;
    ++i;
    if (!word.text.starts_with("-") || word.text == "-") {
      unknown(word.text, commandLineName, word.range);
      continue;
    }
    std::string name = written;
    name.erase(0, name.find_first_not_of('-'));
    std::replace(name.begin(), name.end(), '-', '_');
    // Its value, as far as one can tell.
    std::optional<Word> value;
    if (equals != std::string::npos) {
      value = word;
      value->text = word.text.substr(equals + 1);
    } else if (i < words.size() && !words[i].text.starts_with("--")) {
      value = words[i++];
    }
    auto alias = std::find_if(std::begin(exampleNames), std::end(exampleNames),
                              [&](const auto &a) { return a.first == name; });
    if (const RemovedArgument *former = removedArgument(name)) {
      if (reportRemoved(*former, written, commandLineName, word.range,
                        releases.transformers, engine) &&
          *former->instead && value) {
        Family family{};
        if (const ArgumentInfo *info = find(former->instead, family))
          if (const yaml::Node *node = parser.valueOf(*info, *value, written))
            add(former->instead, written, node, commandLineName, word.range);
      }
    } else if (alias != std::end(exampleNames) && value && !stops) {
      add(std::string(alias->second), written,
          nodes.plain(commandLineName, value->range, value->text),
          commandLineName, word.range);
    } else {
      unknown(written, commandLineName, word.range);
    }
  }
}

//===----------------------------------------------------------------------===//
// What it means
//===----------------------------------------------------------------------===//

/// trl hands it to accelerate launch.
void Recipe::reportStop(const Unknown &one, const std::string &name,
                        std::vector<std::string> known) {
  for (const ArgumentInfo &info : argumentsOf(Family::Accelerate))
    known.emplace_back(info.name);
  auto former = std::find_if(std::begin(exampleNames), std::end(exampleNames),
                             [&](const auto &a) { return a.first == name; });
  const std::string near = former == std::end(exampleNames)
                               ? didYouMean(name, known)
                               : "write " + std::string(former->second);
  Diagnostic d;
  d.code = "unknown-argument";
  d.file = one.file;
  d.key = one.name;
  d.message = "'" + printable(one.name) + "' is no argument of " +
              toString(whose) +
              ": trl hands it to accelerate launch, which stops with it";
  d.hint = (near.empty() ? "remove it" : near) +
           ", or pass --trl-version of a release that has it";
  d.setRange(one.at);
  engine.report(std::move(d));
}

void Recipe::reportUnknown() {
  std::vector<std::string> known;
  for (const auto &[family, owner] : owners)
    for (const ArgumentInfo &info : argumentsOf(family))
      if (info.owner == owner)
        known.emplace_back(info.name);
  std::map<std::string, std::vector<const Unknown *>> byFile;
  for (const Unknown &one : unknowns) {
    std::string name = one.name;
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    // hparams/parser.py reads them with USE_MCA=1, for Megatron's models.
    if (whose == Reader::LlamaFactory && planning() &&
        name.ends_with("_model_parallel_size")) {
      Diagnostic d;
      d.severity = Severity::Error;
      d.code = notSupportedCode;
      d.file = one.file;
      d.key = one.name;
      d.message = "'" + printable(one.name) +
                  "' is read where USE_MCA=1 has LLaMA-Factory train by "
                  "mcore_adapter on Megatron-Core, which is not modelled";
      d.hint = "plan a megatron_lm_config of Accelerate, or leave the keys of "
               "Megatron out";
      d.setRange(one.at);
      engine.report(std::move(d));
      return;
    }
    if (stops) {
      reportStop(one, name, known);
      continue;
    }
    const std::string hint = didYouMean(name, known);
    if (hint.empty()) {
      byFile[one.file].push_back(&one);
      continue;
    }
    Diagnostic d;
    d.severity = Severity::Warning;
    d.code = "unknown-argument";
    d.file = one.file;
    d.key = one.name;
    d.message = "'" + printable(one.name) + "' is no argument of " +
                toString(whose) + ", and is not counted";
    d.hint = hint;
    d.setRange(one.at);
    engine.report(std::move(d));
  }
  for (const auto &[file, list] : byFile) {
    std::vector<std::string> names;
    for (const Unknown *one : list)
      names.push_back(printable(one->name));
    Diagnostic d;
    d.severity = Severity::Note;
    d.code = "unknown-argument";
    d.file = file;
    d.message = std::string("of no dataclass that ") + toString(whose) +
                " reads, and not counted: " + joined(names);
    d.setRange(list.front()->at);
    engine.report(std::move(d));
  }
}

void Recipe::judge() {
  reportUnknown();
  std::map<std::string, std::vector<std::string>> silent;
  std::map<std::string, yaml::Range> first;
  std::vector<Given> renamed;
  for (const auto &[name, given] : given_.all()) {
    if (!given.info)
      continue; // an option of accel-opt
    const ArgumentMeaning *meaning = meaningOf(given.family, name);
    if (!meaning)
      meaning = meaningOf(Family::Transformers, name);
    if (!meaning)
      continue;
    switch (meaning->meaning) {
    case Meaning::Read:
      break;
    case Meaning::Same:
      renamed.push_back(given);
      renamed.back().name = meaning->text;
      break;
    case Meaning::NoEffect:
      silent[given.file].push_back(given.written);
      first.try_emplace(given.file, given.key);
      break;
    case Meaning::Slight:
      if (forPlanning && !isHarmless(*meaning, given.info, *given.value))
        report(engine, Severity::Note, "slight-effect", given,
               "'" + given.written + "' " + std::string(meaning->text) +
                   ", too few bytes to be counted",
               "");
      break;
    case Meaning::Refused:
      if (forPlanning && !isHarmless(*meaning, given.info, *given.value))
        report(engine, Severity::Error, notSupportedCode, given,
               "'" + given.written + "' " + std::string(meaning->text) +
                   ", which is not modelled yet",
               "leave it out to plan the job without it");
      break;
    }
  }
  for (Given &given : renamed)
    given_.add(std::move(given));
  for (const auto &[file, names] : silent) {
    Diagnostic d;
    d.severity = Severity::Note;
    d.code = "no-bytes";
    d.file = file;
    d.message =
        "neither the bytes nor the time of a step depend on " + joined(names);
    d.setRange(first[file]);
    engine.report(std::move(d));
  }
}

} // namespace accel::scripts
