//===- AllocatorRules.cpp - PYTORCH_CUDA_ALLOC_CONF -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/CachingAllocator.h"

#include <algorithm>
#include <cstdlib>

namespace accel::replay {

namespace {

std::string stripped(const std::string &text) {
  std::string result;
  for (char c : text)
    if (c != ' ' && c != '\t' && c != '\n')
      result += c;
  return result;
}

/// A whole number from 0 to a million, or -1.
int64_t number(const std::string &text) {
  if (text.empty() || text.size() > 7 ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::strtoll(text.c_str(), nullptr, 10);
}

/// Settings without an influence on the segments of the device.
bool isHarmless(const std::string &key) {
  for (const char *known :
       {"pinned_use_cuda_host_register", "pinned_num_register_threads",
        "pinned_use_background_threads", "pinned_reserve_segment_size_mb",
        "release_lock_on_cudamalloc", "release_lock_on_hipmalloc"})
    if (key == known)
      return true;
  return false;
}

/// Settings that torch knows and that change what this replay computes.
bool isUnsupported(const std::string &key) {
  for (const char *known :
       {"garbage_collection_threshold", "max_non_split_rounding_mb",
        "large_segment_size_mb", "graph_capture_record_stream_reuse",
        "per_process_memory_fraction", "throw_on_cudamalloc_oom",
        "max_round_threshold", "max_cached_size"})
    if (key == known)
      return true;
  return false;
}

} // namespace

std::string readAllocatorRules(const std::string &written,
                               AllocatorRules &rules, bool &unsupported) {
  unsupported = false;
  const std::string text = stripped(written);
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(',', at);
    const size_t bracket = text.find('[', at);
    if (bracket < end)
      end = text.find(',', text.find(']', bracket));
    end = std::min(end, text.size());
    const std::string entry = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = entry.find(':');
    const std::string key = entry.substr(0, colon);
    const std::string value =
        colon == std::string::npos ? "" : entry.substr(colon + 1);
    if (value.empty())
      return "'" + entry + "' is not of the form key:value";
    if (key == "expandable_segments") {
      if (value != "True" && value != "False")
        return "'" + entry + "': expected True or False";
      rules.expandableSegments = value == "True";
    } else if (key == "max_split_size_mb") {
      const int64_t mebibytes = number(value);
      if (mebibytes <= 20)
        return "'" + entry + "': expected more than 20";
      rules.maxSplitBytes = mebibytes << 20;
    } else if (key == "roundup_power2_divisions") {
      const int64_t divisions = number(value);
      unsupported = value[0] == '[';
      if (unsupported)
        return "'" + entry +
               "': one number for all sizes is supported, no "
               "list";
      if (divisions < 1 || (divisions & (divisions - 1)))
        return "'" + entry + "': expected a power of two";
      rules.powerOfTwoDivisions = divisions;
    } else if (key == "backend") {
      unsupported = value == "cudaMallocAsync";
      if (value != "native")
        return "'" + entry + "': only the native allocator is supported";
    } else if (!isHarmless(key)) {
      unsupported = isUnsupported(key);
      return unsupported ? "'" + key + "' is not supported"
                         : "'" + key + "' is no setting of the allocator";
    }
  }
  return "";
}

} // namespace accel::replay
