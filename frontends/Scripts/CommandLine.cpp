//===- CommandLine.cpp - A command line as a text with places -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Follows argparse of Python 3.11 and HfArgumentParser of transformers 5.23:
// hyphens for underscores, --name=value, unique prefixes, --no_name for flags
// that are on by default, nargs of ?, + and none.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/CommandLine.h"

#include <algorithm>
#include <charconv>

namespace accel::scripts {
namespace {

bool isPlain(const std::string &word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           std::string_view("_-+=./:,@%*?~").find(c) != std::string_view::npos;
  });
}

std::string quoted(const std::string &word) {
  if (isPlain(word))
    return word;
  std::string out = "'";
  for (char c : word)
    out += c == '\''                              ? std::string("'\\''")
           : static_cast<unsigned char>(c) < 0x20 ? std::string(" ")
                                                  : std::string(1, c);
  return out + "'";
}

int width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// argparse: a negative number is no option.
bool isOption(const std::string &word) {
  if (word.size() < 2 || word[0] != '-')
    return false;
  return !((word[1] >= '0' && word[1] <= '9') || word[1] == '.');
}

/// transformers.hf_argparser.string_to_bool.
std::optional<bool> truth(std::string text) {
  for (char &c : text)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const char *word : {"yes", "true", "t", "y", "1"})
    if (text == word)
      return true;
  for (const char *word : {"no", "false", "f", "n", "0"})
    if (text == word)
      return false;
  return std::nullopt;
}

/// The option strings of an argument, without the leading dashes.
std::vector<std::pair<std::string, bool>> formsOf(const ArgumentInfo &info) {
  std::vector<std::pair<std::string, bool>> forms;
  auto add = [&](std::string name, bool negated) {
    forms.emplace_back(name, negated);
    std::replace(name.begin(), name.end(), '_', '-');
    if (name != forms.back().first)
      forms.emplace_back(std::move(name), negated);
  };
  add(std::string(info.name), false);
  if (info.type == ArgumentType::Bool && info.standard == "true" &&
      info.arity == Arity::Optional)
    add("no_" + std::string(info.name), true);
  return forms;
}

} // namespace

std::vector<Word> placeWords(const std::vector<std::string> &words,
                             const std::string &name,
                             DiagnosticEngine &engine) {
  std::vector<Word> result;
  std::string line;
  int column = 1;
  for (const std::string &word : words) {
    if (!line.empty()) {
      line += ' ';
      ++column;
    }
    const std::string shown = quoted(word);
    Word placed;
    placed.text = word;
    placed.range.begin = {1, column, line.size()};
    column += width(shown);
    line += shown;
    placed.range.end = {1, column, line.size()};
    result.push_back(std::move(placed));
  }
  engine.addSource(name, line + "\n");
  return result;
}

void OptionParser::setOptions(std::vector<const ArgumentInfo *> known,
                              bool abbreviations) {
  options = std::move(known);
  abbreviate = abbreviations;
}

void OptionParser::error(const yaml::Range &at, const std::string &key,
                         const std::string &message, const std::string &hint) {
  Diagnostic d;
  d.code = "invalid-argument";
  d.file = file;
  d.key = key;
  d.message = message;
  d.hint = hint;
  d.setRange(at);
  engine.report(std::move(d));
}

const ArgumentInfo *OptionParser::find(std::string_view option, bool &negated,
                                       bool &ambiguous) const {
  negated = ambiguous = false;
  // Python 3.11 counts --learning_rate and --learning-rate as two options that
  // --learn may mean.
  const ArgumentInfo *only = nullptr;
  for (const ArgumentInfo *info : options)
    for (const auto &[form, negates] : formsOf(*info)) {
      if (form == option) {
        negated = negates;
        ambiguous = false;
        return info;
      }
      if (!abbreviate || !form.starts_with(option))
        continue;
      ambiguous |= only != nullptr;
      only = info;
      negated = negates;
    }
  return ambiguous ? nullptr : only;
}

bool OptionParser::isChoice(const ArgumentInfo &info, const Word &word,
                            const std::string &written) {
  std::vector<std::string> choices(info.choices.begin(), info.choices.end());
  if (choices.empty() ||
      std::find(choices.begin(), choices.end(), word.text) != choices.end())
    return true;
  std::string all;
  for (const std::string &choice : choices)
    all += (all.empty() ? "" : ", ") + choice;
  const std::string hint = didYouMean(word.text, choices);
  error(word.range, written,
        "argument " + written + ": invalid choice '" + printable(word.text) +
            "'",
        hint.empty() ? "choose from " + all : hint);
  return false;
}

