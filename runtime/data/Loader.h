//===- Loader.h - Micro-batches in the documented order ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// So that runs compare, the order is fixed. Tokens make samples as Corpus.h
// says; arrays hold sample i in row i, of any shape and dtype that the program
// reads. Micro-batch k of the run is samples (k b ... k b + b - 1) of the
// epochs one after the other; which k a rank takes is its caller's. With
// plan::Data::epochEnd an epoch has whole micro-batches for all ranks instead.
// With shuffling, epoch number p takes the samples in the order of a
// permutation of (seed, p).
//
// Where samples hold documents, `position_ids` start from 0 with each document
// and with the sample, and the label of a document's last token is ignored.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_LOADER_H
#define ACCEL_RUNTIME_DATA_LOADER_H

#include "runtime/data/Corpus.h"
#include "runtime/data/Permutation.h"
#include "runtime/data/TokenFile.h"
#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

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
  /// `inputs` are what the programs read, `ranks` how many read micro-batches
  /// of their own. False with a sentence in `error`: missing or short files,
  /// other shapes, ids outside of the vocabulary.
  bool open(const plan::Data &data, const plan::Job &job,
            const std::vector<Input> &inputs, const std::string &baseDir,
            std::string &error, int64_t ranks = 1);

  /// Input `name` of micro-batch `k`. Throws std::runtime_error where an id is
  /// outside of its limit (files too large to be read through at the start).
  at::Tensor load(const std::string &name, int64_t k);
  /// `load` in two halves, for threads that must not make tensors: the bytes of
  /// int64 or fp32 elements, and the tensor of them.
  std::vector<char> read(const std::string &name, int64_t k);
  at::Tensor toTensor(const std::string &name,
                      const std::vector<char> &bytes) const;

  int64_t samples() const { return numSamples; }
  /// Of an epoch with whole micro-batches for all ranks; 0: epochs go on in one
  /// another.
  int64_t epochSamples() const { return batchesPerEpoch * microBatch; }
  /// Which sample of the files is row `row` of micro-batch `k`.
  int64_t sampleOf(int64_t k, int64_t row);
  std::vector<std::string> names() const;
  bool has(const std::string &name) const { return sources.count(name); }

private:
  struct Source {
    Input input;
    TokenFile file;      // of arrays
    int64_t numel = 1;   // of a sample
    int64_t limit = 0;   // ids are below; 0: not checked
    bool checked = true; // all ids were looked at when opening
    bool labels() const { return input.name == "labels"; }
  };
  /// A sample's place in the order.
  struct Turn {
    int64_t epoch = 0, index = 0;
  };
  bool openArray(const plan::Data &data, Source &source,
                 const std::string &baseDir, std::string &error);
  bool openTokens(const plan::Data &data, const std::string &baseDir,
                  std::string &error);
  bool setEpochs(const plan::Data &data, int64_t ranks, std::string &error);
  bool checkIds(const TokenFile &file, Source &source,
                std::string &error) const;
  void checkRow(const Source &source, const TokenFile &file, int64_t begin,
                const int64_t *ids) const;
  Turn turnOf(int64_t k, int64_t row) const;
  int64_t sampleOf(const Turn &turn);
  void readTokens(const Source &source, const Turn &turn, int64_t *into);
  void readArray(const Source &source, const Turn &turn, char *into);
  /// For each of a sample's tokens, the last label among them, where its
  /// document begins, counted from the sample's first token.
  void findDocuments(const Corpus::Place &place,
                     std::vector<int64_t> &begins) const;

  int64_t microBatch = 1, length = 0;
  int64_t numSamples = 0;
  int64_t batchesPerEpoch = 0; // 0: epochs go on in one another
  bool shuffle = false, documents = false;
  int64_t endOfDocument = -1;
  uint64_t seed = 0;
  std::optional<Corpus> tokens;
  std::map<std::string, Source> sources; // by name
  std::optional<Permutation> order;      // of arrays
  int64_t orderEpoch = -1;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_LOADER_H
