//===- Diff.cpp - The difference of two texts -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Diagnostics/Diff.h"

#include <algorithm>

using namespace accel;

std::string accel::applyEdits(std::string_view text,
                              std::vector<TextEdit> edits) {
  std::stable_sort(
      edits.begin(), edits.end(), [](const TextEdit &a, const TextEdit &b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
      });
  std::string out;
  size_t at = 0;
  for (const TextEdit &edit : edits) {
    out += text.substr(at, edit.begin - at);
    out += edit.text;
    at = edit.end;
  }
  return out + std::string(text.substr(at));
}

namespace {

using Lines = std::vector<std::string_view>;

/// With their line breaks.
Lines split(std::string_view text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    end = end == text.npos ? text.size() : end + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

struct Line {
  char kind; // ' ', '-', '+'
  std::string_view text;
};

/// The shortest script between two short lists, by their longest common
/// subsequence.
void compare(const Lines &a, const Lines &b, std::vector<Line> &script) {
  constexpr size_t most = 16u << 20; // entries of the table
  size_t n = a.size(), m = b.size();
  if (n && m && n > most / m) {
    for (std::string_view line : a)
      script.push_back({'-', line});
    for (std::string_view line : b)
      script.push_back({'+', line});
    return;
  }
  // length[i][j]: of a[i..] and b[j..].
  std::vector<uint32_t> length((n + 1) * (m + 1), 0);
  auto at = [&](size_t i, size_t j) -> uint32_t & {
    return length[i * (m + 1) + j];
  };
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1
                              : std::max(at(i + 1, j), at(i, j + 1));
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && a[i] == b[j]) {
      script.push_back({' ', a[i]});
      ++i, ++j;
    } else if (i < n && (j == m || at(i + 1, j) >= at(i, j + 1))) {
      script.push_back({'-', a[i++]});
    } else {
      script.push_back({'+', b[j++]});
    }
  }
}

std::vector<Line> makeScript(const Lines &a, const Lines &b) {
  size_t first = 0, last = 0, shorter = std::min(a.size(), b.size());
  while (first < shorter && a[first] == b[first])
    ++first;
  while (last < shorter - first &&
         a[a.size() - 1 - last] == b[b.size() - 1 - last])
    ++last;
  std::vector<Line> script;
  for (size_t i = 0; i < first; ++i)
    script.push_back({' ', a[i]});
  auto middle = [&](const Lines &lines) {
    return Lines(lines.begin() + static_cast<ptrdiff_t>(first),
                 lines.end() - static_cast<ptrdiff_t>(last));
  };
  compare(middle(a), middle(b), script);
  for (size_t i = a.size() - last; i < a.size(); ++i)
    script.push_back({' ', a[i]});
  return script;
}

} // namespace

std::string accel::unifiedDiff(std::string_view before, std::string_view after,
                               const std::string &name, bool colour) {
  if (before == after)
    return "";
  constexpr size_t context = 3;
  std::vector<Line> script = makeScript(split(before), split(after));
  auto painted = [&](std::string text, const char *code) {
    return colour ? code + text + "\033[0m" : text;
  };
  std::string out = painted("--- " + name, "\033[1m") + "\n" +
                    painted("+++ " + name, "\033[1m") + "\n";
  size_t oldLine = 1, newLine = 1; // of script[at]
  for (size_t at = 0; at < script.size();) {
    // The next change, and how far its hunk goes.
    size_t change = at;
    while (change < script.size() && script[change].kind == ' ')
      ++change;
    if (change == script.size())
      break;
    size_t begin = change - std::min(change - at, context);
    oldLine += begin - at;
    newLine += begin - at;
    size_t end = change, equal = 0;
    for (size_t i = change; i < script.size() && equal <= 2 * context; ++i) {
      equal = script[i].kind == ' ' ? equal + 1 : 0;
      if (!equal)
        end = i + 1;
    }
    end = std::min(end + context, script.size());
    size_t removed = 0, added = 0;
    std::string body;
    for (size_t i = begin; i < end; ++i) {
      removed += script[i].kind != '+';
      added += script[i].kind != '-';
      bool open = !script[i].text.ends_with('\n');
      std::string_view text = script[i].text;
      if (!open)
        text.remove_suffix(1);
      // Nobody reads more of a line.
      constexpr size_t longest = 4096;
      std::string line = script[i].kind + std::string(text.substr(0, longest));
      if (text.size() > longest)
        line +=
            "[... " + std::to_string(text.size() - longest) + " bytes more]";
      body += (script[i].kind == '-'   ? painted(line, "\033[31m")
               : script[i].kind == '+' ? painted(line, "\033[32m")
                                       : line) +
              "\n";
      if (open)
        body += "\\ No newline at end of file\n";
    }
    auto range = [](size_t line, size_t count) {
      // An empty stretch is named by the line before it.
      return std::to_string(count ? line : line - 1) +
             (count == 1 ? "" : "," + std::to_string(count));
    };
    out += painted("@@ -" + range(oldLine, removed) + " +" +
                       range(newLine, added) + " @@",
                   "\033[36m") +
           "\n" + body;
    oldLine += removed;
    newLine += added;
    at = end;
  }
  return out;
}
