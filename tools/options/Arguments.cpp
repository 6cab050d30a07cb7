//===- Arguments.cpp - The command line of a command ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/options/Arguments.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace accel {
namespace {

/// Columns of the help.
constexpr size_t helpColumn = 37, helpWidth = 80;

/// `text` in lines that end before column 80, all from column 37 on.
std::string wrapped(const std::string &text) {
  std::string out;
  size_t column = helpColumn;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t size = end - begin;
    if (column > helpColumn && column + 1 + size >= helpWidth) {
      out += "\n" + std::string(helpColumn, ' ');
      column = helpColumn;
    } else if (column > helpColumn) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, size);
    column += size;
    begin = end + 1;
  }
  return out;
}

std::string helpLine(const std::string &left, const std::string &help) {
  std::string line = "  " + left;
  if (line.size() >= helpColumn)
    line += "\n" + std::string(helpColumn, ' ');
  else
    line.resize(helpColumn, ' ');
  return line + wrapped(help) + "\n";
}

/// The option as the help shows it: "--dim NAME=N", "--tune[=all]".
std::string shown(const Arguments::Option &option) {
  switch (option.form) {
  case Arguments::Form::Flag:
    return option.name;
  case Arguments::Form::Value:
    return option.name + " " + option.placeholder;
  case Arguments::Form::Optional:
    return option.name + "[=" + option.placeholder + "]";
  case Arguments::Form::Joined:
    break;
  }
  return option.name + option.placeholder;
}

} // namespace

Arguments::Option &
Arguments::add(std::string name, std::string placeholder, std::string help,
               Form form,
               std::function<std::string(const std::string &)> take) {
  auto option = std::make_unique<Option>();
  option->name = std::move(name);
  option->placeholder = std::move(placeholder);
  option->help = std::move(help);
  option->section = current;
  option->form = form;
  option->take = std::move(take);
  options.push_back(std::move(option));
  return *options.back();
}

Arguments::Option &Arguments::flag(std::string name, bool &value,
                                   std::string help) {
  return action(std::move(name), [&value] { value = true; }, std::move(help));
}

Arguments::Option &Arguments::action(std::string name,
                                     std::function<void()> act,
                                     std::string help) {
  return add(std::move(name), "", std::move(help), Form::Flag,
             [act = std::move(act)](const std::string &) {
               act();
               return std::string();
             });
}

Arguments::Option &
Arguments::joined(std::string prefix, std::string placeholder,
                  std::function<std::string(const std::string &)> take,
                  std::string help) {
  return add(std::move(prefix), std::move(placeholder), std::move(help),
             Form::Joined, std::move(take));
}

Arguments::Option *Arguments::find(const std::string &word) {
  const std::string name = word.substr(0, word.find('='));
  for (const auto &option : options)
    if (option->form == Form::Joined ? word.starts_with(option->name)
                                     : option->name == name)
      return option.get();
  return nullptr;
}

std::string Arguments::unknown(const std::string &name) const {
  std::vector<std::string> names;
  for (const auto &option : options)
    names.push_back(option->name);
  const std::string hint = didYouMean(name, names);
  return "unknown option '" + printable(name) + "'" +
         (hint.empty() ? "" : "; " + hint);
}

bool Arguments::parse(const std::vector<std::string> &words, int &exitCode) {
  exitCode = exitOk;
  std::set<const Option *> seen;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    if (word == "--") {
      auto &behind = behindDashes ? *behindDashes : positional;
      behind.insert(behind.end(), words.begin() + i + 1, words.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      positional.push_back(word);
      continue;
    }
    if (word == "--help" || word == "-h" || word == "--help=json") {
      std::fputs((word == "--help=json" ? helpJson() : help()).c_str(), stdout);
      return false;
    }
    const size_t equals = word.find('=');
    const bool hasValue = equals != std::string::npos;
    const std::string name = word.substr(0, equals);
    std::string value = hasValue ? word.substr(equals + 1) : "";
    Option *option = find(word);
    if (!option) {
      exitCode = usageError(unknown(name));
      return false;
    }
    if (option->form == Form::Joined)
      value = word.substr(option->name.size());
    if (option->form == Form::Flag && hasValue) {
      exitCode = usageError("'" + name + "' takes no value");
      return false;
    }
    if (option->form == Form::Value && !hasValue) {
      if (i + 1 == words.size()) {
        exitCode =
            usageError("'" + name + "' needs a value: " + option->placeholder);
        return false;
      }
      value = words[++i];
    }
    if (!seen.insert(option).second && option->single) {
      exitCode = usageError("'" + name + "' is given twice");
      return false;
    }
    option->given = true;
    if (std::string problem = option->take(value); !problem.empty()) {
      const std::string text = option->form == Form::Value
                                   ? name + " " + printable(value)
                                   : printable(word);
      exitCode = usageError("'" + text + "': " + problem);
      return false;
    }
  }
  return true;
}

bool Arguments::one(const std::string &what, std::string &value,
                    int &exitCode) const {
  if (positional.size() == 1) {
    value = positional[0];
    return true;
  }
  exitCode = usageError("expected one " + what + ", got " +
                        std::to_string(positional.size()));
  return false;
}

bool Arguments::none(int &exitCode) const {
  if (positional.empty())
    return true;
  exitCode = usageError("expected no argument, got '" +
                        printable(positional[0]) + "'");
  return false;
}

std::string Arguments::set(const std::string &name, const std::string &value) {
  Option *option = find(name);
  if (!option)
    return unknown(name);
  option->given = true;
  const bool joined = option->form == Form::Joined && !value.empty();
  return option->take((joined ? "=" : "") + value);
}

bool Arguments::given(const std::string &name) const {
  return std::any_of(options.begin(), options.end(), [&](const auto &option) {
    return option->name == name && option->given;
  });
}

std::string Arguments::help() const {
  std::string text = "usage: " + program +
                     (positionals.empty() ? "" : " " + positionals) +
                     " [options]\n\n" + summary + "\n\noptions:\n";
  std::string title;
  for (const auto &option : options) {
    if (option->section != title)
      text += "\n" + option->section + ":\n";
    title = option->section;
    text += helpLine(shown(*option), option->help);
  }
  text += (title.empty() ? "" : "\n") + helpLine("--help", "this text");
  return ending.empty() ? text : text + "\n" + ending + "\n";
}

std::string Arguments::helpJson() const {
  constexpr const char *forms[] = {"flag", "value", "optional", "joined"};
  std::string text = "{\"program\": " + jsonString(program) +
                     ",\n\"positionals\": " + jsonString(positionals) +
                     ",\n\"summary\": " + jsonString(summary) +
                     ",\n\"ending\": " + jsonString(ending) +
                     ",\n\"options\": [";
  for (const auto &option : options)
    text += (option == options.front() ? "\n {" : ",\n {") +
            ("\"name\": " + jsonString(option->name)) +
            ", \"placeholder\": " + jsonString(option->placeholder) +
            ", \"help\": " + jsonString(option->help) +
            ", \"section\": " + jsonString(option->section) + ", \"form\": \"" +
            forms[static_cast<int>(option->form)] + "\"}";
  return text + "]}\n";
}

int Arguments::usageError(const std::string &message) const {
  std::fprintf(stderr, "%s: error: %s\n", program.c_str(), message.c_str());
  std::fprintf(stderr, "usage: %s%s%s [options]; see %s --help\n",
               program.c_str(), positionals.empty() ? "" : " ",
               positionals.c_str(), program.c_str());
  return exitUsage;
}

} // namespace accel
