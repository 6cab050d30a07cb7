//===- EmitAccelerate.cpp - An improved accelerate file -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Convert/Rewriter.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Emit/EmitAdvice.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace accel {
namespace {

convert::Value valueOf(const std::string &text) {
  if (text == "true" || text == "false")
    return convert::Value::boolean(text == "true");
  if (!text.empty() &&
      text.find_first_not_of("0123456789") == std::string::npos)
    return convert::Value::integer(std::stoll(text));
  return convert::Value::string(text);
}

convert::Path split(const std::string &key) {
  convert::Path path;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos;
       begin = dot + 1)
    path.push_back(key.substr(begin, dot - begin));
  path.push_back(key.substr(begin));
  return path;
}

/// Sets the key, or adds it, with its section if there is none.
bool write(convert::Rewriter &rewriter, const tune::YamlLine &line) {
  convert::Path path = split(line.key);
  convert::Value value = valueOf(line.value);
  if (rewriter.find(path))
    return rewriter.set(path, value);
  convert::Path parent(path.begin(), path.end() - 1);
  if (parent.empty() || rewriter.find(parent))
    return rewriter.insert(parent, path.back(), value);
  if (parent.size() == 1)
    return rewriter.insertSection(parent[0], {{path.back(), value}});
  return false;
}

} // namespace

std::optional<std::string>
applyLines(const std::string &file, const std::string &text,
           const std::vector<tune::YamlLine> &lines) {
  convert::Rewriter rewriter(file, text);
  for (const tune::YamlLine &line : lines)
    if (!write(rewriter, line))
      return std::nullopt;
  return rewriter.text();
}

std::optional<std::string> emitAccelerate(const Advice &advice,
                                          DiagnosticEngine &engine) {
  const JobConfig &job = advice.expresser->configuration();
  const std::string &file =
      job.accelerate.file.empty() ? job.file : job.accelerate.file;
  const Tuned &tuned = *advice.yaml;
  if (!tuned.result.best) {
    engine.error("nothing-fits", file,
                 "no setting that a YAML can say fits, so there is none to "
                 "write");
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)),
                   std::istreambuf_iterator<char>());
  convert::Rewriter rewriter(file, text);
  for (const tune::YamlLine &line : tuned.lines) {
    if (!job.accelerate.file.empty() && job.accelerate.file != job.file &&
        job.isJob && line.key.rfind("accelerate.", 0) != 0 &&
        (line.key == job.activationCheckpointing.key ||
         line.key.rfind("data.", 0) == 0 || line.key == job.accumulation.key ||
         line.key == job.lossChunks.key)) {
      engine.note("other-file", job.file,
                  "the setting has '" + textOf(line) +
                      "' in this file as well");
      continue;
    }
    if (isWritten(*advice.expresser, line))
      continue;
    if (!write(rewriter, line)) {
      engine.error("cannot-edit", file,
                   "'" + textOf(line) + "' cannot be written: " +
                       (rewriter.why().empty() ? "its section is missing"
                                               : rewriter.why()));
      return std::nullopt;
    }
  }
  return rewriter.text();
}

} // namespace accel
