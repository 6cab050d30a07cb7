//===- OwnFolders.cpp - What accel-run may remove -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/OwnFolders.h"

#include "runtime/checkpoint/State.h"
#include "runtime/plan/JsonParse.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

namespace accel::run {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

const FolderMark &markOf(Made made) {
  return made == Made::Checkpoint ? checkpointMark : modelMark;
}

fs::file_type typeOf(const fs::path &path) {
  std::error_code code;
  return fs::symlink_status(path, code).type();
}

bool isThere(const fs::path &path) {
  const fs::file_type type = typeOf(path);
  return type != fs::file_type::not_found && type != fs::file_type::none;
}

std::string hasAdded(const std::string &name) {
  return "has '" + name + "', which accel-run has not written";
}

/// rank-00012.safetensors
bool isShardName(const std::string &name) {
  const std::string first = "rank-", last = ".safetensors";
  if (!name.starts_with(first) || !name.ends_with(last) ||
      name.size() < first.size() + 5 + last.size())
    return false;
  const std::string number =
      name.substr(first.size(), name.size() - first.size() - last.size());
  return number.find_first_not_of("0123456789") == number.npos;
}

/// What the mark of a model's folder says was written, by name; nothing if it
/// does not say it.
std::optional<std::map<std::string, ModelFile>>
filesOf(const fs::path &folder) {
  try {
    const nlohmann::json mark =
        readObject((folder / plan::outputModelMark).string());
    std::map<std::string, ModelFile> files;
    for (const nlohmann::json &entry : mark.at("files")) {
      ModelFile file{entry.at("name").get<std::string>(),
                     entry.at("bytes").get<int64_t>(),
                     entry.value("sha256", "")};
      files[file.name] = file;
    }
    return files;
  } catch (const nlohmann::json::exception &) {
    return std::nullopt;
  }
}

bool isChanged(const fs::path &path, const ModelFile &file, bool partial) {
  std::error_code code;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, code));
  if (code)
    return true;
  if (partial && bytes < file.bytes) // a run was killed while it wrote it
    return false;
  if (bytes != file.bytes)
    return true;
  try {
    return !file.sha256.empty() &&
           sha256Of(File(path.string(), File::Mode::Read)) != file.sha256;
  } catch (const FileError &) {
    return true;
  }
}

/// As addedTo, of what is in a folder; `reads`: the files' contents too.
std::string foundIn(const fs::path &path, Made made, bool reads) {
  if (!isThere(path))
    return "";
  if (typeOf(path) == fs::file_type::symlink)
    return "is a symbolic link, which accel-run does not make";
  if (typeOf(path) != fs::file_type::directory)
    return "is no folder, and accel-run makes one";
  std::vector<fs::path> entries;
  try {
    for (const fs::directory_entry &entry : fs::directory_iterator(path))
      if (entry.path().filename() != markOf(made).file ||
          typeOf(entry.path()) != fs::file_type::regular)
        entries.push_back(entry.path());
  } catch (const fs::filesystem_error &error) {
    return "cannot be looked into (" + error.code().message() + ")";
  }
  if (entries.empty()) // a mark alone may be half of one
    return "";
  const bool partial = path.filename().string().ends_with(plan::partialSuffix);
  if (made == Made::Model) {
    const auto files = filesOf(path);
    if (!files)
      return std::string("has no ") + plan::outputModelMark +
             " that says which of its files accel-run has written";
    for (const fs::path &entry : entries) {
      const std::string name = entry.filename().string();
      const auto file = files->find(name);
      if (file == files->end() || typeOf(entry) != fs::file_type::regular)
        return hasAdded(name);
      if (reads && isChanged(entry, file->second, partial))
        return "has '" + name + "', which was changed since it was written";
    }
    return "";
  }
  for (const fs::path &entry : entries) {
    const std::string name = entry.filename().string();
    if (isShardName(name) && typeOf(entry) == fs::file_type::regular)
      continue;
    // `state_dict: full` writes the model into the checkpoint.
    if (plan::withoutSuffixes(name) != plan::outputModel ||
        typeOf(entry) != fs::file_type::directory)
      return hasAdded(name);
    if (const std::string inner = foundIn(entry, Made::Model, reads);
        !inner.empty())
      return "has " + name + ", which " + inner;
  }
  return "";
}

/// Removes a folder that is accel-run's own.
void erase(const std::string &path, Made made) {
  if (made == Made::Model) {
    try { // the mark goes last: it says whose the rest is
      removeInPlace(path, modelMark);
    } catch (const FileError &) {
      // The next run removes it.
    }
    return;
  }
  if (path.ends_with(plan::removedSuffix))
    return removeQuietly(path);
  const std::string removed = path + plan::removedSuffix;
  removeOwn(removed, made);
  if (!tryRename(path, removed))
    return removeInPlace(path, checkpointMark);
  removeQuietly(removed);
}

} // namespace

std::string modelMarkText(const std::string &run, int64_t step,
                          const std::vector<ModelFile> &files) {
  ordered_json json = {{"format", 1},
                       {"run", run},
                       {"step", step},
                       {"files", ordered_json::array()}};
  for (const ModelFile &file : files) {
    ordered_json entry = {{"name", file.name}, {"bytes", file.bytes}};
    if (!file.sha256.empty())
      entry["sha256"] = file.sha256;
    json["files"].push_back(std::move(entry));
  }
  // A name that is no UTF-8 is not found again, and its folder is kept aside.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

nlohmann::json readObject(const std::string &path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code) ||
      fs::file_size(path, code) > maxStateBytes)
    return nullptr;
  std::ifstream input(path);
  const std::string text(std::istreambuf_iterator<char>(input), {});
  try {
    auto json = plan::parseJson(text);
    return json.is_object() ? json : nlohmann::json(nullptr);
  } catch (const plan::JsonSyntaxError &) {
    return nullptr;
  }
}

std::string addedTo(const std::string &path, Made made) {
  return foundIn(path, made, /*reads=*/false);
}

std::string removeIfOwn(const std::string &path, Made made) {
  std::string others = foundIn(path, made, /*reads=*/true);
  if (others.empty() && isThere(path))
    erase(path, made);
  return others;
}

void removeOwn(const std::string &path, Made made) {
  if (const std::string others = removeIfOwn(path, made); !others.empty())
    keepAside(path, others, markOf(made));
}

void removeUnfinished(const std::string &path, Made made) noexcept {
  if (addedTo(path, made).empty())
    removeQuietly(path);
}

void replaceOwn(const std::string &from, const std::string &to, Made made) {
  const std::string aside = to + plan::replacedSuffix;
  if (isThere(to)) // otherwise `aside` is the older one that is complete
    removeOwn(aside, made);
  replaceFolder(from, to, aside, markOf(made));
  removeOwn(from, made);
  removeOwn(aside, made);
}

void keepAside(const std::string &path, const std::string &why,
               const FolderMark &mark) {
  if (!isThere(path))
    return;
  const fs::path named(path);
  const std::string own =
      (named.parent_path() / plan::withoutSuffixes(named.filename().string()))
          .string();
  std::string kept = own + plan::keptSuffix;
  for (int i = 2; isThere(kept); ++i)
    kept = own + plan::keptSuffix + "-" + std::to_string(i);
  if (typeOf(path) != fs::file_type::directory)
    renameDurably(path, kept);
  else
    moveFolder(path, kept, mark);
  // A folder that was replaced has the name of the one that was being written.
  std::fprintf(stderr, "accel-run: warning: %s %s: it is now %s\n", own.c_str(),
               why.c_str(), kept.c_str());
}

} // namespace accel::run
