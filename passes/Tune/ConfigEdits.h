//===- ConfigEdits.h - How an option is said --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a point of the search means in words, and which lines of the YAML say
// it: or, where no line can, what can.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_CONFIGEDITS_H
#define ACCEL_PASSES_TUNE_CONFIGEDITS_H

#include "frontends/Job/JobConfig.h"
#include "passes/Tune/Space.h"

namespace accel::tune {

struct YamlLine {
  std::string key;   // dotted path: "fsdp_config.fsdp_reshard_after_forward"
  std::string value; // as YAML
  /// Where the key stands, or would: the accelerate file, the job's, or the
  /// JSON of DeepSpeed that rules.
  std::string file = {};
  bool operator==(const YamlLine &) const = default;
};

/// Options of `plan` and their values ("--micro-batch", "2").
using Flags = std::vector<std::pair<std::string, std::string>>;

struct ConfigEdit {
  std::vector<YamlLine> yaml;       // empty: no line says it
  std::string notExpressibleInYaml; // what does, where none does
  Flags flags = {};                 // what says that to `plan`
};

/// The classes that a wrap policy names, for units of a layer or of half one.
struct LayerClasses {
  std::vector<std::string> layers; // "LlamaDecoderLayer"
  std::vector<std::string> blocks; // "LlamaMLP": the largest child; may be
                                   // empty
};

/// What the command line of `plan` said: no line of a file changes that.
struct GivenOptions {
  bool split = false; // micro-batch or accumulation
  bool lossChunks = false;
  bool optimizer = false;
  bool layerCheckpointing = false; // --gradient-checkpointing
  /// Of --executor, with models and keys of its own; empty: none.
  std::string trainer = {};
};

/// A whole mesh in words: "tp 8, pp 4, dp 2, 16 micro-batches".
std::string describe(const MeshOption &option);

class ConfigEditor {
public:
  /// All must outlive it.
  ConfigEditor(const Space &space, const JobConfig &job, LayerClasses classes,
               GivenOptions given = {})
      : space(space), job(job), accelerate(job.accelerate),
        classes(std::move(classes)), given(given),
        executor(space.base.executor) {}

  const JobConfig &configuration() const { return job; }
  const LayerClasses &layerClasses() const { return classes; }

  /// The option of `knob` at `point`, as a phrase: "full in 20 of 32 layers".
  std::string describe(Knob knob, const Point &point) const;
  ConfigEdit express(Knob knob, const Point &point) const;
  /// What a turn of `knob` to `point` changes beside bytes and seconds: of an
  /// optimizer with narrow states, its losses. Empty: nothing.
  std::string caution(Knob knob, const Point &point) const;
  /// Knobs in which the points differ, in the order in which a person would
  /// change them.
  std::vector<Knob> differences(const Point &from, const Point &to) const;
  /// The lines that turn the configuration into `point`, as far as lines can,
  /// and the knobs that they leave out.
  std::vector<YamlLine> lines(const Point &point,
                              std::vector<Knob> &notInYaml) const;

private:
  ConfigEdit expressCheckpointing(const Point &point,
                                  const std::string &name) const;
  ConfigEdit expressKnob(Knob knob, const Point &point) const;
  std::string describeCheckpoint(const Point &point) const;
  /// The variant of all layers, or "".
  std::string uniformVariant(const Point &point) const;
  /// A variant of that name was solved for a cap in bytes.
  bool isSolved(const std::string &name) const;
  ConfigEdit expressReshard(const Point &point) const;
  ConfigEdit expressWrap(const Point &point) const;
  ConfigEdit expressCheckpoint(const Point &point) const;
  ConfigEdit expressMesh(const Point &point) const;
  ConfigEdit expressMegatron(const MeshOption &option) const;
  ConfigEdit expressSplit(const Point &point) const;
  std::vector<YamlLine> batchLines(const SplitOption &split) const;
  ConfigEdit expressLoss(const Point &point) const;
  ConfigEdit expressOptimizer(const Point &point) const;
  ConfigEdit expressPrefetch(Knob knob, const Point &point) const;
  /// The dotted path of a key of a section, beside `like`.
  static std::string beside(const std::string &like, const std::string &name);
  /// The dotted path of a key in a section of the accelerate file.
  std::string inSection(const std::string &section,
                        const std::string &name) const;
  std::string inFsdp(const std::string &name) const {
    return inSection("fsdp_config", name);
  }
  /// A line of DeepSpeed's JSON where one rules, else of the YAML.
  ConfigEdit deepspeed(const std::string &yamlKey, const std::string &jsonKey,
                       const std::string &value) const;

  const Space &space;
  const JobConfig &job;
  const AccelerateConfig &accelerate;
  LayerClasses classes;
  GivenOptions given;
  FrameworkKind executor;
};

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_CONFIGEDITS_H
