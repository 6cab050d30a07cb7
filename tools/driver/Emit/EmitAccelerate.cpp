//===- EmitAccelerate.cpp - A better accelerate YAML ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Schema/Published.h"
#include "passes/Frameworks/ExecutorOf.h"
#include "tools/driver/Advice/AdviceText.h"
#include "tools/driver/Emit/ChosenStep.h"
#include "tools/driver/Emit/EmitAdvice.h"
#include "tools/driver/Inputs/EditFiles.h"

#include <filesystem>

namespace accel {
namespace {

/// The accelerate file, or the job.yaml that holds its keys.
const std::string &sourceOf(const JobConfig &job) {
  return job.accelerate.file.empty() ? job.file : job.accelerate.file;
}

/// "dir/better.deepspeed.json" beside "dir/better.yaml".
std::string jsonBeside(const std::string &path) {
  return std::filesystem::path(path)
      .replace_extension(".deepspeed.json")
      .string();
}

std::filesystem::path folderOf(const std::string &path) {
  return std::filesystem::path(path).parent_path().lexically_normal();
}

class AccelerateEmitter {
public:
  AccelerateEmitter(const Advice &advice, const std::string &path,
                    DiagnosticEngine &engine)
      : advice(advice), path(path), engine(engine),
        job(advice.editor->configuration()), source(sourceOf(job)),
        editor(advice.texts) {}

  std::optional<yaml::FileTexts> run() {
    if (!fitsByYaml(advice, source, engine))
      return std::nullopt;
    sayExecutor();
    for (const tune::YamlLine &line : advice.yaml->lines)
      if (!take(line))
        return std::nullopt;
    const std::string json = deepspeedFile();
    yaml::FileTexts result;
    if (!json.empty() && editor.changed(json)) {
      const std::string other = jsonBeside(path);
      if (!set({job.accelerate.deepspeed->configFile.key, other, source}))
        return std::nullopt;
      result[other] = editor.text(json);
    } else if (!json.empty() && folderOf(path) != folderOf(source)) {
      // Its name may be one beside the YAML.
      if (!set({job.accelerate.deepspeed->configFile.key, json, source}))
        return std::nullopt;
    }
    result[path] = schema::withModeline(
        editor.text(source),
        job.isJob && source == job.file ? schema::SchemaKind::Job
                                        : schema::SchemaKind::Accelerate,
        parseAccelerateVersion(job.accelerate.version)
            .value_or(newestAccelerate));
    return result;
  }

private:
  bool take(const tune::YamlLine &line) {
    if (isWritten(*advice.editor, line))
      return true;
    const bool elsewhere = line.file != source && line.file != deepspeedFile();
    // On standard output there is one file alone.
    if (elsewhere || (line.file != source && path == "-")) {
      engine.note("other-file", line.file,
                  "the setting has '" + textOf(line) +
                      "' in this file as well");
      return true;
    }
    return set(line);
  }

  /// --executor says who was planned, which no line of the file does.
  void sayExecutor() {
    const FrameworkKind own = executorOf(job), planned = advice.executor;
    if (own != planned)
      engine.note("other-flag", source,
                  std::string("the new file goes with --executor ") +
                      toString(planned) + ": by itself it starts " +
                      toString(own));
  }

  bool set(const tune::YamlLine &line) {
    if (editor.set(line))
      return true;
    engine.error("cannot-edit", line.file,
                 "'" + textOf(line) + "' cannot be written: " + editor.why());
    return false;
  }

  std::string deepspeedFile() const {
    const auto &settings = job.accelerate.deepspeed;
    return settings && !settings->inArguments ? *settings->configFile : "";
  }

  const Advice &advice;
  const std::string &path;
  DiagnosticEngine &engine;
  const JobConfig &job;
  const std::string source;
  FileEditor editor;
};

} // namespace

std::optional<yaml::FileTexts> emitAccelerate(const Advice &advice,
                                              const std::string &path,
                                              DiagnosticEngine &engine) {
  return AccelerateEmitter(advice, path, engine).run();
}

} // namespace accel
