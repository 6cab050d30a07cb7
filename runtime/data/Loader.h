//===- Loader.h - Micro-batches in the documented order ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// So that runs compare, the order is fixed. There are n = (T - 1) / L samples
// (rounded down) of T tokens; sample i is tokens [i L, i L + L], the last L are
// the labels. Micro-batch k of the run is samples (k b ... k b + b - 1) mod n;
// which k a rank takes is its caller's. Arrays hold sample i in row i, of any
// shape and dtype that the program reads. With
// shuffling, pass number p over the data takes them in the order of a
// permutation of (seed, p).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_LOADER_H
#define ACCEL_RUNTIME_DATA_LOADER_H

#include "runtime/data/Permutation.h"
#include "runtime/data/TokenFile.h"
#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>

namespace accel::run {

/// The label that the loss ignores.
constexpr int64_t ignoredLabel = -100;

class Loader {
public:
  /// A tensor of the batch, as a program reads it; the first dimension is the
  /// micro-batch.
  struct Input {
    std::string name;
    plan::DType dtype = plan::DType::I64;
    std::vector<int64_t> shape;
  };
  /// Opens the files of `data`; relative paths are relative to `baseDir`.
  /// `inputs` are what the programs read. False with a sentence in `error`:
  /// missing or short files, other shapes, ids outside of the vocabulary.
  bool open(const plan::Data &data, const plan::Job &job,
            const std::vector<Input> &inputs, const std::string &baseDir,
            std::string &error);

  /// Input `name` of micro-batch `k`. Throws std::runtime_error where an id is
  /// outside of its limit (files too large to be read through at the start).
  at::Tensor load(const std::string &name, int64_t k);
  int64_t samples() const { return numSamples; }

private:
  struct Source {
    Input input;
    TokenFile file;      // of arrays
    int64_t numel = 1;   // of a sample
    int64_t limit = 0;   // ids are below; 0: not checked
    bool checked = true; // all ids were looked at when opening
    bool labels() const { return input.name == "labels"; }
  };
  bool openArray(const plan::Data &data, Source &source,
                 const std::string &baseDir, std::string &error);
  bool openTokens(const plan::Data &data, const std::string &baseDir,
                  std::string &error);
  bool checkIds(const TokenFile &file, Source &source,
                std::string &error) const;
  void checkRow(const Source &source, const TokenFile &file, int64_t begin,
                const int64_t *ids) const;
  int64_t sampleAt(int64_t position);

  int64_t microBatch = 1, length = 0;
  int64_t numSamples = 0;
  bool shuffle = false;
  uint64_t seed = 0;
  std::optional<TokenFile> tokens;
  std::map<std::string, Source> sources; // by name
  std::optional<Permutation> order;
  int64_t orderEpoch = -1;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_LOADER_H
