//===- Express.h - How an option is said ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a point of the search means in words, and which lines of the YAML say
// it: or, where no line can, what can.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_EXPRESS_H
#define ACCEL_PASSES_TUNE_EXPRESS_H

#include "frontends/Job/JobConfig.h"
#include "passes/Tune/Space.h"

namespace accel::tune {

struct YamlLine {
  std::string key;   // dotted path: "fsdp_config.fsdp_reshard_after_forward"
  std::string value; // as YAML
  bool operator==(const YamlLine &) const = default;
};

/// Options of `plan` and their values ("--micro-batch", "2").
using Flags = std::vector<std::pair<std::string, std::string>>;

struct Expression {
  std::vector<YamlLine> yaml; // empty: no line says it
  std::string otherwise;      // what does, where none does
  Flags flags = {};           // what says that to `plan`
};

/// The classes that a wrap policy names, for units of a layer or of half one.
struct LayerClasses {
  std::vector<std::string> layers; // "LlamaDecoderLayer"
  std::vector<std::string> blocks; // "LlamaMLP": the largest child; may be
                                   // empty
};

class Expresser {
public:
  /// All must outlive it.
  Expresser(const Space &space, const JobConfig &job, LayerClasses classes)
      : space(space), job(job), accelerate(job.accelerate),
        classes(std::move(classes)), executor(space.base.executor) {}

  const JobConfig &configuration() const { return job; }
  const LayerClasses &layerClasses() const { return classes; }

  /// The option of `knob` at `point`, as a phrase: "full in 20 of 32 layers".
  std::string describe(Knob knob, const Point &point) const;
  Expression express(Knob knob, const Point &point) const;
  /// Knobs in which the points differ, in the order in which a person would
  /// change them.
  std::vector<Knob> differences(const Point &from, const Point &to) const;
  /// The lines that turn the configuration into `point`, as far as lines can,
  /// and the knobs that they leave out.
  std::vector<YamlLine> lines(const Point &point,
                              std::vector<Knob> &unsaid) const;

private:
  std::string describeCheckpoint(const Point &point) const;
  /// The variant of all layers, or "".
  std::string uniformVariant(const Point &point) const;
  /// A variant of that name was solved for a cap in bytes.
  bool isSolved(const std::string &name) const;
  Expression expressReshard(const Point &point) const;
  Expression expressWrap(const Point &point) const;
  Expression expressCheckpoint(const Point &point) const;
  Expression expressMesh(const Point &point) const;
  Expression expressSplit(const Point &point) const;
  Expression expressLoss(const Point &point) const;
  Expression expressPrefetch(Knob knob, const Point &point) const;
  Expression python() const;
  /// The dotted path of a key of a section, beside `like`.
  static std::string beside(const std::string &like, const std::string &name);
  std::string inFsdp(const std::string &name) const;

  const Space &space;
  const JobConfig &job;
  const AccelerateConfig &accelerate;
  LayerClasses classes;
  ExecutorKind executor;
};

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_EXPRESS_H
