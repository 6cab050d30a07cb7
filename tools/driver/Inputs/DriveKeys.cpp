//===- DriveKeys.cpp - DeepSpeed's keys of a drive ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/DriveKeys.h"

#include "frontends/Accelerate/DeepspeedJson.h"
#include "frontends/Accelerate/ReadValues.h"
#include "runtime/plan/DiskLayout.h"

namespace accel {

namespace {
constexpr const char *offload = "offload_optimizer";
constexpr const char *requests = "aio";

std::string pathOf(const char *section, const char *key) {
  return (section == offload ? "zero_optimization.offload_optimizer."
                             : "aio.") +
         std::string(key);
}
} // namespace

const yaml::Node *DriveKeys::find(const char *section, const char *key) const {
  const yaml::Node *node = root;
  if (node && section == offload)
    node = node->find("zero_optimization");
  node = node && node->isMapping() ? node->find(section) : nullptr;
  return node && node->isMapping() ? node->find(key) : nullptr;
}

void DriveKeys::report(const yaml::Node &node, Severity severity,
                       const char *code, const std::string &key,
                       const std::string &what, const std::string &fix) {
  reportInJson(engine, file, severity, code, node, key, what, fix);
}

Location DriveKeys::placeOf(const yaml::Node &node) const {
  return {file, node.range.begin.line, node.range.begin.column};
}

template <typename T>
void DriveKeys::set(Setting<T> &into, const char *section, const char *key,
                    std::type_identity_t<T> value) {
  const yaml::Node &node = *find(section, key);
  const std::string path = pathOf(section, key);
  // The other keys are of this file, which may say one thing twice.
  if (into.written() && into.key.starts_with("offload.nvme.") && *into != value)
    return report(node, Severity::Error, "deepspeed-mismatch", path,
                  "'" + path + "' is " + yaml::shortText(node) +
                      ", and the job file says another " + into.key + " (" +
                      printablePath(into.at.file) + ":" +
                      std::to_string(into.at.line) + ")",
                  "leave one of them out");
  into = {value, Origin::Written, path, placeOf(node), ""};
}

void DriveKeys::takeFlag(const char *key, Setting<bool> &into) {
  const yaml::Node *node = find(offload, key);
  if (!node)
    return;
  const std::string path = pathOf(offload, key);
  if (!node->isScalar() || !isOneOf(*node, "true,false"))
    return report(*node, Severity::Error, "invalid-value", path,
                  "'" + path + "' must be true or false, this is " +
                      yaml::shortText(*node),
                  "");
  set(into, offload, key, isOneOf(*node, "true"));
}

std::optional<int64_t> DriveKeys::number(const char *section, const char *key,
                                         int64_t least, int64_t most) {
  const yaml::Node *node = find(section, key);
  if (!node)
    return std::nullopt;
  const std::optional<int64_t> value =
      node->isScalar() ? parseInteger(yaml::pythonText(*node)) : std::nullopt;
  if (value && *value >= least && *value <= most)
    return value;
  const std::string path = pathOf(section, key);
  report(*node, Severity::Error, "invalid-value", path,
         "'" + path + "' must be an integer from " + std::to_string(least) +
             " to " + std::to_string(most) + ", this is " +
             yaml::shortText(*node),
         "");
  return std::nullopt;
}

/// DeepSpeed's are of a tensor each: of what it updates at once the
/// parameters, the gradient and two moments.
void DriveKeys::takeBuffers() {
  constexpr int64_t tensors = 4;
  const auto count = number(offload, "buffer_count", 1, 1 << 16);
  if (!count)
    return;
  const yaml::Node &node = *find(offload, "buffer_count");
  const std::string path = pathOf(offload, "buffer_count");
  const int64_t least = plan::leastBuffers(*disk.readAhead, *disk.writeBehind);
  if (*count < tensors * least)
    return report(
        node, Severity::Error, "invalid-value", path,
        "'" + path + "' is " + std::to_string(*count) +
            ", and parameters, gradient and two moments of " +
            (least == 1 ? "a unit" : std::to_string(least) + " units at once") +
            " take " + std::to_string(tensors * least) +
            ": DeepSpeed runs out of buffers",
        "write " + std::to_string(tensors * least) +
            (least == 1 ? ""
                        : ", or \"pipeline_read\" and \"pipeline_write\" "
                          "false"));
  set(disk.buffers, offload, "buffer_count", *count / tensors);
}

void DriveKeys::noteOthers() {
  std::string names;
  const yaml::Node *first = nullptr;
  auto note = [&](const char *section, const char *key) {
    const yaml::Node *node = find(section, key);
    if (!node)
      return;
    names += (names.empty() ? "" : ", ") + std::string(key);
    first = first ? first : node;
  };
  for (const char *key : {"pin_memory", "fast_init"})
    note(offload, key);
  for (const char *key : {"single_submit", "overlap_events", "use_gds"})
    note(requests, key);
  if (first)
    report(*first, Severity::Note, "deepspeed-drive",
           "zero_optimization.offload_optimizer",
           "without effect: buffers of accel-run are pinned, a new file "
           "holds zeros and requests overlap, whatever " +
               names + " says",
           "");
}

void DriveKeys::take() {
  takeFlag("pipeline_read", disk.readAhead);
  takeFlag("pipeline_write", disk.writeBehind);
  takeBuffers();
  auto takeNumber = [&](Setting<int64_t> &into, const char *key, int64_t least,
                        int64_t most) {
    if (const auto value = number(requests, key, least, most))
      set(into, requests, key, *value);
  };
  takeNumber(disk.blockBytes, "block_size", 4096, 1 << 30);
  takeNumber(disk.queueDepth, "queue_depth", 1, 1 << 12);
  takeNumber(disk.threads, "thread_count", 1, 1 << 8);
  takeNumber(disk.threads, "intra_op_parallelism", 1, 1 << 8);
  noteOthers();
}

} // namespace accel
