//===- LineFile.cpp - A file of JSON lines that runs go on with -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/LineFile.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/plan/PlanJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::run {

namespace {

[[noreturn]] void fail(const std::string &path) {
  throw FileError(path + ": " + std::strerror(errno));
}

std::string textOf(const std::string &path) {
  const File file(path, File::Mode::Read);
  std::string text(file.size(), '\0');
  file.readAt(0, text.data(), file.size());
  return text;
}

/// The lines of `text` that are objects with a step up to `doneSteps`.
std::string linesOf(std::string_view text, int64_t doneSteps) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") &&
        json["step"].is_number_integer() &&
        json["step"].get<int64_t>() <= doneSteps)
      kept.append(line).push_back('\n');
  }
  return kept;
}

} // namespace

bool LineFile::open(int flags) {
  if (const int stream = standardStreamOf(path); stream >= 0)
    return (file = fcntl(stream, F_DUPFD_CLOEXEC, 0)) >= 0;
  file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags,
                0666);
  return file >= 0;
}

bool LineFile::replaceFile(const std::string &text, std::string &error) {
  return lock ? lock->replaceFile(path, text, error)
              : plan::writeFileAtomically(path, text, error);
}

LineFile::LineFile(const std::string &path, std::optional<int64_t> doneSteps,
                   LineLock *lock)
    : path(path), lock(lock) {
  // A pipe would be waited for forever: its writer is this process.
  std::error_code code;
  if (!doneSteps || !std::filesystem::is_regular_file(path, code) ||
      standardStreamOf(path) >= 0) {
    if (!open(doneSteps ? 0 : O_TRUNC))
      fail(path);
    return;
  }
  const std::string text = textOf(path);
  const std::string kept = linesOf(text, *doneSteps);
  if (text.starts_with(kept)) {
    if (!open())
      fail(path);
    if (kept.size() < text.size() &&
        ftruncate(file, static_cast<off_t>(kept.size())) != 0) {
      const int error = errno;
      close();
      errno = error;
      fail(path);
    }
    return;
  }
  std::string error;
  if (!replaceFile(kept, error))
    throw FileError(error);
  if (!open())
    fail(path);
}

std::string LineFile::append(const std::string &lines) {
  if (file < 0 && !open())
    return path + ": " + std::strerror(errno);
  struct stat before{};
  const bool isFile = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  for (size_t done = 0; done < lines.size();) {
    const ssize_t count = write(file, lines.data() + done, lines.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR)
      continue;
    const std::string wrong = path + ": " + std::strerror(errno);
    // Half a line would spoil the next one.
    if (isFile && done > 0 && ftruncate(file, before.st_size) != 0)
      return wrong + ", and half a line is left in it";
    return wrong;
  }
  return "";
}

std::string LineFile::amendLast(
    const std::function<void(nlohmann::ordered_json &)> &change) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code) ||
      standardStreamOf(path) >= 0)
    return "";
  if (const std::string wrong = close(); !wrong.empty())
    return wrong;
  try {
    std::string text = textOf(path);
    while (text.ends_with('\n'))
      text.pop_back();
    const size_t end = text.rfind('\n');
    const size_t begin = end == std::string::npos ? 0 : end + 1;
    auto json =
        nlohmann::ordered_json::parse(text.substr(begin), nullptr, false);
    if (!json.is_object())
      return "";
    change(json);
    std::string error;
    return replaceFile(text.substr(0, begin) + json.dump() + "\n", error)
               ? ""
               : error;
  } catch (const FileError &error) {
    return error.what();
  }
}

std::string LineFile::close() {
  if (file < 0)
    return "";
  const int closed = ::close(file);
  file = -1;
  return closed == 0 ? "" : path + ": " + std::strerror(errno);
}

} // namespace accel::run
