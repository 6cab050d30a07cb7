//===- EmitSnapshot.cpp - A step for torch's memory_viz -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/EmitSnapshot.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are allocated and freed together: a trace frees sums, of which an
/// allocation may be a part.
struct Piece {
  Holding holding{};
  int64_t bytes = 0;
  size_t made = 0, freed = SIZE_MAX; // changes of the trace
  int64_t address = 0;
};

std::vector<Piece> piecesOf(const StepTrace &trace) {
  std::vector<Piece> pieces;
  std::array<std::vector<size_t>, numHoldings> live;
  for (size_t at = 0; at < trace.changes.size(); ++at) {
    const TraceChange &change = trace.changes[at];
    std::vector<size_t> &held = live[static_cast<size_t>(change.holding)];
    if (change.bytes > 0) {
      held.push_back(pieces.size());
      pieces.push_back({change.holding, change.bytes, at});
    }
    int64_t left = -change.bytes;
    // One of that size, else the newest.
    const auto same = std::find_if(held.rbegin(), held.rend(), [&](size_t i) {
      return pieces[i].bytes == left;
    });
    if (same != held.rend())
      std::rotate(std::prev(same.base()), same.base(), held.end());
    while (left > 0 && !held.empty()) {
      const size_t i = held.back();
      if (pieces[i].bytes > left) {
        Piece part = pieces[i];
        part.bytes = left;
        part.freed = at;
        pieces[i].bytes -= left;
        pieces.push_back(part);
        break;
      }
      left -= pieces[i].bytes;
      pieces[i].freed = at;
      held.pop_back();
    }
  }
  return pieces;
}

constexpr int64_t segmentBegin = int64_t(1) << 40;

/// Gives pieces their addresses, the largest first, each as low as pieces that
/// live beside it let it: all lifetimes are known. Returns the last address.
int64_t place(std::vector<Piece> &pieces) {
  std::vector<Piece *> order;
  for (Piece &piece : pieces)
    order.push_back(&piece);
  std::stable_sort(order.begin(), order.end(),
                   [](const Piece *a, const Piece *b) {
                     const bool stays = a->freed == SIZE_MAX;
                     if (stays != (b->freed == SIZE_MAX))
                       return stays;
                     return a->bytes > b->bytes;
                   });
  int64_t end = segmentBegin;
  std::map<int64_t, std::vector<const Piece *>> placed;
  for (Piece *piece : order) {
    int64_t at = segmentBegin;
    for (const auto &[address, there] : placed) {
      if (address - at >= piece->bytes)
        break;
      for (const Piece *other : there)
        if (other->made < piece->freed && piece->made < other->freed)
          at = std::max(at, address + other->bytes);
    }
    piece->address = at;
    placed[at].push_back(piece);
    end = std::max(end, at + piece->bytes);
  }
  return end;
}

Json framesOf(Holding holding) {
  return Json::array(
      {{{"name", toString(holding)}, {"filename", "predicted"}, {"line", 0}}});
}

/// Values by the plain opcodes of protocol 2, which restricted readers take.
void pickle(const Json &value, std::string &out) {
  auto number = [&](uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out += static_cast<char>(n >> (8 * i));
  };
  if (value.is_object() || value.is_array()) {
    out += value.is_object() ? "}(" : "](";
    for (const auto &[key, item] : value.items()) {
      if (value.is_object())
        pickle(key, out);
      pickle(item, out);
    }
    out += value.is_object() ? 'u' : 'e';
  } else if (value.is_string()) {
    const auto &text = value.get_ref<const std::string &>();
    out += 'X';
    number(text.size(), 4);
    out += text;
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? '\x88' : '\x89';
  } else {
    out += "\x8a\x08"; // an integer of 8 bytes
    number(static_cast<uint64_t>(value.get<int64_t>()), 8);
  }
}

} // namespace

std::string snapshotPickle(const StepTrace &trace, int64_t reservedBytes) {
  std::vector<Piece> pieces = piecesOf(trace);
  std::multimap<size_t, size_t> made, freed;
  for (size_t i = 0; i < pieces.size(); ++i) {
    made.emplace(pieces[i].made, i);
    freed.emplace(pieces[i].freed, i);
  }
  const int64_t end = std::max(place(pieces), segmentBegin + reservedBytes);
  Json events = Json::array();
  auto add = [&](const char *action, const Piece &piece, double at) {
    events.push_back({{"action", action},
                      {"addr", piece.address},
                      {"size", piece.bytes},
                      {"stream", 0},
                      {"time_us", static_cast<int64_t>(at * 1e6)},
                      {"frames", framesOf(piece.holding)}});
  };
  for (size_t at = 0; at < trace.changes.size(); ++at) {
    const double time = trace.changes[at].at;
    for (auto [i, last] = made.equal_range(at); i != last; ++i)
      add("alloc", pieces[i->second], time);
    for (auto [i, last] = freed.equal_range(at); i != last; ++i) {
      const Piece &piece = pieces[i->second];
      add("free_requested", piece, time);
      add("free_completed", piece, time);
    }
  }
  Json blocks = Json::array();
  int64_t used = 0, at = segmentBegin;
  auto idle = [&](int64_t until) {
    if (until > at)
      blocks.push_back({{"address", at},
                        {"size", until - at},
                        {"requested_size", 0},
                        {"state", "inactive"},
                        {"frames", Json::array()}});
  };
  std::map<int64_t, const Piece *> live;
  for (const Piece &piece : pieces)
    if (piece.freed == SIZE_MAX)
      live[piece.address] = &piece;
  for (const auto &[address, piece] : live) {
    idle(address);
    blocks.push_back({{"address", address},
                      {"size", piece->bytes},
                      {"requested_size", piece->bytes},
                      {"state", "active_allocated"},
                      {"frames", framesOf(piece->holding)}});
    used += piece->bytes;
    at = address + piece->bytes;
  }
  idle(end);
  const Json snapshot = {
      {"segments", Json::array({{{"device", 0},
                                 {"address", segmentBegin},
                                 {"total_size", end - segmentBegin},
                                 {"allocated_size", used},
                                 {"active_size", used},
                                 {"requested_size", used},
                                 {"stream", 0},
                                 {"segment_type", "large"},
                                 {"is_expandable", true},
                                 {"frames", Json::array()},
                                 {"blocks", blocks}}})},
      {"device_traces", Json::array({events})},
      {"external_annotations", Json::array()}};
  std::string out = "\x80\x02";
  pickle(snapshot, out);
  return out + ".";
}

} // namespace accel
