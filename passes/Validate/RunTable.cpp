//===- RunTable.cpp - A table of measured runs ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RunTable.h"

#include "frontends/Yaml/Yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace accel::validate {

namespace {

struct Field {
  std::string text;
  int line = 1, column = 1;
};
using Record = std::vector<Field>;

/// RFC 4180: fields are separated by commas; one in quotes may hold commas,
/// line ends and doubled quotes.
class CsvReader {
public:
  CsvReader(const std::string &file, const std::string &text,
            DiagnosticEngine &engine)
      : file(file), text(text), engine(engine) {
    if (text.starts_with("\xEF\xBB\xBF"))
      at = 3;
  }

  std::optional<std::vector<Record>> read() {
    std::vector<Record> records;
    while (at < text.size()) {
      Record record;
      do {
        record.emplace_back();
        if (!readField(record.back()))
          return std::nullopt;
      } while (take(','));
      if (at < text.size() && !takeLineEnd())
        return fail("expected a comma or the end of the line after a quoted "
                    "field"),
               std::nullopt;
      if (record.size() > 1 || !record[0].text.empty())
        records.push_back(std::move(record));
    }
    return records;
  }

private:
  void fail(const std::string &message) {
    Diagnostic d;
    d.code = "bad-csv";
    d.file = file;
    d.line = line;
    d.column = static_cast<int>(at - lineStart) + 1;
    d.message = message;
    engine.report(std::move(d));
  }
  bool take(char c) {
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool takeLineEnd() {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n')
      ++at;
    if (text[at] != '\n' && text[at] != '\r')
      return false;
    ++at;
    ++line;
    lineStart = at;
    return true;
  }
  bool readField(Field &field) {
    field.line = line;
    field.column = static_cast<int>(at - lineStart) + 1;
    if (!take('"')) {
      while (at < text.size() && text[at] != ',' && text[at] != '\n' &&
             text[at] != '\r') {
        if (text[at] == '"')
          return fail("a quote inside a field that does not begin with one"),
                 false;
        field.text += text[at++];
      }
      return true;
    }
    while (at < text.size()) {
      const char c = text[at++];
      if (c == '"') {
        if (!take('"'))
          return true;
      } else if (c == '\n') {
        ++line;
        lineStart = at;
      }
      field.text += c;
    }
    line = field.line;
    fail("a quoted field without its closing quote");
    return false;
  }

  const std::string &file, &text;
  DiagnosticEngine &engine;
  size_t at = 0, lineStart = 0;
  int line = 1;
};

std::string trimmed(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t");
  const size_t end = text.find_last_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

using Texts = std::map<std::string, std::string RunRow::*>;
using Integers = std::map<std::string, std::optional<int64_t> RunRow::*>;
using Numbers = std::map<std::string, std::optional<double> RunRow::*>;

const Texts texts = {{"id", &RunRow::id},
                     {"model", &RunRow::model},
                     {"gpu", &RunRow::gpu},
                     {"framework", &RunRow::framework},
                     {"sharding", &RunRow::sharding},
                     {"precision", &RunRow::precision},
                     {"ac", &RunRow::checkpointing},
                     {"compile", &RunRow::compile},
                     {"attn", &RunRow::attention},
                     {"source", &RunRow::source}};
const Integers integers = {{"layers", &RunRow::layers},
                           {"hidden", &RunRow::hidden},
                           {"heads", &RunRow::heads},
                           {"kv_heads", &RunRow::keyValueHeads},
                           {"ffn", &RunRow::ffn},
                           {"vocab", &RunRow::vocab},
                           {"seq", &RunRow::sequence},
                           {"micro_batch", &RunRow::microBatch},
                           {"global_batch", &RunRow::globalBatch},
                           {"gpus", &RunRow::gpus},
                           {"tp", &RunRow::tensorParallel},
                           {"pp", &RunRow::pipelineParallel},
                           {"cp", &RunRow::contextParallel}};
const Numbers numbers = {
    {"params_b", &RunRow::paramsB},
    {"tokens_per_s_per_gpu", &RunRow::tokensPerSecondPerGpu},
    {"mfu_pct", &RunRow::mfuPercent},
    {"tflops_per_gpu", &RunRow::teraflopsPerGpu},
    {"peak_mem_gib", &RunRow::peakMemoryGib},
    {"step_ms", &RunRow::stepMilliseconds}};

/// A positive number, or nothing.
std::optional<double> positive(const std::string &text) {
  double value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) ||
      value <= 0)
    return std::nullopt;
  return value;
}

class TableReader {
public:
  TableReader(const std::string &file, DiagnosticEngine &engine)
      : file(file), engine(engine) {}

