//===- DeepspeedJson.cpp - Every key of a DeepSpeed JSON ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// HfDeepSpeedConfig in accelerate/utils/deepspeed.py reads the file,
// DeepSpeedPlugin and Accelerator._prepare_deepspeed fill in "auto", DeepSpeed
// judges the rest: models of pydantic that forbid other keys in some sections,
// dictionaries of which it takes what it knows in others.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/DeepspeedJson.h"

#include "frontends/Accelerate/DeepspeedKeys.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

using namespace accel;

namespace {

class Walk {
public:
  Walk(const std::string &file, bool forPlanning, const std::string &version,
       DiagnosticEngine &engine)
      : file(file), forPlanning(forPlanning), version(version), engine(engine) {
  }

  void section(const yaml::Node &node, const std::string &path, bool strict) {
    for (const yaml::Entry &entry : node.entries) {
      const std::string name = printable(entry.key->text, 100);
      key(entry, path.empty() ? name : path + "." + name, path, strict);
    }
  }

  /// torch's loops over parameters on the host have no measured rate.
  void optimizerOnHost(const yaml::Node &root) {
    auto at = [&](std::initializer_list<const char *> path) {
      const yaml::Node *node = &root;
      for (const char *name : path)
        node = node && node->isMapping() ? node->find(name) : nullptr;
      return node;
    };
    const yaml::Node *adam = at({"optimizer", "params", "torch_adam"});
    const yaml::Node *device =
        at({"zero_optimization", "offload_optimizer", "device"});
    if (forPlanning && adam && isOneOf(*adam, "true") && device &&
        !isOneOf(*device, "none"))
      reportInJson(engine, file, Severity::Error, notSupportedCode, *adam,
                   "optimizer.params.torch_adam",
                   "'optimizer.params.torch_adam' updates offloaded states by "
                   "torch.optim.AdamW, whose time is not counted yet",
                   "write false to plan with DeepSpeedCPUAdam");
  }

  void note(const yaml::Node &root, const std::vector<std::string> &read,
            DiagnosticEngine &into) {
    std::erase_if(silent, [&](const std::string &path) {
      return std::find(read.begin(), read.end(), path) != read.end();
    });
    if (silent.empty())
      return;
    constexpr size_t most = 8;
    std::string names;
    for (size_t i = 0; i < silent.size() && i < most; ++i)
      names += (i ? ", " : "") + silent[i];
    if (silent.size() > most)
      names += " and " + std::to_string(silent.size() - most) + " more";
    reportInJson(into, file, Severity::Note, "deepspeed-no-bytes", root, "",
                 "without effect on bytes: " + names, "");
  }

private:
  const std::string &file;
  const bool forPlanning;
  const std::string &version; // empty: not given
  DiagnosticEngine &engine;
  std::vector<std::string> silent; // keys without effect on bytes

  void key(const yaml::Entry &entry, const std::string &path,
           const std::string &parent, bool strict) {
    const yaml::Node &value = *entry.value;
    const DeepspeedKey *known = findDeepspeedKey(path);
    if (!known)
      unknown(entry, path, parent, strict);
    findAuto(value, path, known);
    if (!known)
      return;
    switch (known->meaning) {
    case DeepspeedMeaning::Section:
      if (value.isMapping())
        return section(value, path, known->strict);
      if (!value.isNull())
        reportInJson(engine, file, Severity::Error, "deepspeed-file", value,
                     path,
                     "'" + path + "' must be an object, this is " +
                         yaml::shortText(value),
                     "");
      return;
    case DeepspeedMeaning::NoBytes:
      silent.push_back(path);
      return;
    case DeepspeedMeaning::Removed:
      if (!version.empty() && isEarlierRelease(version, known->until)) {
        if (*known->before)
          refuse(*known, known->before, value, path);
        return;
      }
      // Lint does not know the release, plan takes the newest.
      reportInJson(
          engine, file,
          forPlanning || !version.empty() ? Severity::Error : Severity::Warning,
          "deepspeed-removed", *entry.key, path,
          "DeepSpeed has no '" + path + "' from " + known->until +
              " on and stops in every rank",
          std::string(known->what) +
              (version.empty() ? "; --deepspeed-version reads it as an earlier "
                                 "release"
                               : ""));
      return;
    case DeepspeedMeaning::Refused:
      refuse(*known, known->what, value, path);
      return;
    case DeepspeedMeaning::Counted:
      return;
    }
  }

  void refuse(const DeepspeedKey &key, const char *does,
              const yaml::Node &value, const std::string &path) {
    if (forPlanning && !isOff(key, value))
      reportInJson(engine, file, Severity::Error, notSupportedCode, value, path,
                   "'" + path + "' " + does + ", which is not counted yet",
                   offHint(key));
  }

  static bool isOff(const DeepspeedKey &key, const yaml::Node &value) {
    std::string_view off = key.off;
    if (off.starts_with(">=")) {
      double least = 0, number = 0;
      std::from_chars(off.data() + 2, off.data() + off.size(), least);
      const std::string text = yaml::pythonText(value);
      auto [end, bad] =
          std::from_chars(text.data(), text.data() + text.size(), number);
      return bad == std::errc() && number >= least;
    }
    return isOneOf(value, off);
  }

  static std::string offHint(const DeepspeedKey &key) {
    std::string_view off = key.off;
    if (off.empty() || off.starts_with(">="))
      return "remove it to plan with DeepSpeed's default";
    return "write " + std::string(off.substr(0, off.find(','))) +
           " to plan without it";
  }

