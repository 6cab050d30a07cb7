//===- RenderComparison.cpp - Two jobs side by side -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Compare/Effect.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace accel {
namespace {

using Json = nlohmann::ordered_json;
using Unit = FigureChange::Unit;

std::string shown(Unit unit, double value) {
  switch (unit) {
  case Unit::Bytes:
    return formatBytes(static_cast<int64_t>(value));
  case Unit::Seconds:
    return formatSeconds(value);
  case Unit::Count:
    break;
  }
  return formatGrouped(value);
}

/// "+1.2 GiB", "-300 ms", or "" where it is the same.
std::string changed(const FigureChange &row) {
  const double by = row.b - row.a;
  if (by == 0 || shown(row.unit, row.a) == shown(row.unit, row.b))
    return "";
  switch (row.unit) {
  case Unit::Bytes:
    return formatBytesChange(static_cast<int64_t>(by));
  case Unit::Seconds:
    return formatSecondsChange(by);
  case Unit::Count:
    break;
  }
  return (by < 0 ? "-" : "+") + formatGrouped(std::abs(by));
}

/// "FSDP2 on 8 x h100-sxm-80gb, 2 x 4096 tokens per rank, fits in 79.1 GiB".
std::string about(const Effect &e) {
  std::string text = e.strategy + " on " + std::to_string(e.plan.ranks()) +
                     " x " +
                     (e.plan.target.empty() ? e.plan.device : e.plan.target) +
                     ", " + describeBatch(e.plan);
  if (!e.fits)
    return text;
  if (!*e.fits)
    return text + ", DOES NOT FIT: " +
           (e.roomBytes && e.prediction.deviceBytes > *e.roomBytes
                ? tooMuch(e.prediction.deviceBytes, *e.roomBytes)
                : "too much on the host");
  if (e.budgetBytes)
    text += ", fits in " + formatBytes(*e.budgetBytes);
  return text;
}

/// Names of files for the heads of columns; short, and never the same.
std::pair<std::string, std::string> heads(const Effect &a, const Effect &b) {
  constexpr size_t widest = 24;
  auto last = [](const std::string &path) {
    return path.substr(path.rfind('/') + 1);
  };
  std::string left = last(a.name), right = last(b.name);
  if (left == right || left.size() > widest || right.size() > widest)
    return {"A", "B"};
  return {left, right};
}

class Renderer {
public:
  Renderer(const Effect &a, const Effect &b) : a(a), b(b) {
    std::tie(left, right) = heads(a, b);
    width = std::max<size_t>({12, left.size() + 2, right.size() + 2});
  }

  std::string run(const Comparison &c) {
    const size_t names = std::max(left.size(), right.size());
    out = padRight(left, names) + "  " + (left == "A" ? a.name + ": " : "") +
          about(a) + "\n" + padRight(right, names) + "  " +
          (right == "B" ? b.name + ": " : "") + about(b) + "\n";
    table("memory per rank", c.memory);
    table("time", c.time);
    const std::string counts =
        c.unitsOfA == c.unitsOfB
            ? std::to_string(c.unitsOfA)
            : std::to_string(c.unitsOfA) + " -> " + std::to_string(c.unitsOfB);
    list("units: " + counts, c.units, ", the same");
    list("decisions", c.decisions, ": the same");
    list("numerics", c.numerics, ": the same values, up to rounding");
    return std::move(out);
  }

private:
  void table(const std::string &title, const std::vector<FigureChange> &rows) {
    if (rows.empty())
      return;
    out += "\n  " + padRight(title, 24) + padLeft(left, width) +
           padLeft(right, width) + "\n";
    for (const FigureChange &row : rows) {
      std::string line = "    " + padRight(row.what, 22) +
                         padLeft(shown(row.unit, row.a), width) +
                         padLeft(shown(row.unit, row.b), width);
      if (std::string by = changed(row); !by.empty())
        line += padLeft(by, 13);
      out += line + "\n";
    }
  }

  void rows(const char *mark, const std::vector<Choices::Row> &rows,
            const std::vector<Choices::Row> &others) {
    for (const Choices::Row &row : rows) {
      if (std::find(others.begin(), others.end(), row) != others.end())
        continue;
      out +=
          std::string("      ") + mark + " " + row.text +
          (row.count > 1 ? " (" + std::to_string(row.count) + " times)" : "") +
          "\n";
      if (!row.why.empty())
        out += "          because " + row.why + "\n";
    }
  }

  void list(const std::string &title, const std::vector<Choices> &all,
            const char *otherwise) {
    out += "\n  " + title + (all.empty() ? otherwise : "") + "\n";
    for (const Choices &c : all) {
      // One for one, on a line.
      const bool plain = c.a.size() == 1 && c.b.size() == 1 &&
                         c.a[0].why.empty() && c.b[0].why.empty() &&
                         c.a[0].text.size() + c.b[0].text.size() < 60 &&
                         c.a[0].count == c.b[0].count;
      if (plain) {
        out +=
            "    " + c.what + ": " + c.a[0].text + " -> " + c.b[0].text + "\n";
        continue;
      }
      out += "    " + c.what + "\n";
      rows("-", c.a, c.b);
      rows("+", c.b, c.a);
    }
  }

  const Effect &a, &b;
  std::string left, right, out;
  size_t width = 12;
};

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

Json effectJson(const Effect &e) {
  return {{"name", e.name},
          {"strategy", e.strategy},
          {"ranks", e.plan.ranks()},
          {"target", e.plan.target},
          {"device_bytes", e.prediction.deviceBytes},
          {"peak_bytes", e.prediction.peakBytes},
          {"step_s", e.hasTime ? Json(e.prediction.stepSeconds) : Json()},
          {"budget_bytes", e.budgetBytes ? Json(*e.budgetBytes) : Json()},
          {"fits", e.fits ? Json(*e.fits) : Json()}};
}

Json figuresJson(const std::vector<FigureChange> &rows) {
  Json result = Json::array();
  for (const FigureChange &row : rows) {
    auto value = [&](double x) {
      return row.unit == Unit::Bytes ? Json(static_cast<int64_t>(x)) : Json(x);
    };
    result.push_back(
        {{"what", row.what}, {"a", value(row.a)}, {"b", value(row.b)}});
  }
  return result;
}

Json choicesJson(const std::vector<Choices> &all) {
  Json result = Json::array();
  auto side = [](const std::vector<Choices::Row> &rows) {
    Json list = Json::array();
    for (const Choices::Row &row : rows)
      list.push_back({{"is", row.text},
                      {"times", row.count},
                      {"why", row.why.empty() ? Json() : Json(row.why)}});
    return list;
  };
  for (const Choices &c : all)
    result.push_back({{"what", c.what}, {"a", side(c.a)}, {"b", side(c.b)}});
  return result;
}

} // namespace

std::string renderComparison(const Effect &a, const Effect &b,
                             const Comparison &comparison) {
  return Renderer(a, b).run(comparison);
}

std::string renderComparisonJson(const Effect *a, const Effect *b,
                                 const Comparison &comparison,
                                 const DiagnosticEngine &engine) {
  Json root = {{"a", a ? effectJson(*a) : Json()},
               {"b", b ? effectJson(*b) : Json()},
               {"memory", figuresJson(comparison.memory)},
               {"time", figuresJson(comparison.time)},
               {"units",
                {{"a", comparison.unitsOfA},
                 {"b", comparison.unitsOfB},
                 {"changed", choicesJson(comparison.units)}}},
               {"decisions", choicesJson(comparison.decisions)},
               {"numerics", choicesJson(comparison.numerics)},
               {"diagnostics", Json::parse(renderJson(engine))}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace accel
