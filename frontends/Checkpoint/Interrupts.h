//===- Interrupts.h - Signals while a folder is written ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A signal ends a process that is still writing only when what it has written
// is removed: reads and writes of FileIo.h fail from the signal on, and the
// signal is delivered behind the clean-up.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_INTERRUPTS_H
#define ACCEL_FRONTENDS_CHECKPOINT_INTERRUPTS_H

#include <csignal>

namespace accel::checkpoint {

/// The signal that has come while Interrupts are there; 0: none.
inline volatile std::sig_atomic_t interrupted = 0;

/// Keeps SIGINT, SIGTERM, SIGHUP and SIGPIPE back until its end, unless they
/// are ignored. A file that grows beyond its limit (SIGXFSZ) fails to be
/// written.
class Interrupts {
public:
  Interrupts() {
    struct sigaction hold = {}, ignore = {};
    hold.sa_handler = [](int signal) { interrupted = signal; };
    ignore.sa_handler = SIG_IGN;
    for (int i = 0; i < count; ++i) {
      sigaction(signals[i], nullptr, &before[i]);
      if (before[i].sa_handler != SIG_IGN)
        sigaction(signals[i], signals[i] == SIGXFSZ ? &ignore : &hold, nullptr);
    }
  }
  ~Interrupts() {
    for (int i = 0; i < count; ++i)
      sigaction(signals[i], &before[i], nullptr);
    const int signal = interrupted;
    interrupted = 0;
    if (signal)
      std::raise(signal);
  }
  Interrupts(const Interrupts &) = delete;

private:
  static constexpr int count = 5;
  static constexpr int signals[count] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE,
                                         SIGXFSZ};
  struct sigaction before[count] = {};
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_INTERRUPTS_H
