//===- Converter.h - The edits of one conversion ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONVERT_CONVERTER_H
#define ACCEL_FRONTENDS_CONVERT_CONVERTER_H

#include "frontends/Accelerate/AccelerateConfig.h"
#include "frontends/Convert/Convert.h"
#include "frontends/Convert/Rewriter.h"

namespace accel::convert {

/// Edits a file that `before` describes. Each function returns false after a
/// reported error.
class Converter {
public:
  Converter(const std::string &file, const std::string &text,
            const AccelerateConfig &before, bool countsRanks,
            DiagnosticEngine &engine);

  bool toFsdp2();
  bool toFsdp1();
  bool toDeepspeed();
  bool toDdp();

  const std::string &text() const { return rewriter.text(); }
  std::vector<Change> changes;

private:
  const std::string &file;
  const AccelerateConfig &before;
  /// False where num_processes is not in the file, so that the number of ranks
  /// is made up.
  const bool countsRanks;
  DiagnosticEngine &engine;
  const Rewriter source; // for places
  Rewriter rewriter;

  //===--- Converter.cpp ---===//

  /// Spellings of a key in a section, in the order of the file.
  std::vector<std::string> spellings(const std::string &section,
                                     const std::string &key) const;
  bool has(const std::string &section, const std::string &key) const {
    return !spellings(section, key).empty();
  }
  /// A size in parallelism_config, 1 where it is not written.
  int64_t meshSize(const std::string &axis) const;
  /// Whether parallelism_config has an axis that is not data-parallel.
  bool hasOtherAxes() const;
  /// "parallelism_config is ..." as written; empty where it is not there.
  bool hasSection(const std::string &section) const;

  /// Gives a key of a section its only value; adds it if it is not there.
  bool put(const std::string &section, const std::string &key,
           const Value &value, const std::string &why);
  /// Gives a key another name and value; true without effect if it is absent.
  bool turnInto(const std::string &section, const std::string &key,
                const std::string &newKey, const Value &value,
                const std::string &why);
  /// Removes a key in all spellings.
  bool drop(const std::string &section, const std::string &key,
            const std::string &why);
  bool dropSection(const std::string &section, const std::string &why);
  bool putTop(const std::string &key, const Value &value,
              const std::string &why);
  bool writeMesh(int64_t replicate, int64_t shard, const std::string &why);

  bool edited(bool done, const Path &path, Change change);
  void report(Severity severity, const char *code, const Path &path,
              const std::string &message, const std::string &hint = "");
  bool noEquivalent(const Path &path, const std::string &message,
                    const std::string &hint = "");
  /// Path of a key as written, or of its section.
  Path place(const std::string &section, const std::string &key) const;
  int line(const Path &path) const;

  //===--- ToFsdp2.cpp, ToFsdp1.cpp, ToOthers.cpp ---===//

  /// Says so where FSDP1 ignores the strategy that the file asks for.
  void reportKept();
  bool shardingToFsdp2();
  bool meshToFsdp2();
  bool wrappingToFsdp2();
  bool shardingToFsdp1();
  bool checkForOthers();
};

} // namespace accel::convert

#endif // ACCEL_FRONTENDS_CONVERT_CONVERTER_H
