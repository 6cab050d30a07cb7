//===- JobFiles.cpp - Files of tokens and their documents -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobReader.h"
#include "frontends/Job/TokenFiles.h"

#include <algorithm>
#include <filesystem>
#include <fnmatch.h>

using namespace accel;

namespace {

/// The files whose names match the pattern in the path's last part, in the
/// order of their names.
std::vector<std::string> matching(const std::string &pattern) {
  namespace fs = std::filesystem;
  const fs::path path(pattern);
  std::vector<std::string> found;
  std::error_code failed;
  const fs::path folder = path.parent_path();
  for (fs::directory_iterator at(folder.empty() ? "." : folder, failed), end;
       !failed && at != end; at.increment(failed)) {
    const fs::path name = at->path().filename();
    if (fnmatch(path.filename().c_str(), name.c_str(), FNM_PERIOD) == 0)
      found.push_back((folder / name).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace

bool DataConfig::hasDocuments() const {
  return endOfDocument.value ||
         std::any_of(files.begin(), files.end(), [](const auto &file) {
           return !file.starts.value.empty();
         });
}

void JobReader::readFiles(const Fields &fields, const char *key,
                          DataConfig &data) {
  const yaml::Node &value = *fields.find(key)->value;
  std::vector<DataFileConfig> files;
  const bool isList = value.isSequence();
  const size_t errors = engine.errors();
  if (isList) {
    int index = 0;
    for (const yaml::Node *item : value.items)
      readFile(fields, *item, index++, key, files);
    if (value.items.empty())
      fields.error("invalid-value", key, fields.keyPath(key) + " lists no file",
                   "write a file, or a list of files");
  } else {
    Setting<std::string> path;
    fields.pathTo(key, path);
    if (!path.written())
      return;
    files.push_back({path, {}, {}});
    expand(fields, key, files);
  }
  // What a file in error would have had is not known.
  const bool whole = engine.errors() == errors;
  if (files.empty())
    return;
  const bool weighted =
      std::any_of(files.begin(), files.end(),
                  [](const auto &file) { return file.weight.written(); });
  size_t arrays = 0;
  for (const DataFileConfig &file : files) {
    if (whole && weighted && !file.weight.written())
      fields.error("missing-key", key,
                   "'" + printablePath(file.path.value) +
                       "' has no weight, and others have one",
                   "give each file a weight, or none");
    arrays += file.path->ends_with(".npy");
  }
  if (data.kind.value == DataKind::Tokens && arrays) {
    if (arrays < files.size())
      fields.error("invalid-value", key,
                   "some files are .npy and others are not",
                   "write all of them in one form");
    data.kind.value = DataKind::Npy; // carries its own dtype
  }
  if (!isList && files.size() == 1)
    data.path = files.front().path;
  else
    data.files = std::move(files);
  if (data.files.empty())
    checkDataFile(fields, key, data.path.value, data);
  for (const DataFileConfig &file : data.files)
    checkDataFile(fields, key, file.path.value, data);
}

void JobReader::readFile(const Fields &fields, const yaml::Node &item,
                         int index, const char *key,
                         std::vector<DataFileConfig> &files) {
  const std::string where = fields.keyPath(key) + "." + std::to_string(index);
  std::vector<DataFileConfig> read(1);
  DataFileConfig &file = read.front();
  if (item.isString() && !item.text.empty()) {
    file.path = {resolvePath(this->file, item.text),
                 Origin::Written,
                 where,
                 {this->file, item.range.begin.line, item.range.begin.column},
                 ""};
  } else if (item.isMapping()) {
    const Fields entry(this->file, item, where, engine);
    entry.checkKeys({"path", "weight", "starts"});
    entry.pathTo("path", file.path);
    if (!entry.find("path"))
      entry.errorHere("missing-key", "the file has no path",
                      "write {path: FILE, weight: 0.5}");
    entry.number("weight", file.weight, 1e-9, 1e9);
    entry.pathTo("starts", file.starts);
    if (file.starts.written())
      checkStarts(entry, "starts", file.starts.value);
  } else {
    fields.error("invalid-value", key,
                 where +
                     " must be a file or {path: FILE, weight: 0.5}, this "
                     "is " +
                     yaml::shortText(item));
  }
  if (!file.path.written())
    return;
  expand(fields, key, read);
  files.insert(files.end(), read.begin(), read.end());
}

void JobReader::expand(const Fields &fields, const char *key,
                       std::vector<DataFileConfig> &files) {
  const DataFileConfig pattern = files.front();
  std::error_code failed;
  const std::string &path = pattern.path.value;
  if (path.find_first_of("*?[") == std::string::npos || !options.checkFiles ||
      std::filesystem::exists(path, failed))
    return;
  const std::vector<std::string> names = matching(path);
  if (names.empty())
    return; // reported as a file that is not there
  if (pattern.weight.written() || pattern.starts.written()) {
    fields.error("invalid-value", key,
                 "'" + printablePath(path) +
                     "' is a pattern, which takes neither weight nor starts",
                 "list its files one by one");
    files.clear();
    return;
  }
  files.clear();
  for (const std::string &name : names) {
    files.push_back(pattern);
    files.back().path.value = name;
  }
}

void JobReader::checkStarts(const Fields &fields, const char *key,
                            const std::string &path) {
  std::error_code failed;
  if (!path.ends_with(".npy"))
    fields.error("invalid-value", key,
                 "positions of documents are a .npy file, this is '" +
                     printablePath(path) + "'");
  else if (options.checkFiles && !std::filesystem::exists(path, failed))
    fields.error("file-not-found", key,
                 "no such file: '" + printablePath(path) + "'",
                 "paths are relative to the folder of this file");
  else if (options.checkFiles)
    if (const std::string problem = startsProblem(path); !problem.empty())
      fields.error("invalid-value", key, problem,
                   "write the position of each document's first token, in "
                   "their order");
}

void JobReader::readDocuments(const Fields &fields, DataConfig &data) {
  std::optional<Fields> documents = fields.mapping("documents");
  if (!documents)
    return;
  documents->checkKeys({"eos", "starts"});
  if (data.kind.value == DataKind::Arrays) {
    fields.error("invalid-value", "documents",
                 "documents are of tokens, and arrays have samples",
                 "add position_ids to the arrays: they start from 0 with each "
                 "document",
                 true);
    return;
  }
  Setting<std::string> starts;
  documents->integer("eos", data.endOfDocument, 0, int64_t(1) << 40);
  documents->pathTo("starts", starts);
  if (documents->find("eos") && documents->find("starts"))
    return documents->error(
        "invalid-value", "starts",
        "documents are told by eos or by starts, not by both",
        "keep one of them", true);
  if (!documents->find("eos") && !documents->find("starts"))
    fields.error("missing-key", "documents", "documents says nothing",
                 "write documents: {eos: ID}, or {starts: FILE.npy}");
  if (!starts.written())
    return;
  checkStarts(*documents, "starts", starts.value);
  if (!data.files.empty()) {
    documents->error("invalid-value", "starts",
                     "one list of documents is given for several files",
                     "write starts beside each path");
    return;
  }
  data.files = {{data.path, {}, starts}};
  data.path = {};
}
