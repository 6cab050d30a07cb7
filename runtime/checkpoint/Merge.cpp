//===- Merge.cpp - A Hugging Face folder of the trained model -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Merge.h"

#include "runtime/checkpoint/Agree.h"
#include "runtime/checkpoint/OwnFolders.h"
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Pt2.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/plan/Sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace accel::run {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

/// Elements [begin, ...) of a parameter, as a tensor of its own; or a buffer.
struct Part {
  int parameter = -1;
  int64_t begin = 0;
};

struct Output {
  std::string name;
  SafetensorsHeader header;
  std::vector<Part> parts; // as header.tensors
};

/// What PEFT's save_pretrained writes: one file of what the adapter trained.
std::vector<Output> adapterOutput(const plan::Plan &plan) {
  Output output;
  output.name = "adapter_model.safetensors";
  output.header.metadata["format"] = "pt";
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const plan::Parameter &p = plan.parameters[i];
    if (p.adapterKey.empty())
      continue;
    output.parts.push_back({static_cast<int>(i), 0});
    output.header.tensors.push_back({p.adapterKey, p.dtype, p.shape, 0});
  }
  return {output};
}

/// Tensors as transformers names them, in the order of the parameters, and
/// buffers behind them; a new file where the limit would be passed.
std::vector<Output> distribute(const plan::Plan &plan, int64_t limit) {
  if (!plan.job.adapterConfig.empty())
    return adapterOutput(plan);
  std::vector<Output> outputs;
  int64_t bytes = 0;
  auto add = [&](StoredTensor tensor, const Part &part) {
    const int64_t size = tensor.numel() * plan::itemSize(tensor.dtype);
    if (outputs.empty() || bytes + size > limit) {
      outputs.emplace_back();
      outputs.back().header.metadata["format"] = "pt";
      bytes = 0;
    }
    bytes += size;
    outputs.back().parts.push_back(part);
    outputs.back().header.tensors.push_back(std::move(tensor));
  };
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const plan::Parameter &p = plan.parameters[i];
    auto parts = plan::storedParts(p.fqn, p.stored, p.shape);
    for (plan::StoredPart &part : parts.value())
      add({std::move(part.name), p.dtype, part.shape, 0},
          {static_cast<int>(i), part.begin});
  }
  for (const plan::Buffer &buffer : plan.buffers)
    if (buffer.persistent)
      add({buffer.fqn, buffer.dtype, buffer.shape, 0}, {});
  for (size_t i = 0; i < outputs.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1,
                  outputs.size());
    outputs[i].name = outputs.size() == 1 ? "model.safetensors" : name;
  }
  return outputs;
}

/// Writes the elements of `piece`, which lie in `flat`, where `output` has
/// them. `first[p]` is the first of the output's tensors that is of parameter p
/// or a later one.
void writePiece(File &file, const Output &output,
                const std::vector<size_t> &first, const Piece &piece,
                const at::Tensor &flat) {
  for (size_t i = first[piece.parameter]; i < output.parts.size(); ++i) {
    const Part &part = output.parts[i];
    if (part.parameter != piece.parameter || part.begin >= piece.end)
      break;
    const StoredTensor &tensor = output.header.tensors[i];
    const int64_t from = std::max(piece.begin, part.begin);
    const int64_t to = std::min(piece.end, part.begin + tensor.numel());
    if (from < to)
      writeElements(
          file,
          tensor.offset + (from - part.begin) * plan::itemSize(tensor.dtype),
          tensor.dtype, flat, piece.offset + from - piece.begin, to - from);
  }
}

bool isWeightOrIndex(const std::string &name) {
  auto ends = [&](const char *suffix) {
    const std::string s(suffix);
    return name.size() >= s.size() &&
           name.compare(name.size() - s.size(), s.size(), s) == 0;
  };
  return ends(".safetensors") || ends(".bin") || ends(".pt") || ends(".pth") ||
         ends(".index.json") || ends(".gguf") || ends(".h5") ||
         ends(".msgpack") || name == plan::outputModelMark;
}

constexpr uintmax_t smallFile = 64 << 20; // tokenizers, not weights

/// A file beside the weights: a text, or a copy of `from`.
struct SmallFile {
  std::string name, text, from;
};

std::vector<SmallFile> smallFilesOf(const std::string &source) {
  std::vector<SmallFile> files;
  std::error_code code;
  if (fs::is_regular_file(source, code)) {
    File file(source, File::Mode::Read);
    if (isZip(file))
      for (auto &[name, text] : readExtra(file))
        if (!isWeightOrIndex(name))
          files.push_back({name, std::move(text), ""});
    return files;
  }
  for (const fs::directory_entry &entry :
       fs::directory_iterator(source, code)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(code) || name[0] == '.' ||
        isWeightOrIndex(name) || entry.file_size(code) > smallFile)
      continue;
    files.push_back({name, "", entry.path().string()});
  }
  return files;
}

ModelFile describe(const SmallFile &small) {
  if (!small.from.empty()) {
    const File file(small.from, File::Mode::Read);
    return {small.name, file.size(), sha256Of(file)};
  }
  plan::Sha256 hash;
  hash.update(small.text);
  return {small.name, static_cast<int64_t>(small.text.size()),
          hash.hexDigest()};
}

