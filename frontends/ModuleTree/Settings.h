//===- Settings.h - Values of a config.json by name -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_SETTINGS_H
#define ACCEL_FRONTENDS_MODULETREE_SETTINGS_H

#include "frontends/ConfigJson/ConfigReader.h"
#include "frontends/ModuleTree/Expression.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace accel::moduletree {

/// The settings of a family, read from one config.json.
class Settings {
public:
  Settings(const std::vector<const char *> &lines, const std::string &prefix,
           huggingface::ConfigReader &config);

  /// An expression's value; a mistake is reported at the config's start.
  double value(std::string_view expression);
  /// A size: rounded down; 0 (reported) if negative or beyond 2^40.
  int64_t size(std::string_view expression);
  /// The name's value, or 0.
  int64_t sizeOf(const std::string &name);
  std::string text(const std::string &name) const;

  const std::map<std::string, double, std::less<>> &numbers() const {
    return values;
  }
  const std::map<std::string, std::string> &allTexts() const { return texts; }

  /// Sets `layer`, which repeated modules count.
  void setLayer(int64_t layer);

  const std::vector<std::string> &noSplit() const { return noSplitClasses; }
  const std::vector<std::string> &keptInFp32() const { return fp32; }
  bool hasTensorParallelPlan() const { return tp; }
  /// True for each layer that attends to a window; empty for encoders.
  const std::vector<bool> &slidingLayers() const { return sliding; }
  /// What each layer of a hybrid model is, by the description's names; empty
  /// for others.
  const std::vector<std::string> &layerBlocks() const { return blocks; }

private:
  huggingface::ConfigReader &config;
  std::map<std::string, double, std::less<>> values;
  std::map<std::string, std::string> texts;
  std::vector<std::string> noSplitClasses, fp32;
  std::vector<bool> sliding, dense;
  std::vector<std::string> blocks;
  std::set<std::string> blockNames;
  std::set<int64_t> onlyMlp; // mlp_only_layers
  bool tp = false;

  void readLine(std::string_view line, const std::string &prefix);
  void readNumber(std::string_view names, char kind,
                  std::string_view otherwise);
  void readText(std::string_view names, std::string_view otherwise);
  void readCount(const std::string &name, std::string_view otherwise);
  void readLayerTypes(std::string_view expression);
  void readDense(const std::vector<std::string_view> &words);
  void readLabels();
  void readBlocks(const std::vector<std::string_view> &words);
  void readMixers(const std::vector<std::string_view> &words);
};

/// The parts of `text` between runs of `separator`.
std::vector<std::string_view> split(std::string_view text, char separator);

} // namespace accel::moduletree

#endif // ACCEL_FRONTENDS_MODULETREE_SETTINGS_H
