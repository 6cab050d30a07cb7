//===- Snapshot.cpp - Allocations that torch recorded ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Pickle.h"
#include "frontends/Profile/Profile.h"

#include <algorithm>
#include <map>

namespace accel::profile {
namespace {

using checkpoint::Pickle;
using checkpoint::ValueId;

/// A snapshot is dictionaries, lists and numbers alone.
bool namesNothing(std::string_view) { return false; }

struct Block {
  int64_t bytes = 0;
  std::string what;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// What a frame of the stack says that a tensor is for; "" where it does not.
/// `plan --emit memory-snapshot` has one frame, which says it itself.
std::string purposeOf(std::string_view name, std::string_view file) {
  if (file == "predicted")
    return std::string(name);
  if (contains(file, "torch/optim/") || contains(file, "bitsandbytes/optim/"))
    return "optimizer";
  if (contains(file, "_fsdp_collectives") || contains(file, "_fsdp_param") ||
      contains(file, "fsdp/_flat_param")) {
    if (contains(name, "reduce") || contains(name, "grad"))
      return "reduced gradients";
    return "gathered";
  }
  if (contains(file, "torch/utils/checkpoint"))
    return "recomputed";
  if (contains(name, "cross_entropy") || contains(name, "loss_function") ||
      contains(name, "ForCausalLMLoss"))
    return "logits and loss";
  if (name == "backward" &&
      (contains(file, "torch/_tensor") || contains(file, "torch/autograd")))
    return "backward";
  if (name == "forward")
    return "forward";
  return "";
}

class SnapshotReader {
public:
  SnapshotReader(const Pickle &pickle, const std::string &path,
                 DiagnosticEngine &engine)
      : pickle(pickle), path(path), engine(engine) {}

  std::optional<Profile> run() {
    const auto traces = pickle.field(pickle.root(), "device_traces");
    const auto segments = pickle.field(pickle.root(), "segments");
    if (!traces || !isList(*traces) || !segments || !isList(*segments))
      return fail("is no memory snapshot: expected a dictionary with "
                  "'segments' and 'device_traces', as "
                  "torch.cuda.memory._dump_snapshot writes it");
    const std::vector<ValueId> &devices = pickle.at(*traces).items;
    size_t device = 0;
    for (size_t i = 0; i < devices.size(); ++i)
      if (isList(devices[i]) && pickle.at(devices[i]).items.size() >
                                    pickle.at(devices[device]).items.size())
        device = i;
    if (devices.empty() || !isList(devices[device]) ||
        pickle.at(devices[device]).items.empty())
      return fail("holds no event: call "
                  "torch.cuda.memory._record_memory_history() before the steps "
                  "that it is to hold");
    const std::vector<ValueId> &events = pickle.at(devices[device]).items;
    profile.events = static_cast<int64_t>(events.size());
    if (!readSegments(pickle.at(*segments).items, static_cast<int64_t>(device)))
      return std::nullopt;
    // Backwards from what there is at the end to what was there before.
    int64_t held = atEnd, reserved = reservedAtEnd;
    for (const ValueId event : events) {
      held -= change(event).first;
      reserved -= change(event).second;
    }
    profile.beforeBytes = std::max<int64_t>(held, 0);
    replay(events, *profile.beforeBytes, std::max<int64_t>(reserved, 0));
    return std::move(profile);
  }

private:
  bool isList(ValueId id) const { return pickle.is(id, Pickle::Kind::List); }

  std::optional<Profile> fail(const std::string &message) {
    engine.error("not-a-snapshot", path, message);
    return std::nullopt;
  }

  int64_t number(ValueId id, std::string_view key) const {
    const auto value = pickle.field(id, key);
    return value ? std::max<int64_t>(pickle.integer(*value).value_or(0), 0) : 0;
  }
  std::string_view text(ValueId id, std::string_view key) const {
    const auto value = pickle.field(id, key);
    return value ? pickle.text(*value).value_or("") : "";
  }

