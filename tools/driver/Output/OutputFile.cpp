//===- OutputFile.cpp - Files that a user names for output ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Output/OutputFile.h"

#include "frontends/Diagnostics/InputFiles.h"
#include "runtime/plan/EarlierOutput.h"
#include "runtime/plan/PlanJson.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace accel {
namespace {

namespace fs = std::filesystem;

constexpr size_t startBytes = 1024;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view withoutSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

/// {"format": 3, ...: the first member of a plan, in whatever layout.
bool isStartOfPlan(std::string_view start) {
  for (std::string_view part : {"{", "\"format\"", ":"}) {
    start = withoutSpace(start);
    if (!start.starts_with(part))
      return false;
    start.remove_prefix(part.size());
  }
  start = withoutSpace(start);
  return !start.empty() && start[0] >= '0' && start[0] <= '9';
}

/// An alias of an attribute or a type ("#loc3 = "), or the module itself.
bool isStartOfMlir(std::string_view start) {
  if (start.starts_with("module") || start.starts_with("builtin.module"))
    return has(start.substr(0, start.find('\n')), "{");
  if (!start.starts_with('#') && !start.starts_with('!'))
    return false;
  const size_t end = start.find_first_of(" \n");
  return end != std::string_view::npos && end > 1 &&
         start.substr(end).starts_with(" = ");
}

/// True if an earlier output of this form begins so.
bool isStartOf(FileForm form, std::string_view start) {
  const std::string_view line = start.substr(0, start.find('\n'));
  switch (form) {
  case FileForm::Plan:
    return isStartOfPlan(start);
  case FileForm::Page:
    return start.starts_with("<!DOCTYPE html>") &&
           has(start, "<title>accel-opt</title>");
  case FileForm::Mlir:
    return isStartOfMlir(start);
  case FileForm::Remarks:
    return start.starts_with("--- !");
  case FileForm::Dot:
    return start.starts_with("// Units and schedule of ");
  case FileForm::Trace:
    return start.starts_with(plan::traceStart);
  case FileForm::Python:
    return start.starts_with("\"\"\"FSDP2 as accel-opt plans it for ");
  case FileForm::Torchtitan:
    return line.starts_with("# ") && has(line, ", as accel-opt plans it.");
  case FileForm::Schema:
    return start.starts_with("{") && has(start, "/docs/schemas/");
  case FileForm::Snapshot:
    // torch writes its own with a later protocol of pickle.
    return start.starts_with("\x80\x02}(") &&
           has(start.substr(0, 32), "segments");
  case FileForm::Other:
    break;
  }
  return false;
}

/// Behind "is no".
const char *nameOf(FileForm form) {
  switch (form) {
  case FileForm::Plan:
    return "plan";
  case FileForm::Page:
    return "page of accel-opt";
  case FileForm::Mlir:
    return "MLIR module";
  case FileForm::Remarks:
    return "file of remarks";
  case FileForm::Dot:
    return "graph of accel-opt";
  case FileForm::Trace:
    return "trace of accel-opt";
  case FileForm::Python:
  case FileForm::Torchtitan:
    return "file that accel-opt wrote";
  case FileForm::Schema:
    return "schema of accel-opt";
  case FileForm::Snapshot:
    return "snapshot of accel-opt";
  case FileForm::Other:
    break;
  }
  return "";
}

bool holds(const std::string &path, const std::string &text) {
  std::error_code failed;
  if (fs::file_size(path, failed) != text.size() || failed)
    return false;
  std::ifstream in(path, std::ios::binary);
  std::string now(text.size(), '\0');
  return in.read(now.data(), static_cast<std::streamsize>(now.size())) &&
         now == text;
}

} // namespace

void addOverwrite(Arguments &arguments, bool &overwrite) {
  arguments.flag("--overwrite", overwrite,
                 "replace files that are there, whoever wrote them, but none "
                 "that the command reads");
}

bool replacesInput(const std::string &path, DiagnosticEngine &engine) {
  const std::string read = readAs(path);
  if (read.empty())
    return false;
  engine.error("output-is-input", path,
               "the command reads this file" +
                   (read == path ? std::string()
                                 : ", as '" + printablePath(read) + "'") +
                   ", and its output would replace it",
               "write to another file");
  return true;
}

bool liesInInput(const std::string &output, const std::string &input,
                 DiagnosticEngine &engine) {
  std::error_code failed;
  const fs::path whole = fs::canonical(input, failed);
  if (failed)
    return false; // reading it says why
  const fs::path inside =
      fs::weakly_canonical(fs::absolute(output, failed), failed)
          .lexically_relative(whole);
  if (failed || inside.empty() || *inside.begin() == ".." || inside == ".")
    return false;
  engine.error("output-is-input", output,
               "lies in the folder that the command reads, '" +
                   printablePath(input) +
                   "', and would be taken for a part of it from then on",
               "name a folder beside it");
  return true;
}

bool mayWrite(const OutputFile &file, FileForm form, const std::string &text,
              DiagnosticEngine &engine) {
  std::error_code failed;
  // A pipe or a device has nothing to lose, and the write itself refuses a
  // folder.
  if (file.path == "-" || !fs::is_regular_file(file.path, failed))
    return true;
  if (replacesInput(file.path, engine))
    return false;
  if (file.overwrite || fs::file_size(file.path, failed) == 0)
    return true;
  if (isStartOf(form, plan::startOf(file.path, startBytes)) ||
      holds(file.path, text))
    return true;
  const std::string name = nameOf(form);
  engine.error("output-exists", file.path,
               "the file exists already" +
                   (name.empty() ? "" : ", and is no " + name),
               "pass --overwrite to replace it, or write to another file");
  return false;
}

bool writeOutputFile(const OutputFile &file, FileForm form,
                     const std::string &text, DiagnosticEngine &engine) {
  if (!mayWrite(file, form, text, engine))
    return false;
  std::string error;
  if (file.path != "-") {
    if (plan::writeFileAtomically(file.path, text, error))
      return true;
  } else if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
             std::fflush(stdout) == 0) {
    return true;
  } else {
    error = std::strerror(errno);
  }
  engine.error("write-failed", file.path, error);
  return false;
}

} // namespace accel
