//===- Options.cpp - accel-run's command line -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Options.h"

#include <charconv>

namespace accel::run {

const char *usage() {
  return R"(usage: accel-run PLAN [options]

Trains as a plan says that accel-opt wrote. Ranks come from the environment that
torchrun --no-python, srun, mpirun or a Kubernetes job set, or from --nproc.

  --nproc N             start N ranks on this machine
  --steps N             stop after optimizer step N (default: the plan's steps)
  --resume auto|PATH    continue from the newest checkpoint of the job, or from
                        this one; auto starts anew where there is none
  --out DIR             checkpoints and the trained model go here instead of the
                        job's checkpoint folder
  --on-nan stop|skip    at a step whose loss or gradients are not finite: stop
                        (default), or leave the step out of the training
  --log FILE            one JSON object a step; truncated unless resuming
  --profile FILE        a Chrome/Perfetto trace of rank 0's third step: measured
                        times and bytes beside the predicted ones
  --summary FILE        the final figures as JSON
  --max-shard-size N    split model.safetensors above N bytes (suffixes KB, MB,
                        GB; default 5GB)
  --help, --version

Paths in a plan are relative to the plan's folder. OMP_NUM_THREADS sets the
compute threads of a rank (default: the machine's cores divided by its ranks).
SIGTERM, SIGINT and SIGUSR1 end the job after the step at hand, with a
checkpoint; a second SIGTERM or SIGINT ends it at once.
Exit codes: 0 done, 1 invalid input or a failed run, 4 valid but not supported,
64 usage, 75 stopped by a signal: continue with --resume auto.
)";
}

namespace {
bool parseNumber(const std::string &text, int64_t low, int64_t &value) {
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() &&
         value >= low;
}

bool parseBytes(const std::string &text, int64_t &value) {
  size_t digits = text.find_first_not_of("0123456789");
  int64_t unit = 1;
  if (digits != std::string::npos) {
    const std::string suffix = text.substr(digits);
    unit = suffix == "KB"   ? 1'000
           : suffix == "MB" ? 1'000'000
           : suffix == "GB" ? 1'000'000'000
                            : 0;
  }
  return unit != 0 && parseNumber(text.substr(0, digits), 1, value) &&
         !__builtin_mul_overflow(value, unit, &value);
}
} // namespace

bool parseOptions(const std::vector<std::string> &arguments, Options &options,
                  std::string &error) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return true;
    }
    if (argument == "--version") {
      options.version = true;
      return true;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      if (!options.plan.empty()) {
        error =
            "one plan at a time: '" + options.plan + "' and '" + argument + "'";
        return false;
      }
      options.plan = argument;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::string *text = name == "--resume"    ? &options.resume
                        : name == "--on-nan"  ? &options.onNan
                        : name == "--log"     ? &options.log
                        : name == "--profile" ? &options.profile
                        : name == "--summary" ? &options.summary
                        : name == "--out"     ? &options.out
                                              : nullptr;
    const bool number =
        name == "--nproc" || name == "--steps" || name == "--max-shard-size";
    if (!text && !number) {
      error = "unknown option '" + name + "'";
      return false;
    }
    std::string value;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size())
      value = arguments[++i];
    if (value.empty()) {
      error = "option '" + name + "' needs a value";
      return false;
    }
    if (text) {
      *text = value;
      if (name == "--on-nan" && value != "stop" && value != "skip") {
        error = "option '--on-nan' cannot be '" + value + "': stop or skip";
        return false;
      }
      continue;
    }
    int64_t parsed = 0;
    if (name == "--max-shard-size"
            ? !parseBytes(value, options.shardLimit)
            : !parseNumber(value, name == "--nproc" ? 1 : 0, parsed)) {
      error = "option '" + name + "' cannot be '" + value + "'";
      return false;
    }
    if (name == "--nproc") {
      if (parsed > 4096) {
        error = "option '--nproc' cannot be '" + value + "': at most 4096";
        return false;
      }
      options.nproc = static_cast<int>(parsed);
    } else if (name == "--steps") {
      options.steps = parsed;
    }
  }
  if (options.plan.empty()) {
    error = "no plan given";
    return false;
  }
  return true;
}

} // namespace accel::run