const yaml::Node *OptionParser::valueOf(const ArgumentInfo &info,
                                        const Word &word,
                                        const std::string &written) {
  const std::string &text = word.text;
  auto wrong = [&](const std::string &expected) {
    error(word.range, written,
          "argument " + written + ": '" + printable(text) + "' is not " +
              expected,
          "argparse stops the script with this");
    return nullptr;
  };
  if (!isChoice(info, word, written))
    return nullptr;
  switch (info.type) {
  case ArgumentType::Bool:
    if (std::optional<bool> value = truth(text))
      return nodes.boolean(file, word.range, *value);
    return wrong("a truth value (true, false, yes, no, 1, 0)");
  case ArgumentType::Int: {
    int64_t value = 0;
    const char *begin = text.data(), *end = begin + text.size();
    if (begin != end && *begin == '+')
      ++begin;
    auto [stop, bad] = std::from_chars(begin, end, value);
    if (bad != std::errc() || stop != end || begin == end)
      return wrong("an integer");
    return nodes.integer(file, word.range, value);
  }
  case ArgumentType::Float: {
    double value = 0;
    const char *end = text.data() + text.size();
    auto [stop, bad] = std::from_chars(text.data(), end, value);
    if (bad != std::errc() || stop != end || text.empty())
      return wrong("a number");
    yaml::Node *node = nodes.text(file, word.range, text);
    node->kind = yaml::Kind::Float;
    node->number = value;
    return node;
  }
  case ArgumentType::Dict:
    if (text.starts_with('{')) {
      DiagnosticEngine inner;
      auto document = yaml::parseText("argument.json", text, inner);
      if (!document || !document->root())
        return wrong("a mapping in JSON");
      const yaml::Node *node = nodes.copy(*document->root(), file, &word.range);
      nodes.keep(std::move(document));
      return node;
    }
    return nodes.text(file, word.range, text);
  case ArgumentType::List:
  case ArgumentType::Text:
  case ArgumentType::Any:
    break;
  }
  return nodes.text(file, word.range, text);
}

std::optional<Given> OptionParser::take(const std::vector<Word> &words,
                                        size_t &i) {
  const Word &word = words[i];
  if (!isOption(word.text) || !word.text.starts_with("--") ||
      word.text.size() == 2)
    return std::nullopt;
  const size_t equals = word.text.find('=');
  const std::string written = word.text.substr(0, equals);
  bool negated = false, ambiguous = false;
  const ArgumentInfo *info =
      find(std::string_view(written).substr(2), negated, ambiguous);
  if (!info) {
    if (!ambiguous)
      return std::nullopt;
    error(word.range, written,
          "option " + printable(written) + " could mean several arguments",
          "write its whole name");
    ++i;
    if (equals == std::string::npos && i < words.size() &&
        !isOption(words[i].text))
      ++i;
    return std::nullopt;
  }
  if (info->arity == Arity::Never) {
    error(word.range, written,
          "argument " + written + " takes no text; argparse stops the script",
          "give it in a file of arguments");
    ++i;
    if (equals == std::string::npos && i < words.size() &&
        !isOption(words[i].text))
      ++i;
    return std::nullopt;
  }
  Given given;
  given.name = info->name;
  given.written = written;
  given.family = family;
  given.info = info;
  given.file = file;
  given.key = word.range;
  ++i;
  if (negated || info->arity == Arity::None) {
    given.value = nodes.boolean(file, word.range, !negated);
    return given;
  }
  std::vector<Word> values;
  if (equals != std::string::npos) {
    Word value = word;
    value.text = word.text.substr(equals + 1);
    if (isPlain(word.text)) {
      value.range.begin.column += width(word.text.substr(0, equals + 1));
      value.range.begin.byte += equals + 1;
    }
    values.push_back(std::move(value));
  } else {
    const bool many = info->arity == Arity::Some;
    while (i < words.size() && !isOption(words[i].text) &&
           (many || values.empty()))
      values.push_back(words[i++]);
  }
  if (values.empty()) {
    if (info->arity != Arity::Optional) {
      error(word.range, written,
            "argument " + written + ": expected " +
                (info->arity == Arity::Some ? "at least one argument"
                                            : "one argument"),
            "write " + written + " " +
                (info->type == ArgumentType::Bool ? "true" : "VALUE"));
      return std::nullopt;
    }
    given.value = nodes.boolean(file, word.range, true);
    return given;
  }
  if (info->arity == Arity::Some || info->type == ArgumentType::List) {
    yaml::Range all = values.front().range;
    all.end = values.back().range.end;
    yaml::Node *list = nodes.make(file, all);
    list->kind = yaml::Kind::Sequence;
    for (const Word &value : values)
      if (!isChoice(*info, value, written))
        return std::nullopt;
    for (const Word &value : values)
      list->items.push_back(nodes.text(file, value.range, value.text));
    given.value = list;
    return given;
  }
  given.value = valueOf(*info, values.front(), written);
  if (!given.value)
    return std::nullopt;
  return given;
}

} // namespace accel::scripts
