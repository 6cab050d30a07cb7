//===- TrlLaunch.cpp - What TRL hands to accelerate launch ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// TrlParser.set_defaults_with_config (trl/scripts/utils.py) makes "--key" and
// str(value) of each key that is left, so that an option without a value leaves
// the value's text to be taken for the script.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/TrlLaunch.h"

#include "frontends/Scripts/RemovedArguments.h"
#include "frontends/Scripts/TrlConfigs.h"

#include <algorithm>
#include <filesystem>

namespace accel::scripts {
namespace {

Diagnostic diagnostic(Severity severity, const char *code, const NamedFile &at,
                      const std::string &message, const std::string &hint) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = at.file;
  d.key = "accelerate_config";
  d.message = message;
  d.hint = hint;
  d.setRange(at.at);
  return d;
}

class LaunchKeys {
public:
  LaunchKeys(const std::string &file, const Recipe &script, TrlLaunch &launch,
             NodeStore &nodes, DiagnosticEngine &engine)
      : file(file), script(script), launch(launch), nodes(nodes),
        engine(engine), parser(file, Family::Accelerate, nodes, engine) {
    std::vector<const ArgumentInfo *> options;
    for (const ArgumentInfo &info : argumentsOf(Family::Accelerate))
      options.push_back(&info);
    parser.setOptions(std::move(options), /*abbreviations=*/false);
  }

  const yaml::Node *run(const yaml::Node &root) {
    yaml::Node *rest = nodes.make(file, root.range);
    *rest = root;
    rest->entries.clear();
    for (const yaml::Entry &entry : root.entries)
      if (!take(entry))
        rest->entries.push_back(entry);
    return rest;
  }

private:
  void error(const char *code, const yaml::Node &at, const std::string &message,
             const std::string &hint) {
    engine.report(
        diagnostic(Severity::Error, code, {"", file, at.range}, message, hint));
  }

  /// False: the key is the script's, or unknown.
  bool take(const yaml::Entry &entry) {
    const std::string &key = entry.key->text;
    Family family{};
    if (script.find(key, family))
      return false;
    if (key == "env") {
      readEnvironment(*entry.value);
      return true;
    }
    const bool profile = key == "accelerate_config";
    std::string name = key;
    std::replace(name.begin(), name.end(), '-', '_');
    const ArgumentInfo *info = findArgument(Family::Accelerate, "launch", name);
    if (!info && !profile)
      return false;
    const std::string text = yaml::pythonText(*entry.value);
    if (!entry.value->isScalar() && !entry.value->isNull())
      error("invalid-value", *entry.value,
            "'" + key + "' is " + yaml::describe(entry.value->kind) +
                ", which trl hands to accelerate launch as one text",
            "write one value");
    else if (profile && text.empty())
      error("invalid-value", *entry.value,
            "'accelerate_config' is empty; trl stops with a ValueError",
            "write the name of a file, or remove the line");
    else if (profile)
      launch.profile = {text, file, entry.value->range};
    else if (info->arity == Arity::None)
      error("invalid-argument", *entry.key,
            "accelerate launch takes no value behind --" + key +
                ", and trl writes '" + printable(text) +
                "' there: it is taken for the script to run",
            "write --" + key + " on the command line of trl instead");
    else
      addFlag(entry, text);
    return true;
  }

  void addFlag(const yaml::Entry &entry, const std::string &text) {
    const std::vector<Word> words = {{"--" + entry.key->text, entry.key->range},
                                     {text, entry.value->range}};
    size_t i = 0;
    std::optional<Given> flag = parser.take(words, i);
    if (!flag)
      return; // reported
    flag->written = entry.key->text;
    if (flag->name == "config_file")
      launch.configFile = {text, file, entry.value->range};
    else
      launch.flags.add(std::move(*flag));
  }

