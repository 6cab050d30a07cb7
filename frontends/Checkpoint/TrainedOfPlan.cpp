//===- TrainedOfPlan.cpp - Whether a plan is of what was trained ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/BoxWriter.h"
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/TorchNames.h"
#include "frontends/Checkpoint/Trained.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <set>

namespace accel::checkpoint {

namespace {

using Named = std::map<std::string, TrainedParameter>::const_iterator;

/// Those of the checkpoint's parameters that the plan's one is, by its names.
std::vector<Named> allTrained(const Trained &trained,
                              const plan::Parameter &parameter) {
  std::vector<Named> all;
  auto add = [&](const std::string &name) {
    if (auto found = trained.parameters.find(name);
        found != trained.parameters.end())
      all.push_back(found);
  };
  add(parameter.fqn);
  for (const std::string &alias : parameter.aliases)
    add(alias);
  return all;
}

} // namespace

const TrainedParameter *findTrained(const Trained &trained,
                                    const plan::Parameter &parameter) {
  const std::vector<Named> all = allTrained(trained, parameter);
  for (const Named &each : all)
    if (!each->second.states.empty())
      return &each->second;
  return all.empty() ? nullptr : &all.front()->second;
}

namespace {

/// Of a tensor's bytes and their places, in whatever order its pieces have
/// them, so that tensors that were cut otherwise have the same one.
class Fingerprint {
public:
  void add(std::string_view bytes, int64_t place) {
    for (const char byte : bytes)
      sum += mixed(uint64_t(place++) << 8 | static_cast<unsigned char>(byte));
  }
  bool operator==(const Fingerprint &) const = default;

private:
  static uint64_t mixed(uint64_t x) { // splitmix64's
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t sum = 0;
};

std::optional<Fingerprint> fingerprintOf(const Tensor &tensor,
                                         PieceReader &reader) {
  Fingerprint fingerprint;
  for (const Piece &piece : tensor.pieces) {
    BoxWriter box(piece.view.empty() ? tensor.shape : piece.view,
                  elementBytes(tensor.dtype), piece,
                  [&](std::string_view bytes, int64_t place) {
                    fingerprint.add(bytes, place);
                    return true;
                  });
    if (!reader.read(tensor, piece,
                     [&](std::string_view bytes) { return box.take(bytes); }))
      return std::nullopt;
  }
  return fingerprint;
}

/// Nothing, reported, where they cannot be read.
std::optional<bool> areEqual(const Tensor &a, const Tensor &b,
                             DiagnosticEngine &diagnostics) {
  if (a.dtype != b.dtype || a.shape != b.shape)
    return false;
  PieceReader reader(diagnostics);
  const auto ofA = fingerprintOf(a, reader), ofB = fingerprintOf(b, reader);
  if (!ofA || !ofB)
    return std::nullopt;
  // Damage makes a difference too.
  if (*ofA != *ofB && !reader.verify())
    return std::nullopt;
  return *ofA == *ofB;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string quoted(const std::string &name) {
  return "'" + printable(name) + "'";
}

/// What of `all`, which are names of one parameter of the plan, is none of it.
std::optional<std::string> differenceTo(const plan::Parameter &planned,
                                        const std::vector<Named> &all,
                                        DiagnosticEngine &diagnostics) {
  const TrainedParameter *stated = nullptr; // one that has states
  for (const Named &each : all) {
    const auto &[name, parameter] = *each;
    const std::string tied = "the plan ties " + quoted(name) + " to " +
                             quoted(all.front()->first) +
                             ", and the checkpoint has ";
    if (!parameter.states.empty()) {
      if (!planned.trainable)
        return "the plan freezes " + quoted(name) +
               ", and the checkpoint has states of the optimizer of it";
      if (stated)
        return tied + "states of the optimizer of each";
      stated = &parameter;
    }
    if (each == all.front())
      continue;
    const auto equal =
        areEqual(*all.front()->second.weight, *parameter.weight, diagnostics);
    if (!equal)
      return std::nullopt;
    if (!*equal)
      return tied + "other values in each";
  }
  return "";
}

/// What keeps the checkpoint from being one of the plan's model; "": nothing.
/// None, reported, where its weights cannot be read.
std::optional<std::string> differenceTo(const plan::Plan &plan,
                                        const Trained &trained,
                                        DiagnosticEngine &diagnostics) {
  auto otherShape = [&](const std::string &name, const Tensor &saved,
                        const std::vector<int64_t> &planned) {
    return saved.shape == planned
               ? std::string()
               : quoted(name) + " has the shape " + shapeText(saved.shape) +
                     " in the checkpoint, and " + shapeText(planned) +
                     " in the plan";
  };
  std::set<std::string> names;
  for (const plan::Parameter &parameter : plan.parameters) {
    const std::vector<Named> all = allTrained(trained, parameter);
    if (all.empty())
      return "the plan has a parameter " + quoted(parameter.fqn) +
             ", and the checkpoint has none of this name";
    for (const Named &each : all)
      if (std::string other =
              otherShape(each->first, *each->second.weight, parameter.shape);
          !other.empty())
        return other;
    auto other = differenceTo(parameter, all, diagnostics);
    if (!other || !other->empty())
      return other;
    for (const Named &each : all)
      names.insert(each->first);
  }
  for (const auto &[name, parameter] : trained.parameters)
    if (!names.count(name))
      return "the checkpoint has a parameter " + quoted(name) +
             ", and the plan has none of this name";
  for (const Tensor *saved : trained.buffers) {
    const auto buffer = std::find_if(
        plan.buffers.begin(), plan.buffers.end(),
        [&](const plan::Buffer &each) { return each.fqn == saved->name; });
    if (buffer == plan.buffers.end())
      return "the checkpoint has a buffer " + quoted(saved->name) +
             ", and the plan has none of this name";
    if (std::string other = otherShape(saved->name, *saved, buffer->shape);
        !other.empty())
      return other;
  }
  return "";
}

} // namespace

bool isOfModel(const Trained &trained, const plan::Plan &plan,
               const std::string &output, DiagnosticEngine &diagnostics) {
  const auto difference = differenceTo(plan, trained, diagnostics);
  if (difference && !difference->empty())
    diagnostics.error("conflicting-arguments", output, *difference,
                      "give the plan of the job that was trained");
  return difference && difference->empty();
}

} // namespace accel::checkpoint
