//===- DdpOption.cpp - What a script says of torch's DDP ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/DdpOption.h"

#include "frontends/Diagnostics/Diagnostics.h"

namespace accel {
namespace {

/// Names of Accelerate's DDPCommunicationHookType, and Candidate::commHook's.
constexpr std::pair<const char *, const char *> hooks[] = {
    {"no", ""}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"power_sgd", "powersgd"}};

/// One KEY=VALUE; what is wrong with it, or "".
std::string read(const std::string &key, const std::string &value,
                 DdpKwargs &into) {
  if (key == "bucket_cap_mb") {
    int64_t mebibytes = 0;
    if (!parseInteger(value, mebibytes) || mebibytes < 1 || mebibytes > 1 << 20)
      return "bucket_cap_mb must be MiB from 1 to 1048576, not '" + value + "'";
    into.bucketBytes.reset();
    // What is not the default goes to torch, for the first bucket too.
    if (mebibytes != 25)
      into.bucketBytes = mebibytes << 20;
    return "";
  }
  if (key == "gradient_as_bucket_view") {
    if (value != "true" && value != "false")
      return "gradient_as_bucket_view must be true or false, not '" + value +
             "'";
    into.gradientAsBucketView = value == "true";
    return "";
  }
  if (key == "comm_hook") {
    for (auto [name, hook] : hooks)
      if (value == name) {
        into.commHook = hook;
        return "";
      }
    if (value == "batched_power_sgd")
      return "comm_hook batched_power_sgd is not modelled";
    return "comm_hook must be no, fp16, bf16 or power_sgd, not '" + value + "'";
  }
  const std::string hint = didYouMean(
      key, {"bucket_cap_mb", "gradient_as_bucket_view", "comm_hook"});
  return "'" + key +
         "' is none of bucket_cap_mb, gradient_as_bucket_view, comm_hook" +
         (hint.empty() ? "" : "; " + hint);
}

} // namespace

ValueKind<DdpKwargs> ddpKwargsValue() {
  return {"KEY=VALUE,...",
          [](const std::string &word, DdpKwargs &value) -> std::string {
            for (size_t begin = 0; begin <= word.size();) {
              const size_t end = std::min(word.find(',', begin), word.size());
              const std::string item = word.substr(begin, end - begin);
              const size_t equals = item.find('=');
              if (equals == std::string::npos)
                return "expected KEY=VALUE, not '" + printable(item) + "'";
              std::string wrong =
                  read(item.substr(0, equals), item.substr(equals + 1), value);
              if (!wrong.empty())
                return wrong;
              begin = end + 1;
            }
            return "";
          }};
}

} // namespace accel
