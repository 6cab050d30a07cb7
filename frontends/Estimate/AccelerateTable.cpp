//===- AccelerateTable.cpp - What accelerate estimate-memory says ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Estimate/AccelerateTable.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace accel;
using namespace accel::estimate;

const char *accel::estimate::toString(Dtype dtype) {
  constexpr const char *names[] = {"float32", "float16", "int8", "int4"};
  return names[static_cast<int>(dtype)];
}

std::optional<Dtype> accel::estimate::parseDtype(const std::string &name) {
  for (Dtype dtype : {Dtype::Float32, Dtype::Float16, Dtype::Int8, Dtype::Int4})
    if (name == toString(dtype))
      return dtype;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

static int64_t bytesOf(const TreeBuffer &buffer) {
  return buffer.numel() * plan::itemSize(buffer.dtype);
}

/// compute_module_sizes and get_max_layer_size.
ModelSizes accel::estimate::modelSizes(const ModuleTree &tree) {
  // init_empty_weights breaks ties: each name gets a tensor of its own.
  std::vector<int64_t> own(tree.modules.size(), 0);
  std::map<std::string, int64_t> atRoot; // parameters and buffers of the root
  auto add = [&](int module, const std::string &fqn, int64_t bytes) {
    own[static_cast<size_t>(module)] += bytes;
    if (module == 0)
      atRoot[fqn] += bytes;
  };
  for (const TreeParameter &p : tree.parameters)
    add(p.module, p.fqn, 4 * p.numel());
  for (const TreeBuffer &buffer : tree.buffers)
    add(buffer.module, buffer.fqn, bytesOf(buffer));

  // Modules stand in preorder: children come after their parents.
  std::vector<int64_t> size = own;
  std::vector<bool> isLeaf(tree.modules.size(), true);
  for (size_t i = tree.modules.size(); i-- > 1;) {
    size_t parent = static_cast<size_t>(tree.modules[i].parent);
    size[parent] += size[i];
    isLeaf[parent] = false;
  }
  ModelSizes sizes;
  sizes.total = tree.modules.empty() ? 0 : size[0];
  auto consider = [&](const std::string &fqn, int64_t bytes) {
    if (bytes > sizes.largestLayer) {
      sizes.largestLayer = bytes;
      sizes.largestLayers.clear();
    }
    if (bytes == sizes.largestLayer)
      sizes.largestLayers.push_back(fqn);
  };
  for (const auto &[fqn, bytes] : atRoot)
    consider(fqn, bytes);
  auto whole = [&](size_t i) {
    return isLeaf[i] ||
           std::find(tree.noSplit.begin(), tree.noSplit.end(),
                     tree.modules[i].className) != tree.noSplit.end();
  };
  std::vector<bool> inside(tree.modules.size(), false); // of a whole one
  for (size_t i = 1; i < tree.modules.size(); ++i) {
    size_t parent = static_cast<size_t>(tree.modules[i].parent);
    inside[i] = inside[parent] || (parent > 0 && whole(parent));
    if (!inside[i] && whole(i))
      consider(tree.modules[i].fqn, size[i]);
  }
  return sizes;
}

/// estimate_training_usage and gather_data.
Row accel::estimate::row(const ModelSizes &sizes, Dtype dtype) {
  constexpr double parts[] = {1, 2, 4, 8};
  double part = parts[static_cast<int>(dtype)];
  Row result{dtype, static_cast<double>(sizes.largestLayer) / part,
             static_cast<double>(sizes.total) / part, std::nullopt};
  // The largest of model, gradients, optimizer and step, not their sum.
  if (dtype == Dtype::Float32)
    result.training = sizes.total * 4;
  else if (dtype == Dtype::Float16)
    result.training = sizes.total * 2;
  return result;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string accel::estimate::convertBytes(double bytes, bool whole) {
  constexpr const char *units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; unit < 5 && bytes >= 1024; ++unit)
    bytes /= 1024;
  char text[64];
  if (whole && unit == 0) {
    std::snprintf(text, sizeof text, "%.0f bytes", bytes);
    return text;
  }
  std::snprintf(text, sizeof text, "%.2f", bytes);
  std::string number = text;
  if (number.ends_with('0'))
    number.pop_back(); // one digit stays: "4.0"
  return number + " " + units[unit];
}

namespace {

size_t characters(const std::string &text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }));
}

/// Python's str.center: of an odd rest the left side gets more where the width
/// is odd.
std::string center(const std::string &text, size_t width) {
  size_t length = characters(text);
  if (length >= width)
    return text;
  size_t rest = width - length, left = rest / 2 + (rest & width & 1);
  return std::string(left, ' ') + text + std::string(rest - left, ' ');
}

std::string times(const char *piece, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += piece;
  return out;
}

} // namespace

/// create_ascii_table.
std::string accel::estimate::table(const std::string &model,
                                   const std::vector<Row> &rows) {
  using Cells = std::vector<std::string>;
  std::vector<Cells> lines = {
      {"dtype", "Largest Layer", "Total Size", "Training using Adam"}};
  for (const Row &r : rows) {
    bool whole = r.dtype == Dtype::Float32; // not divided: an int in Python
    lines.push_back({toString(r.dtype), convertBytes(r.largestLayer, whole),
                     convertBytes(r.total, whole),
                     r.training
                         ? convertBytes(static_cast<double>(*r.training), true)
                         : "N/A"});
  }
  std::vector<size_t> widths(4, 0);
  for (const Cells &cells : lines)
    for (size_t i = 0; i < 4; ++i)
      widths[i] = std::max(widths[i], characters(cells[i]));
  const std::vector<size_t> least = widths;
  size_t sum = widths[0] + widths[1] + widths[2] + widths[3], extra = 0;
  auto rule = [&](const char *left, const char *middle, const char *right,
                  size_t more) {
    std::string out = left;
    for (size_t i = 0; i < 4; ++i)
      out += (i ? middle : "") + times("─", widths[i]);
    return out + times("─", more) + right;
  };
  auto line = [&](const Cells &cells) {
    std::string out;
    for (size_t i = 0; i < 4; ++i) {
      std::string text = center(cells[i], widths[i]);
      size_t length = characters(text);
      out += "│";
      if (length < least[i])
        out += std::string(least[i] - length, ' ');
      out += text;
    }
    return out + "│\n";
  };
  std::string title = "Memory Usage for loading `" + model + "`";
  if (characters(title) > sum) {
    size_t width = sum + 5, length = characters(title);
    extra = length > width ? length - width : width - length;
    widths[3] += extra;
  }
  std::string separator = rule("├", "┼", "┤", extra);
  std::string out = rule("┌", "─", "┐", extra) + "\n│" +
                    center(title, characters(separator) - 2) + "│\n" +
                    rule("├", "┬", "┤", extra) + "\n";
  widths[3] += extra;
  out += line(lines[0]) + separator + "\n";
  for (size_t i = 1; i < lines.size(); ++i)
    out += line(lines[i]);
  return out + rule("└", "┴", "┘", 0) + "\n";
}