void writeSmallFile(const SmallFile &small, const std::string &folder) {
  const std::string path = (fs::path(folder) / small.name).string();
  if (small.from.empty())
    return writeTextDurably(path, small.text);
  std::error_code code;
  fs::copy_file(small.from, path, code);
  if (code)
    throw FileError(path + ": " + code.message());
  File(path, File::Mode::Write).sync();
}

/// What stands beside the weights: the index of several files, the adapter's
/// configuration, or the configuration and the tokenizer of `source`.
std::vector<SmallFile> smallFiles(const plan::Plan &plan,
                                  const std::vector<Output> &outputs,
                                  const std::string &source) {
  std::vector<SmallFile> files;
  if (!plan.job.adapterConfig.empty())
    files.push_back({"adapter_config.json", plan.job.adapterConfig, ""});
  else if (!source.empty())
    files = smallFilesOf(source);
  if (outputs.size() <= 1)
    return files;
  int64_t total = 0;
  ordered_json map = ordered_json::object();
  for (const Output &output : outputs)
    for (const StoredTensor &tensor : output.header.tensors) {
      map[tensor.name] = output.name;
      total += tensor.numel() * plan::itemSize(tensor.dtype);
    }
  const ordered_json index = {{"metadata", {{"total_size", total}}},
                              {"weight_map", std::move(map)}};
  files.push_back({"model.safetensors.index.json", index.dump(2) + "\n", ""});
  return files;
}

FileError notOurs(const std::string &folder) {
  return FileError(folder + ": was not written by accel-run (it has no " +
                   plan::outputModelMark + "), so it is not replaced");
}

void checkModel(const std::string &folder) {
  if (!plan::mayReplace(folder))
    throw notOurs(folder);
}

} // namespace

void writeModelFolder(Executor &executor, const Buffers &buffers,
                      const std::string &folder, const std::string &source,
                      int64_t limit, const std::string &run, int64_t step) {
  executor.device().synchronize();
  const plan::Plan &plan = executor.plan();
  Groups &groups = executor.groups();
  const bool first = groups.rank() == 0;
  const std::string temporary = folder + plan::partialSuffix;
  std::vector<Output> outputs = distribute(plan, limit);
  std::vector<std::string> heads;
  for (Output &output : outputs)
    heads.push_back(layOut(output.header));
  auto stage = [&](const std::function<void()> &work) {
    agree(groups, "the model cannot be written", work, [&] {
      if (first)
        removeUnfinished(temporary, Made::Model);
    });
  };
  stage([&] {
    if (!first)
      return;
    checkModel(temporary);
    removeOwn(temporary, Made::Model);
    makeFolders(temporary);
    // The mark comes first, with the names of all that follows: what a crash
    // leaves is known as accel-run's.
    const std::vector<SmallFile> beside = smallFiles(plan, outputs, source);
    std::vector<ModelFile> files;
    for (const Output &output : outputs)
      files.push_back({output.name, output.header.fileBytes, ""});
    for (const SmallFile &small : beside)
      files.push_back(describe(small));
    writeTextDurably((fs::path(temporary) / plan::outputModelMark).string(),
                     modelMarkText(run, step, files));
    for (size_t i = 0; i < outputs.size(); ++i) {
      File file((fs::path(temporary) / outputs[i].name).string(),
                File::Mode::Create);
      file.reserve(outputs[i].header.fileBytes);
      file.writeAt(0, heads[i].data(), heads[i].size());
      for (size_t t = 0; t < outputs[i].parts.size(); ++t)
        if (outputs[i].parts[t].parameter < 0) {
          const StoredTensor &tensor = outputs[i].header.tensors[t];
          const std::vector<char> &bytes = buffers.bytes(tensor.name);
          file.writeAt(tensor.offset, bytes.data(), bytes.size());
        }
      file.sync();
    }
    for (const SmallFile &small : beside)
      writeSmallFile(small, temporary);
  });
  stage([&] {
    const Executor::Holding holding(executor);
    for (const Output &output : outputs) {
      std::vector<size_t> tensors(plan.parameters.size());
      for (size_t p = 0, i = 0; p < tensors.size(); ++p) {
        while (i < output.parts.size() &&
               output.parts[i].parameter < static_cast<int>(p))
          ++i;
        tensors[p] = i;
      }
      File file((fs::path(temporary) / output.name).string(),
                File::Mode::Write);
      for (size_t u = 0; u < plan.units.size(); ++u) {
        if (!executor.holds(static_cast<int>(u)))
          continue;
        UnitStorage &unit = executor.unit(u);
        if (!writesUnit(plan, unit.unit(), groups.mesh()))
          continue;
        executor.hold(static_cast<int>(u), /*changes=*/false);
        for (const Piece &piece : piecesOf(plan, unit, groups.mesh()))
          if (writesParameter(plan, plan.parameters[piece.parameter],
                              groups.mesh()))
            writePiece(file, output, tensors, piece, unit.shard());
      }
      file.sync();
    }
  });
  stage([&] {
    if (!first)
      return;
    syncFolder(temporary);
    // The old folder goes only when the new one is complete.
    checkModel(folder + plan::replacedSuffix);
    checkModel(folder);
    replaceOwn(temporary, folder, Made::Model);
  });
}

} // namespace accel::run
