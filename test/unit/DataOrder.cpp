//===- DataOrder.cpp - Prints which samples a rank reads ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// data-order reads lines
//   TOKENS SAMPLE-LENGTH MICRO-BATCH RANKS EPOCH-END BATCHES
// and prints for each a line a rank: the first token of each sample of its
// micro-batches. test/parity compares it with Accelerate's samplers.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Loader.h"

#include <iostream>

int main() {
  using namespace accel;
  plan::Data data;
  data.kind = "tokens";
  data.dtype = "int64";
  plan::Job job;
  int64_t ranks = 0, batches = 0;
  while (std::cin >> data.path >> job.sequenceLength >> job.microBatch >>
         ranks >> data.epochEnd >> batches) {
    run::Loader loader;
    std::string error;
    if (!loader.open(data, job,
                     {{"input_ids",
                       plan::DType::I64,
                       {job.microBatch, job.sequenceLength}}},
                     "/", error, ranks)) {
      std::cerr << error << "\n";
      return 1;
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < batches; ++i) {
        const at::Tensor batch = loader.load("input_ids", i * ranks + rank);
        for (int64_t row = 0; row < job.microBatch; ++row)
          std::cout << batch.const_data_ptr<int64_t>()[row * job.sequenceLength]
                    << " ";
      }
      std::cout << "\n";
    }
  }
  return 0;
}
