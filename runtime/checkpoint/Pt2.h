//===- Pt2.h - Tensors inside a .pt2 archive --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch.export.save writes a zip whose entries are not compressed: each
// tensor's bytes are a stretch of the file. torch's own reader finds it
// (caffe2/serialize/inline_container.h), by the archive's weights_config.json
// and constants_config.json.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_PT2_H
#define ACCEL_RUNTIME_CHECKPOINT_PT2_H

#include "runtime/checkpoint/Safetensors.h"

#include <string>
#include <utility>
#include <vector>

namespace accel::run {

/// True if the file begins like a zip.
bool isZip(const File &file);

/// Parameters, buffers and constants by name. Throws FileError. Left out are
/// those without values (exported on the meta device), of dtypes that training
/// does not know, compressed ones, and those that are not row-major.
std::vector<StoredTensor> readPt2(const File &file);

/// Texts that its exporter put beside the program (extra_files of
/// torch.export.save), by name: tools/export-model's are the model's
/// config.json and its tokenizer. Left out are its own notes, names with a
/// folder and texts above 64 MiB. Throws FileError.
std::vector<std::pair<std::string, std::string>> readExtra(const File &file);

/// What readPt2 says of a .pt2, or readHeader of a safetensors file.
std::vector<StoredTensor> readTensors(const File &file);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_PT2_H
