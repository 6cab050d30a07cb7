//===- Reader.h - Reading one accelerate file -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The state that the steps of parseAccelerate share. Each step reads some keys,
// sets effective values with their provenance and reports what it finds; it
// never stops at the first problem.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_READER_H
#define ACCEL_FRONTENDS_ACCELERATE_READER_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Yaml/Editor.h"

namespace accel {

/// A key as it stands in the file; `entry` is null if it does not.
struct Field {
  const yaml::Entry *entry = nullptr;
  std::string key; // dotted path, as written if it is written

  explicit operator bool() const { return entry != nullptr; }
  const yaml::Node &value() const { return *entry->value; }
  bool isNull() const { return entry->value->isNull(); }
};

/// A nested mapping with its keys in canonical spelling.
struct Section {
  std::string name; // "fsdp_config"
  const yaml::Entry *entry = nullptr;
  std::vector<std::pair<std::string, const yaml::Entry *>> keys;
  bool present() const { return !keys.empty(); }
};

/// "Accelerate's default", or more precisely whose and since when.
std::string whyDefault(const KeyInfo *key, AccelerateVersion version);

class AccelerateReader {
public:
  AccelerateReader(const std::string &file, const yaml::Node &root,
                   const std::string &prefix,
                   const std::vector<std::string> &foreign,
                   const AccelerateOptions &options, DiagnosticEngine &engine);

  std::optional<AccelerateConfig> read();

private:
  const std::string &file;
  const yaml::Node &root;
  const std::string prefix; // of diagnostics' keys, "" or "accelerate."
  const std::vector<std::string> &foreign;
  /// Names that a top-level key may mean; filled when first asked for.
  std::vector<std::string> topLevelNames;
  const AccelerateOptions &options;
  DiagnosticEngine &engine;
  AccelerateVersion version, torch;
  AccelerateConfig config;
  Section fsdp, parallelism;
  /// A value is missing without which nothing can be said.
  bool unrecoverable = false;

  bool before(int major, int minor) const {
    return version < AccelerateVersion{major, minor};
  }
  /// Launch starts one process although the type says otherwise.
  bool oneProcess = false;

  // Reader.cpp: fields, values, reports.
  Field top(const std::string &name) const;
  Field in(const Section &section, const std::string &canonical) const;
  /// A key as it stands there, whether this version knows it or not.
  Field anyVersion(const Section &section, const std::string &name) const;
  Section section(const std::string &name);
  const std::string &fileOf(const yaml::Node &node) const;
  Location locate(const Field &field) const;
  /// Where a finding about the field stands: of an absent one its section, else
  /// distributed_type, which is what asks for it.
  Location place(const Field &field) const;
  void report(Severity severity, const char *code, const Field &field,
              const std::string &message, const std::string &hint = "",
              bool atKey = false, yaml::Edits fix = {});
  void error(const char *code, const Field &field, const std::string &message,
             const std::string &hint = "", yaml::Edits fix = {}) {
    report(Severity::Error, code, field, message, hint, false, std::move(fix));
  }
  /// Names something valid that cannot be planned yet.
  void notSupported(const Field &field, const std::string &message,
                    const std::string &hint = "");
  /// A written key without effect: a warning, or a note where that changes
  /// nothing for this job.
  void ignored(const Field &field, const std::string &why, bool matters,
               const std::string &hint = "", yaml::Edits fix = {});

  // Fixes.cpp: what `lint --fix` writes; nothing where that cannot be done.
  yaml::Editor editor() const;
  yaml::Edits fixText(const Field &field, const std::string &text) const;
  yaml::Edits fixRaw(const Field &field, const std::string &raw) const;
  /// The number that a string means: '29501', 1e8.
  yaml::Edits fixNumber(const Field &field) const;
  yaml::Edits fixRemoval(const Field &field) const;
  /// The list that "(false, true, false)" means.
  yaml::Edits fixFlags(const Field &field) const;
  /// The nearest of `words`, if one is near.
  yaml::Edits fixSpelling(const Field &field,
                          const std::vector<std::string> &words) const;
  /// Another key, unless it is there already.
  yaml::Edits fixName(const Field &field, const yaml::Node &mapping,
                      const std::string &name) const;
  yaml::Edits fixName(const Field &field, const Section &section,
                      const std::string &name) const;
  /// A key of a section that is there, written or changed.
  yaml::Edits fixSetting(const Section &section, const std::string &canonical,
                         const std::string &raw) const;
  /// Key and value into a section that is there.
  yaml::Edits fixMove(const Field &field, const std::string &sectionName,
                      const std::string &key) const;
  static yaml::Edits fixBoth(yaml::Edits first, yaml::Edits second);

