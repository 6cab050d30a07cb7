//===- Corpus.h - Files of tokens as one list of samples --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A file of T tokens has (T - 1) / L samples (rounded down); sample i is tokens
// [i L, i L + L], the last L are the labels. Without weights an epoch takes
// every sample of every file, file after file or shuffled together. With
// weights each file is read in epochs of its own, and the n-th sample of a run
// is of a file that only n decides: halves of the files share n as their
// weights are, at most one sample apart, down to single files.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_CORPUS_H
#define ACCEL_RUNTIME_DATA_CORPUS_H

#include "runtime/data/Permutation.h"
#include "runtime/data/TokenFile.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace accel::run {

class Corpus {
public:
  /// Opens the files of `data`, whose samples have `length` tokens. False, with
  /// a sentence in `error`.
  bool open(const plan::Data &data, int64_t length, const std::string &baseDir,
            std::string &error);

  int64_t samples() const { return total; }
  /// All files' tokens are below `limit`, but for a file that is too large to
  /// be read through; sets `checked` where none was. False, with a sentence.
  bool checkIds(int64_t limit, bool &checked, std::string &error) const;

  struct Place {
    const TokenFile *tokens = nullptr;
    const TokenFile *starts = nullptr; // of documents; or none
    int64_t begin = 0;                 // the sample's first token
  };
  /// Which of all files' samples is number `index` (below `samples`) of epoch
  /// `epoch`; with weights the order has no epochs, and it is number epoch *
  /// samples() + index of the run.
  int64_t sampleAt(int64_t epoch, int64_t index);
  /// Where that sample is.
  Place at(int64_t epoch, int64_t index);

private:
  struct Shard {
    TokenFile tokens;
    std::optional<TokenFile> starts;
    int64_t first = 0, samples = 0; // of all files' samples
    double weight = 0;
    /// The order of a weighted file's own epoch.
    std::optional<Permutation> order;
    int64_t orderEpoch = -1;
  };
  bool openShard(const plan::Data &data, const plan::DataFile &file,
                 int64_t length, const std::string &baseDir,
                 std::string &error);
  /// Which file the weighted sample `number` is of, and the how-manieth of it.
  std::pair<size_t, int64_t> share(int64_t number) const;

  std::vector<Shard> shards;
  int64_t length = 0, total = 0;
  bool weighted = false, shuffle = false;
  uint64_t seed = 0;
  std::optional<Permutation> order; // of all files together
  int64_t orderEpoch = -1;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_CORPUS_H
