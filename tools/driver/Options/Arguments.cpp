//===- Arguments.cpp - The command line of a subcommand -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/Arguments.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace accel {

static std::string separated(const std::string &hint) {
  return hint.empty() ? "" : "; " + hint;
}

void Arguments::addFlag(std::string name, bool &value, std::string help) {
  options.push_back({std::move(name), "", std::move(help), false,
                     [&value](const std::string &) {
                       value = true;
                       return std::string();
                     }});
}

void Arguments::addOptional(std::string name, std::string choice,
                            std::string &value, std::string help) {
  options.push_back({std::move(name), "[=" + choice + "]", std::move(help),
                     false,
                     [&value, choice](const std::string &text) -> std::string {
                       if (!text.empty() && text != choice)
                         return "expected " + choice + " or nothing" +
                                separated(didYouMean(text, {choice}));
                       value = text.empty() ? "on" : text;
                       return "";
                     },
                     true});
}

void Arguments::addText(std::string name, std::string placeholder,
                        std::string &value, std::string help) {
  std::string expected = "expected " + placeholder;
  options.push_back({std::move(name), std::move(placeholder), std::move(help),
                     true, [&value, expected](const std::string &text) {
                       value = text;
                       return text.empty() ? expected : std::string();
                     }});
}

void Arguments::addCount(std::string name, std::string placeholder,
                         int64_t &value, std::string help) {
  options.push_back(
      {std::move(name), std::move(placeholder), std::move(help), true,
       [&value](const std::string &text) -> std::string {
         int64_t number = 0;
         auto [end, error] =
             std::from_chars(text.data(), text.data() + text.size(), number);
         if (error != std::errc() || end != text.data() + text.size() ||
             number < 1 || number > (int64_t(1) << 40))
           return "expected a positive integer";
         value = number;
         return "";
       }});
}

void Arguments::addList(std::string name, std::string placeholder,
                        std::vector<std::string> &value, std::string help) {
  options.push_back({std::move(name), std::move(placeholder), std::move(help),
                     true, [&value](const std::string &text) {
                       value.push_back(text);
                       return std::string();
                     }});
}

void Arguments::addChoice(std::string name, std::vector<std::string> choices,
                          std::string &value, std::string help) {
  std::string placeholder;
  for (const std::string &choice : choices)
    placeholder += (placeholder.empty() ? "" : "|") + choice;
  options.push_back(
      {std::move(name), placeholder, std::move(help), true,
       [&value, choices, placeholder](const std::string &text) -> std::string {
         if (std::find(choices.begin(), choices.end(), text) == choices.end())
           return "expected " + placeholder +
                  separated(didYouMean(text, choices));
         value = text;
         return "";
       }});
}

void Arguments::addOptional(std::string name, std::vector<std::string> choices,
                            std::string &value, std::string without,
                            std::string help) {
  std::string placeholder;
  for (const std::string &choice : choices)
    placeholder += (placeholder.empty() ? "" : "|") + choice;
  Option option{std::move(name), placeholder, std::move(help), false, nullptr};
  option.optional = true;
  option.set = [&value, choices, without,
                placeholder](const std::string &text) -> std::string {
    if (!text.empty() &&
        std::find(choices.begin(), choices.end(), text) == choices.end())
      return "expected " + placeholder + separated(didYouMean(text, choices));
    value = text.empty() ? without : text;
    return "";
  };
  options.push_back(std::move(option));
}

void Arguments::addPrefixed(
    std::string prefix, std::string placeholder,
    std::function<std::string(const std::string &)> take, std::string help) {
  Option option{std::move(prefix), std::move(placeholder), std::move(help),
                false, std::move(take)};
  option.prefix = true;
  options.push_back(std::move(option));
}

bool Arguments::parse(int argc, char **argv, int &exitCode) {
  exitCode = exitOk;
  bool onlyPositional = false;
  for (int i = 0; i < argc; ++i) {
    std::string text = argv[i];
    if (onlyPositional || text.size() < 2 || text[0] != '-') {
      positional.push_back(text);
      continue;
    }
    if (text == "--") {
      onlyPositional = true;
      continue;
    }
    if (text == "--help" || text == "-h") {
      printHelp();
      return false;
    }
    std::string name = text, value;
    size_t equals = text.find('=');
    bool hasValue = equals != std::string::npos;
    if (hasValue) {
      name = text.substr(0, equals);
      value = text.substr(equals + 1);
    }
    auto option =
        std::find_if(options.begin(), options.end(), [&](const Option &o) {
          return o.prefix ? text.starts_with(o.name) : o.name == name;
        });
    if (option == options.end()) {
      std::vector<std::string> names;
      for (const Option &o : options)
        names.push_back(o.name);
      exitCode = usageError("unknown option '" + printable(name) + "'",
                            separated(didYouMean(name, names)));
      return false;
    }
    if (option->prefix) {
      name = text;
      value = text.substr(option->name.size());
    } else if (option->takesValue && !hasValue) {
      if (i + 1 == argc) {
        exitCode = usageError(
            "'" + name + "' needs a value: " + option->placeholder, "");
        return false;
      }
      value = argv[++i];
    } else if (!option->takesValue && !option->mayTakeValue &&
               !option->optional && hasValue) {
      exitCode = usageError("'" + name + "' takes no value", "");
      return false;
    }
    if (std::string problem = option->set(value); !problem.empty()) {
      std::string shown = option->prefix || option->optional
                              ? printable(text)
                              : name + " " + printable(value);
      exitCode = usageError("'" + shown + "': " + problem, "");
      return false;
    }
  }
  return true;
}

void Arguments::printHelp() const {
  std::printf("usage: accel-opt %s %s [options]\n\n%s\n\noptions:\n",
              command.c_str(), positionals.c_str(), summary.c_str());
  for (const Option &option : options) {
    std::string left = option.name;
    if (option.takesValue)
      left += " " + option.placeholder;
    else if (option.optional)
      left += "[=" + option.placeholder + "]";
    else
      left += option.placeholder;
    std::printf("  %-34s %s%s\n", left.c_str(),
                left.size() > 34 ? "\n                                     "
                                 : "",
                option.help.c_str());
  }
  std::printf("  %-34s %s\n", "--help", "this text");
}

int Arguments::usageError(const std::string &message,
                          const std::string &hint) const {
  std::fprintf(stderr, "accel-opt %s: error: %s%s\n", command.c_str(),
               message.c_str(), hint.c_str());
  std::fprintf(stderr,
               "usage: accel-opt %s %s [options]; see accel-opt %s "
               "--help\n",
               command.c_str(), positionals.c_str(), command.c_str());
  return exitUsage;
}

} // namespace accel