  void remember(const Field &field, const std::string &effective,
                const std::string &why, Origin origin);
  /// Drops the last remembered value: it is about to be replaced.
  void popEffective() { config.effective.pop_back(); }
  template <typename T>
  void written(Setting<T> &setting, T value, const Field &field,
               const std::string &effective, const std::string &why = "") {
    setting = {std::move(value), Origin::Written, field.key, locate(field),
               why};
    remember(field, effective, why, Origin::Written);
  }
  template <typename T>
  void setDefault(Setting<T> &setting, T value, const Field &field,
                  const std::string &effective, const std::string &why,
                  Origin origin = Origin::Default) {
    setting = {std::move(value), origin, field.key, locate(field), why};
    remember(field, effective, why, origin);
  }

  void checkCudaGraphs(const Field &mode, const Field &dynamic);
  /// str(value) as an environment variable, then str_to_bool: what plugins
  /// make of a boolean. Reports what that cannot read; empty then.
  std::optional<bool> envBool(const Field &field);
  /// bool(value), as launch's own checks see it.
  static bool truthy(const yaml::Node &node);
  /// str(value), then int(): empty (not reported) if int() raises.
  static std::optional<int64_t> envInt(const yaml::Node &node);
  void flag(Setting<bool> &setting, const Section &section, const char *name,
            bool byDefault, const std::string &why = "");

  // AccelerateConfig.cpp: the steps, by environment.
  void readLocalJob();
  void readSagemakerJob();

  // Launch.cpp: the top level.
  void checkTopLevelKeys();
  /// `local`: the file is not for SageMaker.
  void unknownTopLevel(const yaml::Entry &entry, bool local);
  bool readEnvironment();
  /// Files of SageMaker, which accelerate 1.10 and later cannot launch.
  void refuseSagemaker(const Field &environment);
  void readDistributedType();
  void readProcesses();
  void readPlace();
  bool findsMachines() const;
  void readMixedPrecision();
  void readGpuIds();
  void readIgnoredTopLevel();

  // Fsdp.cpp: fsdp_config under distributed_type FSDP.
  void readFsdp();
  int readFsdpVersion();
  void placeCheckpoints(int fsdpVersion, bool unwrapped);
  void readSharding(int fsdpVersion);
  void readShardingV1();
  void readShardingV2();
  void readWrapping();
  void readWrapClasses();
  void readIgnoredModules();
  void readCheckpointing(int fsdpVersion);
  void readPrefetch(int fsdpVersion);
  void readLoading(int fsdpVersion);
  void readStateDict(int fsdpVersion);

  // Parallelism.cpp: the mesh.
  void readParallelism();
  int64_t meshSize(const char *name);
  /// How ranks of `axis`, "cp" or "sp", exchange what they hold.
  void checkExchange(const char *axis, const char *name,
                     const std::vector<std::string> &values);
  void checkMesh(int64_t replicate, int64_t shard, int64_t others);

  // Sections.cpp: sections of other kinds of jobs, key names of all.
  void checkSectionKeys(const Section &section);
  void readOtherSections();
  void readFp8(const Section &section);
  void checkFp8Backend(const Field &backend, const std::string &name);
  void readDynamo(const Section &section);
  void checkDynamoValues(const Section &dynamo, const std::string &backend);
  /// What launch or a plugin of every rank refuses in deepspeed_config.
  void checkDeepspeedValues(const Section &deepspeed);

  // ReadSections.cpp: typed values, without a report of their own.
  /// Reads a key as `parse` does its text in the environment; `show` for the
  /// table of effective values.
  template <typename T, typename Parse, typename Show>
  void typed(Setting<T> &setting, const Section &section, const char *name,
             Parse parse, Show show);
  void text(Setting<std::string> &setting, const Section &section,
            const char *name);
  void boolean(Setting<bool> &setting, const Section &section,
               const char *name);
  void integer(Setting<int64_t> &setting, const Section &section,
               const char *name);
  void unusedKeys(const Section &section, const std::string &why);
  void quietlyIgnored(const Field &field, const std::string &why);
  /// The top level as a section, for keys that are read like a section's.
  Section topAsSection(const char *table) const;
  void readMegatron(const Section &megatron);
  /// What int(), float(), str_to_bool or Megatron-LM refuse on every rank.
  void checkMegatronValues(const Section &megatron);
  void checkMegatronMesh(const Section &megatron);
  void readFp8Values(const Section &fp8);
  void showFp8Layers();
  void readDynamoValues(const Section &dynamo);
  void checkFullGraph(const Field &field);
  void readTpu();
  void readSagemaker();

  // ReadDeepspeed.cpp: the section and its JSON file.
  void readDeepspeed(const Section &deepspeed);
  void readDeepspeedFile(const Section &deepspeed, DeepspeedSettings &out);

  // Strategy.cpp: what follows from all of it.
  void deriveStrategy();
  void deriveMesh();
  void derivePrecision();
  void defaultsWithoutFsdp();
  void checkSupport();
};

/// Case-insensitive equality with an upper-case word.
bool equalsUpper(std::string_view text, std::string_view word);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_READER_H
