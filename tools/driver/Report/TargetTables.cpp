//===- TargetTables.cpp - What targets say --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/TargetTables.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace accel {

using Json = nlohmann::ordered_json;

namespace {

std::string scaled(double value, const std::string &unit) {
  const char *prefix = "";
  for (auto [scale, name] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}})
    if (value >= scale) {
      value /= scale;
      prefix = name;
      break;
    }
  char text[48];
  std::snprintf(text, sizeof text, "%.4g ", value);
  return text + std::string(prefix) + unit;
}

/// A figure in the unit that its key implies.
std::string shown(const TargetFigure &figure) {
  auto is = [&](const char *end) { return figure.key.ends_with(end); };
  const double value = std::strtod(figure.value.c_str(), nullptr);
  if (is("bytes") || is("granularity"))
    return formatBytes(static_cast<int64_t>(value));
  if (is("flops"))
    return scaled(value, "FLOP/s");
  if (is("bandwidth"))
    return scaled(value, "B/s");
  char text[48];
  if (is("seconds") || is("latency") || is("hop")) {
    std::snprintf(text, sizeof text, "%.4g us", value * 1e6);
    return text;
  }
  if (is("efficiency") || is("overhead") || is("overlap")) {
    std::snprintf(text, sizeof text, "%.4g %%", value * 100);
    return text;
  }
  return figure.value;
}

} // namespace

Json targetJson(const Target &target) {
  auto link = [](const Link &link) {
    Json json = {{"bytes_per_s", link.bytesPerSecond},
                 {"latency_s", link.latencySeconds},
                 {"hop_s", link.hopSeconds}};
    if (link.treeHopSeconds > 0)
      json["tree_hop_s"] = link.treeHopSeconds;
    if (link.shortMessages.bytesPerSecond > 0)
      json["short_messages"] = {
          {"bytes_per_s", link.shortMessages.bytesPerSecond},
          {"latency_s", link.shortMessages.latencySeconds},
          {"hop_s", link.shortMessages.hopSeconds}};
    return json;
  };
  Json compute = Json::object();
  auto add = [&](const char *name, const ComputeRate &rate) {
    compute[name] = {
        {"peak_flops", rate.peakFlops},
        {"matmul_flops", rate.peakFlops * rate.matmulEfficiency},
        {"attention_flops", rate.peakFlops * rate.attentionEfficiency}};
  };
  for (const auto &[dtype, rate] : target.compute)
    add(plan::toString(dtype), rate);
  if (target.tf32)
    add("tf32", *target.tf32);
  if (target.fp8)
    add("fp8", *target.fp8);
  if (target.fp4)
    add("fp4", *target.fp4);
  Json figures = Json::array();
  for (const TargetFigure &figure : target.figures)
    figures.push_back(
        {{"key", figure.key},
         {"value", figure.value},
         {"source",
          figure.source.empty() ? Json(nullptr) : Json(figure.source)}});
  return {{"name", target.name},
          {"description", target.description},
          {"kind", toString(target.kind)},
          {"ranks_per_node", target.ranksPerNode},
          {"memory_bytes",
           target.memoryBytes ? Json(*target.memoryBytes) : Json(nullptr)},
          {"context_bytes", target.contextBytes},
          {"memory_bytes_per_s", target.memoryBytesPerSecond},
          {"compute", compute},
          {"multiprocessors", target.multiprocessors},
          {"launch_s", target.launchSeconds},
          {"dispatch_s", target.dispatchSeconds},
          {"links",
           {{"intra_node", link(target.insideNode)},
            {"inter_node", link(target.betweenNodes)},
            {"host",
             {{"bytes_per_s", target.host.bytesPerSecond},
              {"latency_s", target.host.latencySeconds},
              {"update_bytes_per_s", target.host.updateBytesPerSecond},
              {"memory_bytes", target.host.memoryBytes}}},
            {"drive",
             {{"read_bytes_per_s", target.drive.readBytesPerSecond},
              {"write_bytes_per_s", target.drive.writeBytesPerSecond}}}}},
          {"overlap", target.overlap},
          {"reduce_scatter", target.reduceScatter},
          {"figures", figures}};
}

std::string renderTargets(const std::vector<Target> &targets) {
  size_t width = 0;
  for (const Target &target : targets)
    width = std::max(width, target.name.size());
  std::string text;
  for (const Target &target : targets)
    text += padRight(target.name, width) + "  " + target.description + "\n";
  return text + "\n'accel-opt targets NAME' shows one with the source of each "
                "figure; with\n'--format yaml' it prints a file to start one's "
                "own from.\n";
}

std::string renderTarget(const Target &target) {
  std::string text = target.name + ": " + target.description + "\n\n";
  if (!target.memoryBytes)
    text += "  states no memory: plans need --memory-budget to fit or not\n\n";
  size_t keyWidth = 0, valueWidth = 0;
  for (const TargetFigure &figure : target.figures) {
    keyWidth = std::max(keyWidth, figure.key.size());
    valueWidth = std::max(valueWidth, shown(figure).size());
  }
  std::string before;
  for (const TargetFigure &figure : target.figures) {
    // A source that several figures share is printed once.
    std::string line = "  " + padRight(figure.key, keyWidth) + "  " +
                       padRight(shown(figure), valueWidth);
    if (!figure.source.empty() && figure.source != before)
      line += "  " + figure.source;
    before = figure.source;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

} // namespace accel
