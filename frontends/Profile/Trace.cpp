//===- Trace.cpp - Steps that torch.profiler recorded ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Profile/Profile.h"
#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace accel::profile {
namespace {

using Json = nlohmann::json;

std::string textOf(const Json &event, const char *key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>()
                                                    : std::string();
}

/// What no counter exceeds is no number.
std::optional<double> numberOf(const Json &event, const char *key) {
  constexpr double most = 1e18;
  const auto found = event.find(key);
  if (found == event.end() || !found->is_number())
    return std::nullopt;
  const auto number = found->get<double>();
  return number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

/// Most of a "[memory]" event's counters, of the device with most events.
struct Counters {
  int64_t events = 0, allocated = 0, reserved = 0;
};

} // namespace

std::optional<Profile> readTrace(const std::string &text,
                                 const std::string &path,
                                 DiagnosticEngine &engine) {
  const Json root = Json::parse(text, nullptr, false);
  const bool listed = root.is_array();
  const auto events = root.is_object() ? root.find("traceEvents") : root.end();
  if (!listed &&
      (!root.is_object() || events == root.end() || !events->is_array())) {
    engine.error("not-a-trace", path,
                 "is no trace: expected JSON with 'traceEvents', as "
                 "torch.profiler's export_chrome_trace writes it");
    return std::nullopt;
  }
  Profile profile;
  profile.kind = Profile::Kind::Trace;
  std::map<std::pair<int64_t, int64_t>, Counters> devices;
  std::map<std::string, double> steps; // microseconds; repeated on each track
  for (const Json &event : listed ? root : *events) {
    if (!event.is_object())
      continue;
    ++profile.events;
    const std::string name = textOf(event, "name");
    if (name.starts_with("ProfilerStep#"))
      if (const auto lasts = numberOf(event, "dur"))
        steps[name] = std::max(steps[name], *lasts);
    const auto args = event.find("args");
    if (name != "[memory]" || args == event.end() || !args->is_object())
      continue;
    const auto kind = numberOf(*args, "Device Type"),
               id = numberOf(*args, "Device Id"),
               allocated = numberOf(*args, "Total Allocated"),
               reserved = numberOf(*args, "Total Reserved");
    if (!kind || !allocated)
      continue;
    Counters &most = devices[{static_cast<int64_t>(*kind),
                              static_cast<int64_t>(id.value_or(0))}];
    ++most.events;
    most.allocated = std::max(most.allocated, static_cast<int64_t>(*allocated));
    if (reserved)
      most.reserved = std::max(most.reserved, static_cast<int64_t>(*reserved));
  }
  const Counters *found = nullptr;
  for (const auto &[device, most] : devices)
    if (!found || device.first > 0 || most.events > found->events)
      found = &most;
  if (found && found->allocated > 0)
    profile.peakBytes = found->allocated;
  if (found && found->reserved > 0)
    profile.reservedBytes = found->reserved;
  // The first step makes states and communicators.
  std::map<int64_t, double> byNumber;
  for (const auto &[name, lasts] : steps) {
    int64_t number = 0;
    for (const char c : name.substr(sizeof("ProfilerStep#") - 1))
      number = c >= '0' && c <= '9' && number < (int64_t(1) << 40)
                   ? 10 * number + (c - '0')
                   : number;
    byNumber[number] = lasts;
  }
  std::vector<double> seconds;
  for (const auto &[number, lasts] : byNumber)
    if (number != byNumber.begin()->first || byNumber.size() == 1)
      seconds.push_back(lasts * 1e-6);
  std::sort(seconds.begin(), seconds.end());
  if (!seconds.empty())
    profile.stepSeconds = seconds[seconds.size() / 2];
  if (!profile.peakBytes && !profile.stepSeconds) {
    engine.error("not-a-trace", path,
                 "holds neither steps nor bytes: pass profile_memory=True and "
                 "call step() after each step of the profiler");
    return std::nullopt;
  }
  return profile;
}

std::optional<Profile> readProfile(const std::string &path,
                                   DiagnosticEngine &engine) {
  constexpr size_t most = size_t(4) << 30;
  std::string bytes, error;
  if (!yaml::readWholeFile(path, most, bytes, error)) {
    engine.error("not-a-trace", path, error);
    return std::nullopt;
  }
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json =
      first != bytes.npos && (bytes[first] == '{' || bytes[first] == '[');
  return json ? readTrace(bytes, path, engine)
              : readSnapshot(bytes, path, engine);
}

} // namespace accel::profile