  bool readSegments(const std::vector<ValueId> &segments, int64_t device) {
    for (const ValueId segment : segments) {
      if (pickle.field(segment, "device") &&
          number(segment, "device") != device)
        continue;
      reservedAtEnd += number(segment, "total_size");
      const auto blocks = pickle.field(segment, "blocks");
      if (!blocks || !isList(*blocks))
        return fail("has a segment without blocks"), false;
      for (const ValueId block : pickle.at(*blocks).items)
        if (text(block, "state").starts_with("active"))
          atEnd += number(block, "size");
    }
    return true;
  }

  /// What an event adds to the bytes of tensors and of segments.
  std::pair<int64_t, int64_t> change(ValueId event) const {
    const std::string_view action = text(event, "action");
    const int64_t bytes = number(event, "size");
    if (action == "alloc")
      return {bytes, 0};
    if (action == "free_completed")
      return {-bytes, 0};
    if (action == "segment_alloc" || action == "segment_map")
      return {0, bytes};
    if (action == "segment_free" || action == "segment_unmap")
      return {0, -bytes};
    return {0, 0};
  }

  void replay(const std::vector<ValueId> &events, int64_t held,
              int64_t reserved) {
    std::map<int64_t, Block> live;
    int64_t peak = held, mostReserved = std::max(reserved, reservedAtEnd);
    size_t peakAt = 0;
    const int64_t before = held;
    for (size_t i = 0; i < events.size(); ++i) {
      const auto [tensors, segments] = change(events[i]);
      held += tensors;
      reserved += segments;
      mostReserved = std::max(mostReserved, reserved);
      if (held > peak) {
        peak = held;
        peakAt = i + 1;
      }
    }
    profile.peakBytes = peak;
    profile.reservedBytes = std::max(mostReserved, peak);
    int64_t stays = before; // of what was there before
    for (size_t i = 0; i < peakAt; ++i) {
      const auto [bytes, segments] = change(events[i]);
      const int64_t address = number(events[i], "addr");
      if (bytes > 0)
        live[address] = {bytes, whatFor(events[i])};
      else if (bytes < 0 && !live.erase(address))
        stays += bytes;
    }
    std::map<std::string, Held> sums;
    if (stays > 0)
      sums["before the record"] = {"before the record", stays, 0};
    for (const auto &[address, block] : live) {
      Held &sum = sums[block.what];
      sum.what = block.what;
      sum.bytes += block.bytes;
      ++sum.tensors;
    }
    for (auto &[what, sum] : sums)
      profile.atPeak.push_back(std::move(sum));
    std::stable_sort(
        profile.atPeak.begin(), profile.atPeak.end(),
        [](const Held &a, const Held &b) { return a.bytes > b.bytes; });
  }

  /// The innermost frame that says what for.
  std::string whatFor(ValueId event) const {
    const auto frames = pickle.field(event, "frames");
    if (!frames || !isList(*frames))
      return "no stack was recorded";
    for (const ValueId frame : pickle.at(*frames).items)
      if (std::string what =
              purposeOf(text(frame, "name"), text(frame, "filename"));
          !what.empty())
        return what;
    return "other";
  }

  const Pickle &pickle;
  const std::string &path;
  DiagnosticEngine &engine;
  Profile profile;
  int64_t atEnd = 0, reservedAtEnd = 0;
};

} // namespace

std::optional<Profile> readSnapshot(std::string_view bytes,
                                    const std::string &path,
                                    DiagnosticEngine &engine) {
  Pickle::Problem problem;
  const auto pickle = Pickle::parse(bytes, namesNothing, problem);
  if (!pickle) {
    engine.error("not-a-snapshot", path,
                 "byte " + std::to_string(problem.offset) + ": " +
                     problem.message +
                     (problem.foreign ? "; a snapshot names nothing, so this "
                                        "file may be an attack"
                                      : ""));
    return std::nullopt;
  }
  return SnapshotReader(*pickle, path, engine).run();
}

} // namespace accel::profile