  void unknown(const yaml::Entry &entry, const std::string &path,
               const std::string &parent, bool strict) {
    const std::string name = printable(entry.key->text);
    std::string hint = didYouMean(name, deepspeedKeysIn(parent));
    // One level off, which is the usual mistake.
    const std::string zero = "zero_optimization." + name;
    if (hint.empty() && parent.empty() && findDeepspeedKey(zero))
      hint = "it belongs into \"zero_optimization\"";
    else if (hint.empty() && !parent.empty() && findDeepspeedKey(name))
      hint = "it belongs to the top level of the file";
    const std::string where = parent.empty() ? "" : " in " + parent;
    reportInJson(engine, file, strict ? Severity::Error : Severity::Warning,
                 "deepspeed-unknown-key", *entry.key, path,
                 "unknown key '" + name + "'" + where +
                     (strict ? "; DeepSpeed stops with a ValidationError in "
                               "every rank"
                             : " has no effect: DeepSpeed reads no such key"),
                 hint);
  }

  /// Accelerate replaces the words that it knows and stops at any other.
  void findAuto(const yaml::Node &node, const std::string &path,
                const DeepspeedKey *known) {
    if (node.isMapping() &&
        !(known && known->meaning == DeepspeedMeaning::Section))
      for (const yaml::Entry &entry : node.entries) {
        const std::string inner = path + "." + printable(entry.key->text, 100);
        findAuto(*entry.value, inner, findDeepspeedKey(inner));
      }
    if (!node.isString() || node.text != "auto" || (known && known->fillsAuto))
      return;
    reportInJson(engine, file, Severity::Error, "deepspeed-auto", node, path,
                 "nobody replaces \"auto\" here: Accelerate stops with a "
                 "ValueError in every rank",
                 "write the value, or remove the key");
  }
};

} // namespace

const yaml::Node *accel::jsonAt(const yaml::Node &root, std::string_view path) {
  const yaml::Node *node = &root;
  while (node && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    node = node->isMapping() ? node->find(path.substr(0, dot)) : nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

std::string accel::jsonText(const yaml::Node &value) {
  if (value.isNull())
    return "null";
  if (value.kind == yaml::Kind::Bool)
    return value.boolean ? "true" : "false";
  return value.text;
}

bool accel::isOneOf(const yaml::Node &value, std::string_view values) {
  const std::string text = jsonText(value);
  while (!values.empty()) {
    const size_t comma = std::min(values.find(','), values.size());
    if (values.substr(0, comma) == text)
      return true;
    values.remove_prefix(std::min(comma + 1, values.size()));
  }
  return false;
}

void accel::reportInJson(DiagnosticEngine &engine, const std::string &file,
                         Severity severity, const char *code,
                         const yaml::Node &node, const std::string &key,
                         const std::string &message, const std::string &hint) {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = file;
  d.key = printable(key, 200);
  d.message = message;
  d.hint = hint;
  d.line = node.range.begin.line;
  d.column = node.range.begin.column;
  if (node.isScalar())
    d.setRange({d.line, d.column, node.range.end.line, node.range.end.column});
  engine.report(std::move(d));
}

bool accel::isEarlierRelease(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    auto next = [](std::string_view &text) {
      int number = 0;
      auto [end, bad] =
          std::from_chars(text.data(), text.data() + text.size(), number);
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      text.remove_prefix(std::min(text.find('.'), text.size()));
      text.remove_prefix(std::min<size_t>(1, text.size()));
      return bad == std::errc() ? number : 0;
    };
    const int first = next(a), second = next(b);
    if (first != second)
      return first < second;
  }
  return false;
}

const yaml::Node &accel::deepspeedRoot(const yaml::Node &file,
                                       std::string &prefix) {
  const yaml::Node *inner = file.isMapping() ? file.find("deepspeed") : nullptr;
  if (!inner || !inner->isMapping())
    return file;
  prefix = "deepspeed.";
  return *inner;
}

std::string accel::findDeepspeedFile(const std::string &name,
                                     const std::string &yaml) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path path = name;
  if (fs::exists(path, failed))
    return path.string();
  if (path.is_absolute())
    return "";
  path = fs::path(yaml).parent_path() / path;
  return fs::exists(path, failed) ? path.string() : "";
}

void accel::checkDeepspeedJson(const std::string &file, const yaml::Node &root,
                               bool forPlanning, const std::string &version,
                               DiagnosticEngine &engine) {
  if (!checkDeepspeedStops(file, root, engine))
    return;
  Walk walk(file, forPlanning, version, engine);
  walk.section(root, "", /*strict=*/false);
  walk.optimizerOnHost(root);
}

void accel::noteKeysWithoutBytes(const std::string &file,
                                 const yaml::Node &root,
                                 const std::vector<std::string> &read,
                                 DiagnosticEngine &engine) {
  DiagnosticEngine known; // what checkDeepspeedJson has reported
  const std::string newest;
  Walk walk(file, /*forPlanning=*/true, newest, known);
  walk.section(root, "", /*strict=*/false);
  walk.note(root, read, engine);
}

void accel::resolveAuto(DeepspeedSettings &settings, int64_t hiddenSize) {
  auto put = [](Setting<std::optional<int64_t>> &setting, int64_t value,
                const char *what) {
    if (!setting.written() || *setting)
      return;
    setting.value = value;
    setting.origin = Origin::Derived;
    setting.why = std::string("\"auto\" becomes ") + what;
  };
  const int64_t square = hiddenSize * hiddenSize;
  put(settings.reduceBucket, square, "hidden_size x hidden_size");
  put(settings.prefetchBucket, square * 9 / 10,
      "0.9 x hidden_size x hidden_size");
  put(settings.persistenceThreshold, 10 * hiddenSize, "10 x hidden_size");
}