  std::optional<std::vector<RunRow>> read(const std::vector<Record> &records) {
    if (records.empty()) {
      engine.error("bad-csv", file, "the table is empty: it has no header");
      return std::nullopt;
    }
    if (!readHeader(records[0]))
      return std::nullopt;
    std::vector<RunRow> rows;
    std::map<std::string, int> ids;
    for (size_t i = 1; i < records.size(); ++i) {
      rows.push_back(readRow(records[i]));
      RunRow &row = rows.back();
      if (row.id.empty())
        row.id = "line " + std::to_string(row.line);
      auto [known, fresh] = ids.emplace(row.id, row.line);
      if (!fresh)
        report(Severity::Warning, "duplicate-id", records[i][0], "id",
               "the id '" + printable(row.id) + "' is that of line " +
                   std::to_string(known->second) + " as well");
    }
    return rows;
  }

private:
  void report(Severity severity, const std::string &code, const Field &field,
              const std::string &key, const std::string &message) {
    Diagnostic d;
    d.severity = severity;
    d.code = code;
    d.file = file;
    d.line = field.line;
    d.column = field.column;
    d.key = key;
    d.message = message;
    engine.report(std::move(d));
  }

  bool readHeader(const Record &header) {
    bool ok = true;
    for (size_t i = 0; i < header.size(); ++i) {
      const std::string name = trimmed(header[i].text);
      if (!columns.emplace(name, i).second && !name.empty()) {
        report(Severity::Error, "duplicate-column", header[i], name,
               "the column '" + printable(name) + "' is there twice");
        ok = false;
      }
    }
    for (const char *needed :
         {"id", "model", "gpus", "gpu", "framework", "seq", "micro_batch"})
      if (!columns.count(needed)) {
        report(Severity::Error, "missing-column", header[0], needed,
               std::string("a table of runs needs the column '") + needed +
                   "'");
        ok = false;
      }
    width = header.size();
    return ok;
  }

  RunRow readRow(const Record &record) {
    RunRow row;
    row.line = record[0].line;
    if (record.size() != width) {
      row.problem = "the line has " + std::to_string(record.size()) +
                    " fields, the header " + std::to_string(width);
      report(Severity::Warning, "bad-row", record[0], "", row.problem);
    }
    auto field = [&](const std::string &name) -> const Field * {
      auto found = columns.find(name);
      return found == columns.end() || found->second >= record.size()
                 ? nullptr
                 : &record[found->second];
    };
    for (const auto &[name, member] : texts)
      if (const Field *f = field(name))
        row.*member = trimmed(f->text);
    auto number = [&](const std::string &name, bool whole) {
      const Field *f = field(name);
      const std::string text = f ? trimmed(f->text) : "";
      if (text.empty())
        return std::optional<double>();
      std::optional<double> value = positive(text);
      if (value && (!whole || (*value == std::floor(*value) && *value < 1e15)))
        return value;
      const std::string problem = "'" + name + "' must be a positive " +
                                  (whole ? "integer" : "number") + ", not '" +
                                  printable(text) + "'";
      report(Severity::Warning, "bad-row", *f, name, problem);
      row.problem = problem;
      return std::optional<double>();
    };
    for (const auto &[name, member] : integers)
      if (std::optional<double> value = number(name, true))
        row.*member = static_cast<int64_t>(*value);
    for (const auto &[name, member] : numbers)
      row.*member = number(name, false);
    return row;
  }

  const std::string &file;
  DiagnosticEngine &engine;
  std::map<std::string, size_t> columns;
  size_t width = 0;
};

} // namespace

std::optional<std::vector<RunRow>> parseRuns(const std::string &file,
                                             const std::string &text,
                                             DiagnosticEngine &engine) {
  engine.addSource(file, text);
  std::optional<std::vector<Record>> records =
      CsvReader(file, text, engine).read();
  if (!records)
    return std::nullopt;
  return TableReader(file, engine).read(*records);
}

std::optional<std::vector<RunRow>> readRuns(const std::string &path,
                                            DiagnosticEngine &engine) {
  std::string text, problem;
  if (!yaml::readWholeFile(path, size_t(64) << 20, text, problem)) {
    engine.error("file-not-found", path, problem);
    return std::nullopt;
  }
  return parseRuns(path, text, engine);
}

} // namespace accel::validate
