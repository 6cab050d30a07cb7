//===- Careless.h - Messages that nobody awaits ---------------------*- C++
//-*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For Mutants.cmake.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_CARELESS_H
#define ACCEL_TEST_DRY_CARELESS_H

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>
#include <string>

namespace accel::dry {

/// With DRY_MUTANT=no-await-send the memory of a message serves again before
/// it is sent; with no-await-receive it is read before it is received.
struct Careless : c10d::ProcessGroupNCCL {
  using ProcessGroupNCCL::ProcessGroupNCCL;
  using Message = c10::intrusive_ptr<c10d::Work>;

  struct Unawaited : c10d::Work {
    bool wait(std::chrono::milliseconds) override { return true; }
  };
  static Message awaitedUnless(const char *mistake, Message message) {
    const char *chosen = std::getenv("DRY_MUTANT");
    if (chosen && std::string(chosen) == mistake)
      return c10::make_intrusive<Unawaited>();
    return message;
  }

  Message send(std::vector<at::Tensor> &tensors, int to, int tag) override {
    return awaitedUnless("no-await-send",
                         ProcessGroupNCCL::send(tensors, to, tag));
  }
  Message recv(std::vector<at::Tensor> &tensors, int from, int tag) override {
    return awaitedUnless("no-await-receive",
                         ProcessGroupNCCL::recv(tensors, from, tag));
  }
};

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_CARELESS_H
