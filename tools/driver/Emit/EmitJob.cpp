//===- EmitJob.cpp - A job file with a better mesh ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Schema/Published.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Inputs/EditFiles.h"

#include <filesystem>

namespace accel {

static std::filesystem::path folderOf(const std::string &path) {
  return std::filesystem::path(path).parent_path().lexically_normal();
}

std::optional<yaml::FileTexts> emitJob(const Advice &advice,
                                       const std::string &path,
                                       DiagnosticEngine &engine) {
  const JobConfig &job = *advice.job;
  if (!advice.runMeshes) {
    engine.error("emit-job", job.file,
                 "--emit job writes a job file with the fastest mesh that "
                 "accel-run trains on, and none was planned",
                 job.isJob ? "pass --target and --tune=all, without "
                             "--global-batch and --executor"
                           : "pass a job.yaml; --emit accelerate is for the "
                             "keys of an accelerate file");
    return std::nullopt;
  }
  // What fits is first, the fastest of it before the others.
  const RunMesh &best = advice.runMeshes->planned.front();
  if (!best.fits) {
    engine.error("nothing-fits", job.file,
                 "no mesh fits with all else as written, so there is none to "
                 "write");
    return std::nullopt;
  }
  FileEditor editor(advice.texts);
  if (!editor.set(best.edit.yaml)) {
    engine.error("cannot-edit", job.file,
                 "the mesh " + best.sizes +
                     " cannot be written: " + editor.why());
    return std::nullopt;
  }
  for (const auto &[flag, value] : best.edit.flags)
    engine.note("other-flag", job.file,
                "the new file goes with " + flag + " " + value +
                    ", which the command line says otherwise");
  if (path != "-" && folderOf(path) != folderOf(job.file))
    engine.note("other-folder", job.file,
                "paths in a job file are relative to its folder, and the new "
                "one is in another",
                "write it beside the old one");
  return yaml::FileTexts{
      {path,
       schema::withModeline(editor.text(job.file), schema::SchemaKind::Job,
                            parseAccelerateVersion(job.accelerate.version)
                                .value_or(newestAccelerate))}};
}

} // namespace accel