  void readEnvironment(const yaml::Node &variables) {
    if (!variables.isMapping())
      return error("invalid-value", variables,
                   "'env' is " + yaml::shortText(variables) +
                       ", not names and values; trl stops with a ValueError",
                   "write env: {NAME: VALUE}");
    for (const yaml::Entry &entry : variables.entries)
      if (entry.key->text == "CUDA_VISIBLE_DEVICES")
        launch.devices = processesOfDevices(
            {yaml::pythonText(*entry.value), entry.value->range}, file);
  }

  const std::string &file;
  const Recipe &script;
  TrlLaunch &launch;
  NodeStore &nodes;
  DiagnosticEngine &engine;
  OptionParser parser;
};

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// resolve_accelerate_config_argument: a file, or TRL's of that name.
std::string resolved(const NamedFile &profile, const Versions &versions,
                     DiagnosticEngine &engine) {
  std::error_code ignored;
  if (!isAtLeast(versions.trl, firstTrlConfigs)) {
    engine.report(diagnostic(
        Severity::Error, "invalid-argument", profile,
        "TRL " + versions.trl + " has no accelerate_config",
        std::string("pass --trl-version of ") + firstTrlConfigs + " or later"));
    return "";
  }
  if (std::filesystem::is_regular_file(profile.name, ignored))
    return profile.name;
  const std::vector<std::string> &names = trlConfigNames();
  if (std::find(names.begin(), names.end(), profile.name) != names.end()) {
    engine.report(diagnostic(
        Severity::Note, "trl-configuration", profile,
        "'" + profile.name + "' is no file here: TRL's own " + profile.name +
            ".yaml is taken (the same in its releases " + firstTrlConfigs +
            " to 1.10)",
        "to change it, write a copy to a file and name that"));
    return trlConfigFile(profile.name);
  }
  const std::string near = didYouMean(profile.name, names);
  engine.report(diagnostic(
      Severity::Error, "file-not-found", profile,
      "'" + printablePath(profile.name) +
          "' is neither a file nor a configuration that TRL has; trl stops "
          "with a ValueError",
      (near.empty() ? "" : near + " ") + "TRL has " + listed(names)));
  return "";
}

} // namespace

const yaml::Node *takeLaunchKeys(const std::string &file,
                                 const yaml::Node &root, const Recipe &script,
                                 TrlLaunch &launch, NodeStore &nodes,
                                 DiagnosticEngine &engine) {
  return LaunchKeys(file, script, launch, nodes, engine).run(root);
}

NamedFile accelerateFileOf(const Command *command, const TrlLaunch &launch,
                           const Versions &versions, DiagnosticEngine &engine) {
  auto given = [](const NamedFile &file) { return !file.name.empty(); };
  const bool twice = command && given(command->profile);
  if (given(launch.profile) && twice) {
    engine.report(diagnostic(
        Severity::Error, "conflicting-arguments", command->profile,
        "the recipe names an accelerate_config too, which trl takes; "
        "accelerate launch stops with the one of the command line",
        "leave one of them out"));
    return {};
  }
  // The command line stands behind the recipe.
  NamedFile file = command && given(command->configFile) ? command->configFile
                                                         : launch.configFile;
  NamedFile profile = twice ? command->profile : launch.profile;
  if (given(profile) && (!command || command->program == Program::Trl)) {
    const std::string path = resolved(profile, versions, engine);
    if (path.empty())
      return {};
    if (!given(file)) {
      profile.name = path;
      return profile;
    }
  }
  if (given(profile) && given(file))
    engine.report(diagnostic(
        Severity::Warning, "ignored-key", profile,
        "'" + printablePath(profile.name) +
            "' has no effect: --config_file names another file, which stands "
            "behind it on the command line of accelerate launch",
        "leave one of them out"));
  else if (given(profile))
    file = profile;
  std::error_code ignored;
  if (!given(file) || std::filesystem::exists(file.name, ignored))
    return file;
  engine.report(diagnostic(Severity::Error, "file-not-found", file,
                           "'" + printablePath(file.name) + "' is not there",
                           "accelerate launch stops with it"));
  return {};
}

} // namespace accel::scripts
