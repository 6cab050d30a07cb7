//===- PlanPaths.cpp - Paths in a plan ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/PlanPaths.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace {

fs::path folderOf(const std::string &file) {
  std::error_code error;
  return fs::absolute(file, error).lexically_normal().parent_path();
}

bool isBelow(const fs::path &path, const fs::path &folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

} // namespace

void accel::makePathsRelative(plan::Plan &plan, const std::string &planFile,
                              const std::string &jobFile) {
  const fs::path base = folderOf(planFile), job = folderOf(jobFile);
  const fs::path root = isBelow(base, job) ? job : base;
  if (root.empty() || root == root.root_path())
    return;
  auto rewrite = [&](std::string &path) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    if (path.empty() || error || !isBelow(whole, root))
      return false;
    path = whole.lexically_relative(base).string();
    return true;
  };
  // A folder called "model" takes its name from the one that it is in, which
  // is another one after a move.
  const fs::path model(plan.job.modelPath);
  if (rewrite(plan.job.modelPath) && model.parent_path() == root &&
      plan.job.modelName == root.filename())
    plan.job.modelName = model.filename().string();
  for (std::string &file : plan.job.weightFiles)
    rewrite(file);
  rewrite(plan.job.archive);
  rewrite(plan.job.checkpoint.dir);
  rewrite(plan.job.evalPredictions);
  for (plan::Data *data : {&plan.job.data, &plan.job.evalData}) {
    rewrite(data->path);
    for (plan::DataFile &file : data->files) {
      rewrite(file.path);
      rewrite(file.starts);
    }
    for (auto &[name, path] : data->arrays)
      rewrite(path);
  }
  for (plan::Decision &decision : plan.decisions)
    rewrite(decision.file);
}
