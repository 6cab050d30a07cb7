//===- Merge.cpp - A Hugging Face folder of the trained model -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Merge.h"

#include "runtime/checkpoint/Agree.h"
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Pt2.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/plan/OutputModel.h"

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

void copySmallFiles(const std::string &from, const std::string &to) {
  std::error_code code;
  if (fs::is_regular_file(from, code)) {
    File file(from, File::Mode::Read);
    if (isZip(file))
      for (const auto &[name, text] : readExtra(file))
        if (!isWeightOrIndex(name))
          writeTextDurably((fs::path(to) / name).string(), text);
    return;
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(from, code)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(code) || name[0] == '.' ||
        isWeightOrIndex(name) || entry.file_size(code) > smallFile)
      continue;
    fs::copy_file(entry.path(), fs::path(to) / name, code);
    if (code)
      throw FileError((fs::path(to) / name).string() + ": " + code.message());
    File((fs::path(to) / name).string(), File::Mode::Write).sync();
  }
}

FileError notOurs(const std::string &folder) {
  return FileError(folder + ": was not written by accel-run (it has no " +
                   plan::outputModelMark + "), so it is not replaced");
}

void removeModel(const std::string &folder) {
  if (!plan::mayReplace(folder))
    throw notOurs(folder);
  removeQuietly(folder);
}

} // namespace

void writeModelFolder(Executor &executor, const Buffers &buffers,
                      const std::string &folder, const std::string &source,
                      int64_t limit, const std::string &mark) {
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
      if (first && plan::mayReplace(temporary))
        removeQuietly(temporary);
    });
  };
  stage([&] {
    if (!first)
      return;
    removeModel(temporary);
    makeFolders(temporary);
    writeTextDurably((fs::path(temporary) / plan::outputModelMark).string(),
                     mark);
    int64_t total = 0;
    ordered_json map = ordered_json::object();
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
      for (const StoredTensor &tensor : outputs[i].header.tensors) {
        map[tensor.name] = outputs[i].name;
        total += tensor.numel() * plan::itemSize(tensor.dtype);
      }
    }
    if (outputs.size() > 1) {
      ordered_json index = {{"metadata", {{"total_size", total}}},
                            {"weight_map", std::move(map)}};
      writeTextDurably(
          (fs::path(temporary) / "model.safetensors.index.json").string(),
          index.dump(2) + "\n");
    }
    if (!plan.job.adapterConfig.empty())
      writeTextDurably((fs::path(temporary) / "adapter_config.json").string(),
                       plan.job.adapterConfig);
    else if (!source.empty())
      copySmallFiles(source, temporary);
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
    const std::string old = folder + plan::replacedSuffix;
    std::error_code code;
    removeModel(old);
    if (!plan::mayReplace(folder))
      throw notOurs(folder);
    if (fs::exists(fs::symlink_status(folder, code)))
      moveFolder(folder, old, {plan::outputModelMark, FolderMark::Says::Owner});
    renameDurably(temporary, folder);
    removeQuietly(old);
  });
}

} // namespace accel::run
