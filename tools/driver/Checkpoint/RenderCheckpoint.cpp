//===- RenderCheckpoint.cpp - What inspect prints -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Checkpoint/RenderCheckpoint.h"
#include "tools/driver/Text/Format.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace accel {

using namespace checkpoint;
using Json = nlohmann::ordered_json;

namespace {

std::string counted(int64_t n, const std::string &one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string shapeText(const Tensor &tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

std::string contentText(const Part &part) {
  std::string text;
  if (!part.tensors.empty())
    text = counted(int64_t(part.tensors.size()), "tensor");
  if (part.objects)
    text += (text.empty() ? "" : ", ") + counted(part.objects, "other value");
  if (part.files != 1)
    text += (text.empty() ? "" : ", ") + counted(part.files, "file");
  return text.empty() ? "" : ", " + text;
}

} // namespace

std::string renderCheckpoint(const Checkpoint &read, bool tensors) {
  std::string text = printablePath(read.folder) + ": " + read.meaning + "\n";
  if (read.step)
    text += "  step  " + std::to_string(*read.step) + "\n";
  if (!read.run.empty())
    text += "  run   " + printable(read.run) + "\n";
  size_t width = 4;
  for (const Part &part : read.parts)
    width = std::max(width, printablePath(part.path).size());
  for (const Part &part : read.parts) {
    text += "  " + padRight(printablePath(part.path), width) + "  " +
            padLeft(formatBytes(part.bytes), 8) + "  " + part.meaning +
            contentText(part) + "\n";
    for (const Tensor &tensor : part.tensors)
      if (tensors)
        text += "    " + printable(tensor.name, 200) + "  " + tensor.dtype +
                " " + shapeText(tensor) + "  " + formatBytes(tensor.bytes) +
                ", " + counted(tensor.shards, "shard") + "\n";
  }
  return text;
}

std::string checkpointJson(const std::optional<Checkpoint> &read,
                           const DiagnosticEngine &engine) {
  Json json = nullptr;
  if (read) {
    json = {{"folder", read->folder},
            {"format", toString(read->format)},
            {"meaning", read->meaning},
            {"step", read->step ? Json(*read->step) : Json(nullptr)},
            {"run", read->run.empty() ? Json(nullptr) : Json(read->run)},
            {"parts", Json::array()}};
    for (const Part &part : read->parts) {
      Json tensors = Json::array();
      for (const Tensor &tensor : part.tensors)
        tensors.push_back({{"name", tensor.name},
                           {"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"bytes", tensor.bytes},
                           {"shards", tensor.shards}});
      json["parts"].push_back({{"path", part.path},
                               {"format", toString(part.format)},
                               {"meaning", part.meaning},
                               {"bytes", part.bytes},
                               {"files", part.files},
                               {"objects", part.objects},
                               {"tensors", std::move(tensors)}});
    }
  }
  return "{\"checkpoint\": " +
         json.dump(1, ' ', false, Json::error_handler_t::replace) +
         ",\n\"diagnostics\": " + renderJson(engine) + "}\n";
}

/// "left out: 'a', 'b' and 3 more, which are no tensors".
static std::string leftNames(const std::vector<std::string> &names,
                             const char *what) {
  constexpr size_t most = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : "  left out: '") + printable(names[i]) + "'";
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return names.empty() ? text : text + ", " + what + "\n";
}

std::string renderMerge(const Merged &merged, const std::string &output) {
  std::string text = printablePath(output) + ": " +
                     counted(merged.tensors, "tensor") + ", " +
                     formatBytes(merged.bytes) + " in " +
                     counted(int64_t(merged.parts.size()), "file") + "\n";
  int64_t states = merged.leftOut;
  for (const auto &[key, tensors] : merged.leftBeside)
    states -= tensors;
  if (states)
    text += "  left out: " + counted(states, "tensor") +
            " that are no weights (states of an optimizer)\n";
  for (const auto &[key, tensors] : merged.leftBeside)
    text += "  left out: " + counted(tensors, "tensor") + " of '" +
            printable(key) + "', beside the model\n";
  text += leftNames(merged.leftStates, "taken for states of an optimizer by "
                                       "their place alone");
  text += leftNames(merged.leftValues, merged.leftValues.size() == 1
                                           ? "which is no tensor"
                                           : "which are no tensors");
  for (const auto &[what, files] : merged.unread) {
    text += "  not read: ";
    for (const std::string &file : files)
      text += (&file == &files.front() ? "" : ", ") + printablePath(file);
    text += ": " + what + "\n";
  }
  return text;
}

std::string mergeJson(const std::optional<Merged> &merged,
                      const std::string &output,
                      const DiagnosticEngine &engine) {
  Json json = nullptr;
  if (merged) {
    json = {{"folder", output},         {"tensors", merged->tensors},
            {"bytes", merged->bytes},   {"left_out", merged->leftOut},
            {"unread", Json::object()}, {"parts", Json::array()}};
    for (const auto &[key, tensors] : merged->leftBeside)
      json["left_out_beside"][key] = tensors;
    if (!merged->leftStates.empty())
      json["left_out_unsure"] = merged->leftStates;
    if (!merged->leftValues.empty())
      json["left_out_values"] = merged->leftValues;
    for (const auto &[what, files] : merged->unread)
      json["unread"][what] = files;
    for (const MergedPart &part : merged->parts)
      json["parts"].push_back({{"file", part.name}, {"bytes", part.bytes}});
  }
  return "{\"merged\": " +
         json.dump(1, ' ', false, Json::error_handler_t::replace) +
         ",\n\"diagnostics\": " + renderJson(engine) + "}\n";
}

} // namespace accel
