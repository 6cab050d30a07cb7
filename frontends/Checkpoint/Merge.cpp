//===- Merge.cpp - Writing the merged weights -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/Merge.h"
#include "frontends/Checkpoint/BoxWriter.h"
#include "frontends/Checkpoint/ConvertedFloats.h"
#include "frontends/Checkpoint/FileIo.h"
#include "frontends/Checkpoint/PieceReader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace accel::checkpoint {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

class Writer {
public:
  Writer(const Merged &merged, const std::string &output,
         const std::function<void(int64_t)> &done, const FinishFolder &finish,
         DiagnosticEngine &diagnostics)
      : merged(merged), output(fs::path(output).lexically_normal()), done(done),
        finish(finish), diagnostics(diagnostics), reader(diagnostics) {
    // A trailing slash is no name.
    if (!this->output.has_filename())
      this->output = this->output.parent_path();
  }

  bool run() {
    if (!checkOutput())
      return false;
    const Interrupts interrupts;
    std::error_code failed;
    fs::create_directories(unfinished, failed);
    if (failed)
      return fail("write-failed", unfinished.string(), failed.message());
    const bool good = writeAll();
    if (good)
      fs::rename(unfinished, output, failed);
    if (!good || failed) {
      const std::string why = failed.message();
      std::error_code ignored;
      fs::remove_all(unfinished, ignored);
      return good && fail("write-failed", output.string(), why);
    }
    const fs::path parent = fs::absolute(output, failed).parent_path();
    File(parent.string(), O_RDONLY | O_DIRECTORY).sync();
    return true;
  }

private:
  /// The folder is renamed to `output` at the end, which may be an empty folder
  /// or a link to one.
  bool checkOutput() {
    std::error_code failed;
    const bool link = fs::is_symlink(output, failed);
    if (fs::exists(output, failed)) {
      if (!fs::is_directory(output, failed) || !fs::is_empty(output, failed))
        return fail("output-exists", output.string(),
                    "the folder for the weights is there and not empty",
                    "name another one, or remove it");
      if (fs::equivalent(output, fs::current_path(failed), failed))
        return fail("output-exists", output.string(),
                    "is the current folder, which cannot be replaced",
                    "name a folder in it");
      if (link)
        output = fs::canonical(output, failed);
      struct stat own, parent;
      if (::stat(output.c_str(), &own) == 0 &&
          ::stat((output / "..").c_str(), &parent) == 0 &&
          own.st_dev != parent.st_dev)
        return fail("output-exists", output.string(),
                    "is where a file system is mounted, which cannot be "
                    "replaced",
                    "name a folder in it");
    } else if (link) {
      return fail("output-exists", output.string(), "is a link to nothing",
                  "name the folder itself");
    }
    unfinished = output;
    unfinished += ".unfinished-" + std::to_string(::getpid());
    return true;
  }

  bool fail(const std::string &code, const std::string &path,
            const std::string &message, const std::string &hint = "") {
    diagnostics.error(code, path, message, hint);
    return false;
  }
  bool failedToWrite(const std::string &path) {
    return reportUnwritten(path, merged.bytes + merged.bytesBeside,
                           diagnostics);
  }

  bool writeAll() {
    for (const MergedPart &part : merged.parts)
      if (!writePart(part))
        return false;
    if (!reader.verify())
      return false;
    if (finish) {
      if (!finish(unfinished.string()))
        return false;
    } else if (merged.parts.size() > 1) {
      Json index = {{"metadata", {{"total_size", merged.bytes}}},
                    {"weight_map", Json::object()}};
      for (const MergedPart &part : merged.parts)
        for (const MergedTensor &tensor : part.tensors)
          index["weight_map"][tensor.name] = part.name;
      if (!writeSmallFile(
              (unfinished / "model.safetensors.index.json").string(),
              index.dump(2) + "\n", merged.bytes, diagnostics))
        return false;
    }
    File(unfinished.string(), O_RDONLY | O_DIRECTORY).sync();
    return true;
  }

  static std::string headerOf(const MergedPart &part) {
    Json header = {{"__metadata__", part.metadata}};
    for (const MergedTensor &tensor : part.tensors)
      header[tensor.name] = {
          {"dtype", storedDtypeOf(tensor.dtype)},
          {"shape", tensor.source->shape},
          {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i)
      bytes[i] = char(uint64_t(text.size()) >> (8 * i));
    return bytes + text;
  }

  bool writePart(const MergedPart &part) {
    const std::string path = (unfinished / part.name).string();
    File file(path, O_WRONLY | O_CREAT | O_EXCL);
    const std::string header = headerOf(part);
    if (!file.good() || !file.write(header, 0))
      return failedToWrite(path);
    for (const MergedTensor &tensor : part.tensors)
      for (const Piece &piece : tensor.source->pieces) {
        const int64_t at = int64_t(header.size()) + tensor.begin;
        bool wrote = true;
        BoxWriter box(piece.view.empty() ? tensor.source->shape : piece.view,
                      elementBytes(tensor.dtype), piece,
                      [&](std::string_view bytes, int64_t inside) {
                        wrote = file.write(bytes, at + inside);
                        written += int64_t(bytes.size());
                        done(written);
                        return wrote;
                      });
        FloatConverter converter(tensor.source->dtype, tensor.dtype);
        const PieceReader::Take take = [&](std::string_view bytes) {
          return tensor.dtype == tensor.source->dtype
                     ? box.take(bytes)
                     : converter.take(bytes, [&](std::string_view converted) {
                         return box.take(converted);
                       });
        };
        const bool good = reader.read(*tensor.source, piece, take);
        if (!wrote)
          return failedToWrite(path);
        if (converter.overflow())
          return fail("not-supported", piece.file,
                      "'" + printable(tensor.name) + "' holds " +
                          shortest(*converter.overflow()) +
                          ", which is beyond " + tensor.dtype,
                      "choose another --dtype");
        if (!good)
          return false;
      }
    return file.sync() || failedToWrite(path);
  }

  static std::string shortest(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }

  const Merged &merged;
  fs::path output, unfinished;
  const std::function<void(int64_t)> &done;
  const FinishFolder &finish;
  DiagnosticEngine &diagnostics;
  PieceReader reader;
  int64_t written = 0;
};

} // namespace

bool writeSmallFile(const std::string &path, const std::string &text,
                    int64_t folderBytes, DiagnosticEngine &diagnostics) {
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file.good() && file.write(text, 0) && file.sync())
    return true;
  return reportUnwritten(path, folderBytes, diagnostics);
}

bool writeMerged(const Merged &merged, const std::string &output,
                 const std::function<void(int64_t)> &done,
                 DiagnosticEngine &diagnostics, const FinishFolder &finish) {
  return Writer(merged, output, done, finish, diagnostics).run();
}

} // namespace accel::checkpoint
